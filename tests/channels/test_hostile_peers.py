"""Clients that mean harm: what they send, what they do not read, and what others notice (nothing)."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from grpc import aio

from mindie_ha.channels.settings import ServerSettings
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import Client
from tests.channels.fakes import CHAT, eventually, table
from tools.hostile.frames import Line, call, client_info, hello

REGISTER, SUBSCRIBE = "/config.Config/Register", "/config.Config/SubscribeRankTable"
METHODS = (
    REGISTER,
    SUBSCRIBE,
    "/fault.Fault/Register",
    "/fault.Fault/SubscribeFaultMsgSignal",
    "/fault.Fault/GetFaultMsgSignal",
    "/PubFault/SendPublicFault",
    "/no.Such/Method",
    "//",
    "/x",
)
RUBBISH = (b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05ab", b"\xff" * 64, b"\x0a\x02\xc3\x28", b"\x0a" * 5000)
EVIL = "127.0.0.66"


def settings(**changes: int) -> ServerSettings:
    return ServerSettings(listen="127.0.0.1:0", stop_grace_s=0.1, **changes)  # type: ignore[arg-type]


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096 / (1 << 20)


async def test_rubbish_on_every_method_is_an_error_of_its_own_call(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    channel = dial(serving.port)
    rng = random.Random(7)
    messages = [*RUBBISH, *(rng.randbytes(rng.randrange(1, 300)) for _ in range(15))]

    at_once = asyncio.Semaphore(40)  # a client that opens more than 64 is told so by its own transport

    async def end_of(method: str, message: bytes) -> grpc.StatusCode:
        async with at_once:
            stream = channel.unary_stream(method)(message, timeout=0.5)
            try:
                await stream.read()
            except aio.AioRpcError as error:
                return error.code()
            finally:
                stream.cancel()
        return grpc.StatusCode.OK

    ends = await asyncio.gather(*(end_of(method, message) for method in METHODS for message in messages))
    allowed = {grpc.StatusCode.OK, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNIMPLEMENTED}
    # Some rubbish is a message after all: nobody of that name is registered.
    assert set(ends) <= {*allowed, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED}
    assert ends.count(grpc.StatusCode.INTERNAL) > 20
    assert (await Client(channel).register()).code == 0


@pytest.mark.parametrize("claims", [5 << 20, 100 << 20, 0xFFFFFFFF])
async def test_a_message_that_claims_to_be_large_is_refused_before_it_comes(
    serve: Serve, claims: int
) -> None:
    serving = await serve()
    async with Line(serving.port, source=EVIL) as line:
        await line.say(hello(window=65535), call(1, REGISTER, b"x" * 1000, claims=claims))
        async with asyncio.timeout(3):
            while b"larger than max" not in line.received:
                await line.listen(0.05)


async def test_readers_that_read_nothing_cost_their_bound_and_delay_nobody(serve: Serve, dial: Dial) -> None:
    serving = await serve(settings=settings(unread_bytes_per_ip=4 << 20))
    text = "x" * (1 << 20)
    honest = Client(dial(serving.port))
    await honest.register()
    stream = honest.subscribe()
    serving.mailboxes.publish(table(1, text=f"{text}1"))
    await stream.read()
    info = client_info("chat", "slow")
    before = resident_mb()
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(Line(serving.port, source=EVIL)) for _ in range(3)]
        for line in lines:
            streams = [call(number, SUBSCRIBE, info) for number in range(1, 121, 2)]
            await line.say(hello(window=0), *streams)
        await eventually(lambda: len(serving.mailboxes.subscribers(CHAT)) == 181)
        for generation in range(2, 5):
            serving.mailboxes.publish(table(generation, text=f"{text}{generation}"))
            async with asyncio.timeout(2):
                assert (await stream.read()).rankTable.endswith(str(generation))
        assert len(serving.mailboxes.owed(CHAT)) >= 100
        assert {one.generation for one in serving.mailboxes.owed(CHAT)} <= {1, 2, 3, 4}
        grown = resident_mb() - before
    assert grown < 50, f"180 readers of 1 MiB that read nothing cost {grown:.0f} MB"
    await eventually(lambda: len(serving.mailboxes.subscribers(CHAT)) == 1)


async def test_connections_that_break_off_in_the_middle_of_anything_leave_nothing(
    serve: Serve, dial: Dial
) -> None:
    serving = await serve()
    whole = hello(window=65535) + call(1, REGISTER, client_info("chat", "x"))
    for length in range(0, len(whole), 7):
        async with Line(serving.port, source=EVIL) as line:
            await line.say(whole[:length])
    client = Client(dial(serving.port))
    assert (await client.register()).code == 0
    serving.mailboxes.publish(table(1))
    assert (await client.subscribe().read()).rankTable == table(1).text
    assert len(serving.mailboxes.subscribers(CHAT)) == 1
