from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

import grpc.aio
from mindie_ha.wire import fault_pb2

class FaultStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Register: Callable[..., Awaitable[fault_pb2.Status]]
    SubscribeFaultMsgSignal: Callable[..., AsyncIterable[fault_pb2.FaultMsgSignal]]
    GetFaultMsgSignal: Callable[..., Awaitable[fault_pb2.FaultQueryResult]]

class FaultServicer:
    async def Register(
        self, request: fault_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> fault_pb2.Status: ...
    def SubscribeFaultMsgSignal(
        self, request: fault_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[fault_pb2.FaultMsgSignal]: ...
    async def GetFaultMsgSignal(
        self, request: fault_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> fault_pb2.FaultQueryResult: ...

def add_FaultServicer_to_server(
    servicer: FaultServicer, server: grpc.aio.Server
) -> None: ...
