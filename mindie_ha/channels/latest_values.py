"""One latest-value mailbox per receiver, of tables or of fault messages (here: values).

A mailbox holds at most one value that is still to be handed over. A newer one replaces it, so a slow
receiver loses intermediate values and never the last one; an older generation never replaces a newer one;
a value whose digest the receiver already has is not handed over again. After a failed hand-over nobody
knows what the receiver has, so the next value is always sent.

Nothing here reads time or does I/O: gRPC streams (`mailboxes.py`) and delivery loops
(`deliveries.py`) share it.
"""

from __future__ import annotations

import asyncio
from typing import Generic, Protocol, TypeVar


class Versioned(Protocol):
    """A value with an order and an identity; both are plain attributes."""

    @property
    def generation(self) -> int:
        """Grows for one receiver."""
        ...

    @property
    def digest(self) -> str:
        """Equal for equal content."""
        ...


V = TypeVar("V", bound=Versioned)


class Mailbox(Generic[V]):
    """The value owed to one receiver; used by one loop, offered to by anybody on the same event loop."""

    def __init__(self, *, delivered_digest: str | None = None) -> None:
        self._pending: V | None = None
        self._in_flight: V | None = None
        self._delivered_digest = delivered_digest
        self._newest_generation: int | None = None
        self._wake = asyncio.Event()
        self._closed = False

    @property
    def owed(self) -> V | None:
        """The newest value that is not known to be with the receiver."""
        return self._pending or self._in_flight

    @property
    def pending(self) -> V | None:
        """The value that the next `take` gives."""
        return self._pending

    @property
    def closed(self) -> bool:
        """Whether the receiver is gone; nothing more will be taken."""
        return self._closed

    def offer(self, value: V) -> bool:
        """Put `value` in, unless it is older or the receiver has it; True if it is now to be handed over."""
        if self._closed or (
            self._newest_generation is not None and value.generation <= self._newest_generation
        ):
            return False
        self._newest_generation = value.generation
        if self._in_flight is not None and value.digest == self._in_flight.digest:
            # Already on its way; if that fails, this newer name of the same content is what is retried.
            self._in_flight, self._pending = value, None
            return False
        if self._in_flight is None and value.digest == self._delivered_digest:
            self._pending = None
            return False
        self._pending = value
        self._wake.set()
        return True

    async def take(self) -> V | None:
        """Wait for the next value and mark it in flight; None once the mailbox is closed."""
        while self._pending is None and not self._closed:
            await self.poked()
        if self._closed:
            return None
        self._in_flight, self._pending = self._pending, None
        return self._in_flight

    async def poked(self) -> None:
        """Wait for the next offer, `poke` or `close`; what was before this call does not count."""
        self._wake.clear()
        await self._wake.wait()

    def poke(self) -> None:
        """Wake the loop that uses this mailbox."""
        self._wake.set()

    def confirm(self) -> V | None:
        """What is in flight has been handed over; returned under its newest name, None after a `reset`."""
        value, self._in_flight = self._in_flight, None
        if value is None:
            return None
        self._delivered_digest = value.digest
        if self._pending is not None and self._pending.digest == self._delivered_digest:
            self._pending = None
        return value

    def give_back(self) -> bool:
        """What is in flight was not (or perhaps not) handed over; False if a newer value has replaced it."""
        self._delivered_digest = None
        value, self._in_flight = self._in_flight, None
        if value is None or self._pending is not None:
            return False
        self._pending = value
        return True

    def reset(self) -> None:
        """Forget everything: the receiver now belongs to another service, or its service begins anew."""
        self._pending = self._in_flight = None
        self._delivered_digest = None
        self._newest_generation = None

    def close(self) -> None:
        """Let `take` return None for ever."""
        self._closed = True
        self._wake.set()


__all__ = ["Mailbox"]
