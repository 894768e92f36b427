"""Connections of one address to a port are bounded, whatever they send."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from mindie_ha.channels.connection_guard import ConnectionGuard, PortLimits
from mindie_ha.channels.settings import ServerSettings
from mindie_ha.kit.clock import LoopClock
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import Client
from tests.channels.fakes import eventually, table


def guard(cut: list[tuple[int, str, int]], *, exempt: str = "", every_s: float = 0.05) -> ConnectionGuard:
    return ConnectionGuard(
        clock=LoopClock(),
        on_cut=lambda port, ip, number: cut.append((port, ip, number)),
        exempt=lambda ip: ip == exempt,
        every_s=every_s,
    )


@asynccontextmanager
async def bare(
    port: int, count: int, *, source: str = "127.0.0.9"
) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Connections that never say anything."""
    opened = [await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0)) for _ in range(count)]
    try:
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.close()


@contextmanager
def no_file_left() -> Iterator[None]:
    """The process cannot open one file more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, before[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in taken:
            os.close(number)


async def ended(readers: list[asyncio.StreamReader]) -> int:
    """How many of them were hung up on."""
    await asyncio.sleep(0.1)
    count = 0
    for reader in readers:
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(0.01):
                while await reader.read(1024):
                    pass
            count += 1
    return count


async def test_the_youngest_connections_above_the_bound_are_closed_and_others_live_on(
    serve: Serve, dial: Dial
) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    stream = client.subscribe()
    serving.mailboxes.publish(table(1))
    assert (await stream.read()).rankTable == table(1).text
    cut: list[tuple[int, str, int]] = []
    guarding = guard(cut)
    guarding.watch(serving.port, PortLimits(per_address=3))

    async with bare(serving.port, 3) as old:
        guarding.sweep()
        async with bare(serving.port, 5) as young:
            await asyncio.sleep(0.05)  # until the server has accepted them
            assert dict(guarding.sweep()) == {(serving.port, "127.0.0.9"): 5}
            assert (await ended(young), await ended(old)) == (5, 0)

    serving.mailboxes.publish(table(2))
    assert (await stream.read()).rankTable == table(2).text


async def test_it_looks_by_itself_and_tells_what_it_cut(serve: Serve) -> None:
    serving = await serve()
    cut: list[tuple[int, str, int]] = []
    guarding = guard(cut)
    guarding.watch(serving.port, PortLimits(per_address=1))
    running = asyncio.create_task(guarding.run())

    async with bare(serving.port, 4):
        await eventually(lambda: sum(number for _, _, number in cut) == 3)

    running.cancel()
    assert {(port, ip) for port, ip, _ in cut} == {(serving.port, "127.0.0.9")}


async def test_a_flood_that_took_all_open_files_is_cut_too(serve: Serve) -> None:
    serving = await serve()
    cut: list[tuple[int, str, int]] = []
    guarding = guard(cut, every_s=0.5)
    guarding.watch(serving.port, PortLimits(per_address=2))
    await asyncio.to_thread(guarding.sweep)  # what a thread needs is imported with its first use
    before = len(os.listdir("/proc/self/fd"))
    running = asyncio.create_task(guarding.run())

    async with bare(serving.port, 8):
        await eventually(lambda: len(os.listdir("/proc/self/fd")) >= before + 16)  # both ends of all
        with no_file_left():
            await eventually(lambda: sum(number for _, _, number in cut) == 6)
    running.cancel()


@pytest.mark.parametrize(
    ("limits", "exempt", "expected"),
    [
        pytest.param(PortLimits(per_address=2), "127.0.0.9", 0, id="a proxy may have as many as it needs"),
        pytest.param(PortLimits(per_address=0, total=3), "", 2, id="all addresses together"),
        pytest.param(PortLimits(per_address=100), "", 0, id="below the bound"),
    ],
)
async def test_bounds(serve: Serve, limits: PortLimits, exempt: str, expected: int) -> None:
    serving = await serve()
    guarding = guard([], exempt=exempt)
    guarding.watch(serving.port, limits)

    async with bare(serving.port, 5) as readers:
        await asyncio.sleep(0.05)
        guarding.sweep()
        assert await ended(readers) == expected


async def test_other_ports_and_files_of_the_process_are_left_alone(serve: Serve) -> None:
    guarded, other = await serve(), await serve()
    guarding = guard([])
    guarding.watch(guarded.port, PortLimits(per_address=1))

    async with bare(other.port, 5) as readers:
        await asyncio.sleep(0.05)
        assert not guarding.sweep()
        assert await ended(readers) == 0


async def test_a_connection_that_says_nothing_and_one_without_a_call_are_closed(serve: Serve) -> None:
    serving = await serve(
        settings=ServerSettings(
            listen="127.0.0.1:0", stop_grace_s=0.1, handshake_s=0.3, idle_connection_s=0.3
        )
    )
    hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0" + b"\0\0\0\x04\x01\0\0\0\0"
    for said in (b"", hello):
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(said)
        async with asyncio.timeout(3):
            while await reader.read(1024):
                pass
        writer.close()
