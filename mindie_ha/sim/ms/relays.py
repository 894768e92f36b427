"""Dial out from a pod's own address.

The server tells pods apart by peer address, and gRPC offers no way to bind a client channel to a local
one. So a pod's channel dials a unix socket, and this relay connects onward from the pod's 127.x.y.z.
It moves bytes and nothing else: when one side closes, the other is closed; when the onward connection
fails, the inner one is closed, which gRPC sees as a failed connect. `route` is asked anew for each of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Self

from mindie_ha.sim.ms.routes import Route, straight

_CHUNK = 64 * 1024


class Relay:
    """Listens on a fresh unix socket; `target` is its gRPC address. Use as an async context manager."""

    def __init__(self, *, host: str, port: int, local_ip: str, route: Route = straight) -> None:
        self._host = host
        self._port = port
        self._local_ip = local_ip
        self._route = route
        self._directory = tempfile.TemporaryDirectory(prefix="mindie-ha-")
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def target(self) -> str:
        """What to give to a gRPC channel."""
        return f"unix:{self._path}"

    @property
    def _path(self) -> Path:
        return Path(self._directory.name) / "relay.sock"

    async def start(self) -> None:
        """Listen; a second call changes nothing."""
        if self._server is None:
            self._server = await asyncio.start_unix_server(self._accept, self._path)

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._directory.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._relay(reader, writer), name=f"relay {self._local_ip}")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with _closing(writer):
            host, port = self._route(self._host, self._port)
            try:
                onward = await asyncio.open_connection(host, port, local_addr=(self._local_ip, 0))
            except OSError:
                return  # the caller sees its connection closed
            async with _closing(onward[1]), asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, onward[1]))
                group.create_task(_pump(onward[0], writer))


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until either side ends, then close the receiving side so that the other direction ends too."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # a reset is an end
    finally:
        writer.close()


__all__ = ["Relay"]
