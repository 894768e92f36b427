"""`fault.Fault`: what MS Controller blocks on is served, and stays open."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc import aio

from tests.channels.conftest import Dial, Serve
from tests.channels.contract import FAULT_QUERY, FAULT_REGISTER, FAULT_SUBSCRIBE, Client
from tests.channels.fakes import CHAT, eventually


async def test_register_answers_0_and_the_stream_stays_open(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))

    assert (await client.register(FAULT_REGISTER)).code == 0
    stream = client.subscribe(FAULT_SUBSCRIBE)
    await eventually(lambda: serving.tables.joined == [(CHAT, "mindie-ms-controller", "fault")])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await stream.read()
    await eventually(lambda: serving.tables.left == [(CHAT, "mindie-ms-controller", "fault")])


async def test_stopping_ends_the_stream_with_status_ok(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register(FAULT_REGISTER)
    stream = client.subscribe(FAULT_SUBSCRIBE)
    await eventually(lambda: serving.tables.joined)

    await serving.server.stop()

    assert await stream.read() is aio.EOF
    assert await stream.code() is grpc.StatusCode.OK


async def test_register_of_config_is_not_one_of_fault(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()

    with pytest.raises(aio.AioRpcError) as refused:
        await client.subscribe(FAULT_SUBSCRIBE).read()

    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == "jobId=chat not registered, role=mindie-ms-controller"


async def test_role_is_required(serve: Serve, dial: Dial) -> None:
    serving = await serve()

    assert (await Client(dial(serving.port), role="").register(FAULT_REGISTER)).code == 409


async def test_query_without_upstream_is_unimplemented(serve: Serve, dial: Dial) -> None:
    serving = await serve()

    with pytest.raises(aio.AioRpcError) as refused:
        await Client(dial(serving.port)).register(FAULT_QUERY)

    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert FAULT_QUERY in (refused.value.details() or "")
