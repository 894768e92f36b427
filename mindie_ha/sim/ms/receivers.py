"""A configured push target: an HTTP server that takes tables by POST and remembers them.

A judge reads `pushes`: every request with the answer it got, also those it was told to refuse
(`fail_next`) or to answer late (`delay_s`). It checks nothing: what was pushed is recorded as it came.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

from mindie_ha.kit.clock import Clock

GENERATION_HEADER = "X-Mindie-Ha-Generation"
DIGEST_HEADER = "X-Mindie-Ha-Digest"
_LARGEST_BODY = 64 * 1024 * 1024
_KEPT_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class Push:
    """One request. `generation` and `digest` are the headers as sent, empty where absent."""

    at_s: float
    peer: str
    path: str
    generation: str
    digest: str
    body: bytes
    status: int
    """What was answered."""


class PushReceiver:
    """Use as an async context manager, or `start` and `close`."""

    def __init__(self, *, clock: Clock, host: str = "127.0.0.1", port: int = 0) -> None:
        self._clock = clock
        self._host = host
        self._port = port
        self._failures = 0
        self._failure_status = 503
        self._runner: web.AppRunner | None = None
        self._arrived = asyncio.Event()
        self.pushes: list[Push] = []
        self.delay_s = 0.0
        """Seconds of the clock before an answer."""

    @property
    def received(self) -> list[Push]:
        """The pushes that were accepted, oldest first."""
        return [push for push in self.pushes if push.status < 300]

    @property
    def url(self) -> str:
        """Where to push, once started."""
        return f"http://{self._host}:{self._port}/ranktable"

    def fail_next(self, times: int, *, status: int = 503) -> None:
        """Answer the next `times` requests with `status`."""
        self._failures = times
        self._failure_status = status

    async def wait_for(self, count: int) -> None:
        """Wait until `count` pushes were accepted; bound it with a timeout."""
        while len(self.received) < count:
            self._arrived.clear()
            await self._arrived.wait()

    async def start(self) -> None:
        """Listen; OSError when the address is taken."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_post("/{path:.*}", self._take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        self._runner = runner
        await web.TCPSite(runner, self._host, self._port).start()
        self._port = runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        status = 200
        if self._failures > 0:
            self._failures -= 1
            status = self._failure_status
        if self.delay_s > 0:
            await self._clock.sleep(self.delay_s)
        push = Push(
            at_s=self._clock.monotonic(),
            peer=request.remote or "",
            path=request.path,
            generation=request.headers.get(GENERATION_HEADER, ""),
            digest=request.headers.get(DIGEST_HEADER, ""),
            body=body,
            status=status,
        )
        self.pushes.append(push)
        del self.pushes[:-_KEPT_RECORDS]
        self._arrived.set()
        return web.Response(status=status)


__all__ = ["DIGEST_HEADER", "GENERATION_HEADER", "Push", "PushReceiver"]
