"""What an address leaves unread is bounded, and costs nobody else anything."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.channels.outflow import Outflow
from mindie_ha.channels.settings import ServerSettings
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import Client
from tests.channels.fakes import table

A, B = "10.0.0.1", "10.0.0.2"


async def test_a_message_waits_for_its_own_address_only() -> None:
    outflow = Outflow(limit_bytes=100)
    entered = []

    async def send(ip: str, size: int, until: asyncio.Event) -> None:
        async with outflow.room(ip, size):
            entered.append((ip, size))
            await until.wait()

    first, second = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(send(A, size, event)) for size, event in ((500, first), (60, second))]
    tasks.append(asyncio.create_task(send(B, 60, second)))
    await asyncio.sleep(0)
    assert entered == [(A, 500), (B, 60)]  # one always has room
    first.set()
    await asyncio.sleep(0.01)
    assert entered == [(A, 500), (B, 60), (A, 60)]
    second.set()
    await asyncio.gather(*tasks)
    assert (outflow.unread(A), outflow.unread(B)) == (0, 0)


@given(
    limit=st.integers(1, 200),
    steps=st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 150), st.booleans()), max_size=30),
)
def test_never_more_than_the_bound_or_one_message(limit: int, steps: list[tuple[str, int, bool]]) -> None:
    async def play() -> None:
        outflow = Outflow(limit_bytes=limit)
        worst = 0

        async def send(ip: str, size: int) -> None:
            nonlocal worst
            async with outflow.room(ip, size):
                worst = max(worst, outflow.unread(ip) - max(limit, size))
                await asyncio.sleep(0)

        tasks = []
        for ip, size, cancelled in steps:
            tasks.append(asyncio.create_task(send(ip, size)))
            if cancelled:
                await asyncio.sleep(0)
                tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert worst <= 0
        assert (outflow.unread(A), outflow.unread(B)) == (0, 0)

    asyncio.run(play())


async def test_calls_of_one_address_are_bounded_and_freed(serve: Serve, dial: Dial) -> None:
    serving = await serve(settings=ServerSettings(listen="127.0.0.1:0", stop_grace_s=0.1, max_calls_per_ip=2))
    client = Client(dial(serving.port))
    await client.register()
    serving.mailboxes.publish(table(1))
    streams = [client.subscribe() for _ in range(2)]
    for stream in streams:
        await stream.read()

    with pytest.raises(aio.AioRpcError) as refused:
        await client.register()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "2 calls from 127.0.0.1 are open" in (refused.value.details() or "")

    streams[0].cancel()
    await asyncio.sleep(0.05)
    assert (await client.register()).code == 0
