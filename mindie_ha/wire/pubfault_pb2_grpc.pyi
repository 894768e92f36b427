from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

import grpc.aio
from mindie_ha.wire import pubfault_pb2

class PubFaultStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    SendPublicFault: Callable[..., Awaitable[pubfault_pb2.RespStatus]]

class PubFaultServicer:
    async def SendPublicFault(
        self, request: pubfault_pb2.PublicFaultRequest, context: grpc.aio.ServicerContext
    ) -> pubfault_pb2.RespStatus: ...

def add_PubFaultServicer_to_server(
    servicer: PubFaultServicer, server: grpc.aio.Server
) -> None: ...
