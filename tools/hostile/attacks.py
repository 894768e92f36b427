"""What clients that mean harm do; each attack returns one line on what became of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import aiohttp
from grpc import aio

from tools.hostile.frames import Line, call, client_info, hello, unread_streams

REGISTER, SUBSCRIBE = "/config.Config/Register", "/config.Config/SubscribeRankTable"
METHODS = (REGISTER, SUBSCRIBE, "/fault.Fault/Register", "/fault.Fault/GetFaultMsgSignal",
           "/PubFault/SendPublicFault", "/no.Such/Method")  # fmt: skip
SOURCE = "127.0.0.66"
LARGE = 100 << 20
HOLD_S = 3.0  # how long what stands is left standing


@dataclass(frozen=True)
class Target:
    """The controller that is attacked."""

    grpc: int
    http: int
    job_id: str


Attack = Callable[[Target], Awaitable[str]]


def _channel(target: Target) -> aio.Channel:
    options = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
    return aio.insecure_channel(f"127.0.0.1:{target.grpc}", options=options)


async def _each(target: Target, requests: list[tuple[str, bytes]], *, at_once: int) -> Counter[str]:
    """Call all of them; how they ended."""
    ends: Counter[str] = Counter()
    waiting = iter(requests)

    async def work(channel: aio.Channel) -> None:
        for method, message in waiting:
            try:
                await channel.unary_unary(method)(message, timeout=5)
                ends["OK"] += 1
            except aio.AioRpcError as error:
                ends[error.code().name] += 1

    async with _channel(target) as channel:
        await asyncio.gather(*(work(channel) for _ in range(at_once)))
    return ends


async def malformed(target: Target) -> str:
    """Bytes that are no message, on every method."""
    rng = random.Random(1)
    rubbish = [b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05ab", b"\xff" * 64, b"\x0a\x02\xc3\x28"]
    requests = [
        (rng.choice(METHODS), rng.choice((*rubbish, rng.randbytes(rng.randrange(1, 4096)))))
        for _ in range(3000)
    ]
    return _shown(await _each(target, requests, at_once=30))


async def large(target: Target) -> str:
    """Messages of 100 MB by gRPC and HTTP, and one that only claims to be."""
    ends = await _each(target, [(REGISTER, b"x" * LARGE)] * 3, at_once=2)
    async with Line(target.grpc, source=SOURCE) as line:
        await line.say(hello(window=65535), call(1, REGISTER, b"x" * 16_000, claims=LARGE))
        await line.listen(HOLD_S)
    async with aiohttp.ClientSession() as session:
        try:
            url = f"http://127.0.0.1:{target.http}/v1/faults"
            async with session.post(url, data=b"x" * LARGE) as answer:
                ends[f"HTTP {answer.status}"] += 1
        except aiohttp.ClientError as error:
            ends[type(error).__name__] += 1
    return _shown(ends)


async def registrations(target: Target) -> str:
    """More job ids than are remembered, each as long as a name may be."""
    requests = [(REGISTER, _long_name(number)) for number in range(12_000)]
    ends: Counter[str] = Counter()
    for at in range(0, len(requests), 800):  # below the rate at which calls are refused
        ends += await _each(target, requests[at : at + 800], at_once=40)
        await asyncio.sleep(0.5)
    return _shown(ends)


def _long_name(number: int) -> bytes:
    name = f"{number:06d}".ljust(250, "x").encode()
    return b"\x0a" + bytes((len(name) & 0x7F | 0x80, len(name) >> 7)) + name


async def slow_readers(target: Target) -> str:
    """Streams that take not one byte."""
    info = client_info(target.job_id, "slow")
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(Line(target.grpc, source=SOURCE)) for _ in range(12)]
        for line in lines:
            await line.say(hello(window=0), unread_streams((REGISTER,), (info,), count=1))
        await asyncio.sleep(0.5)
        for line in lines:
            streams = b"".join(call(number, SUBSCRIBE, info) for number in range(3, 3 + 2 * 40, 2))
            await line.say(streams)
        await asyncio.sleep(HOLD_S)
        standing = sum([await line.listen(0.05) for line in lines])
    return f"{len(lines) * 40} streams on {len(lines)} connections, {standing} of them stood"


async def half_open(target: Target) -> str:
    """Connections that say nothing, or half of something, and never end."""
    said = (b"", hello(window=65535)[:20], hello(window=65535) + b"\0\xff\xff\0")
    async with AsyncExitStack() as stack:
        lines = []
        for number in range(700):
            with suppress(OSError):
                line = await stack.enter_async_context(Line(target.grpc, source=SOURCE))
                lines.append(line)
                with suppress(ConnectionError):
                    await line.say(said[number % len(said)])
        await asyncio.sleep(HOLD_S)
        open_ = sum(await asyncio.gather(*(line.listen(0.5) for line in lines)))
    return f"{len(lines)} connections, {open_} were left open"


ATTACKS: dict[str, Attack] = {
    "malformed messages": malformed,
    "messages of 100 MB": large,
    "12,000 registrations": registrations,
    "slow readers": slow_readers,
    "half-open connections": half_open,
}


def _shown(ends: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(ends.items()))


__all__ = ["ATTACKS", "Attack", "Target"]
