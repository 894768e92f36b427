from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

import grpc.aio
from mindie_ha.wire import config_pb2

class ConfigStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Register: Callable[..., Awaitable[config_pb2.Status]]
    SubscribeRankTable: Callable[..., AsyncIterable[config_pb2.RankTableStream]]

class ConfigServicer:
    async def Register(
        self, request: config_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> config_pb2.Status: ...
    def SubscribeRankTable(
        self, request: config_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[config_pb2.RankTableStream]: ...

def add_ConfigServicer_to_server(
    servicer: ConfigServicer, server: grpc.aio.Server
) -> None: ...
