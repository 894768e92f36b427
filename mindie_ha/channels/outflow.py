"""Bounds what the readers of one address leave unread.

A stream holds one message in flight, and the transport copies it; an address with many streams that read
nothing would make us hold as many copies. So a message is made and handed over only when its address has
room for it; whoever waits is in its own write time-out. One address never waits for another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Address:
    __slots__ = ("freed", "unread", "waiting")

    def __init__(self) -> None:
        self.unread = 0
        self.waiting = 0
        self.freed = asyncio.Event()


class Outflow:
    """Bytes on their way, by address; one message always has room, however large."""

    def __init__(self, *, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._addresses: dict[str, _Address] = {}

    def unread(self, ip: str) -> int:
        """Bytes that the readers of an address have not taken yet."""
        return self._addresses[ip].unread if ip in self._addresses else 0

    @asynccontextmanager
    async def room(self, ip: str, size: int) -> AsyncIterator[None]:
        """Wait until `size` bytes fit, and hold their place for the time of the block."""
        address = self._addresses.setdefault(ip, _Address())
        address.waiting += 1
        held = 0
        try:
            while address.unread and address.unread + size > self._limit_bytes:
                await address.freed.wait()
            held = size
            address.unread += held
            yield
        finally:
            address.waiting -= 1
            address.unread -= held
            address.freed.set()
            address.freed = asyncio.Event()
            if not address.waiting:
                del self._addresses[ip]


__all__ = ["Outflow"]
