"""The work queue: keys in, one worker per key at a time out.

One key is one slot: adding it again before it is taken changes nothing, adding it while a worker has it makes
it due once more after `done`. Urgent keys (faults) go first; inside a priority the order is first come, first
served. Timers (`add_at`) wait beside the slots: the earliest per key wins and a plain `add` does not cancel
one. Nothing is lost: a key that finds the queue full comes again by itself, and is counted in `refused`.

Single event loop; `add`, `done` and the rest never block.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

from mindie_ha.kit.backoff import Backoff
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy

K = TypeVar("K", bound=Hashable)
FULL_S = 1.0  # a key that found no room is tried again after so long


class KeyedQueue(Generic[K]):
    """A coalescing queue of keys with two priorities, timers and back-off per key."""

    def __init__(
        self,
        *,
        clock: Clock,
        entropy: Entropy,
        bound: int = 100_000,
        first_s: float = 0.1,
        max_s: float = 30.0,
    ) -> None:
        self._clock = clock
        self._bound = bound
        self._backoff = Backoff(entropy=entropy, first_s=first_s, max_s=max_s)
        self._urgent: dict[K, None] = {}  # dicts as ordered sets
        self._plain: dict[K, None] = {}
        self._running: dict[K, bool | None] = {}  # key -> due again? None: no, else whether urgent
        self._timers: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._pushed = 0
        self._failures: dict[K, int] = {}
        self._held: dict[K, float] = {}  # not given out before this monotonic time
        self._wakeup = asyncio.Event()
        self.refused = 0  # keys turned away because the queue was full

    def __len__(self) -> int:
        """Keys that are due now and not yet taken."""
        return len(self._urgent) + len(self._plain)

    def add(self, key: K, *, urgent: bool = False) -> bool:
        """Make `key` due now. False where the queue is full: then it is tried again a little later."""
        if key in self._running:
            self._running[key] = urgent or bool(self._running[key])
            return True
        held_until_s = self._held.get(key)
        if held_until_s is not None:
            if self._clock.monotonic() < held_until_s:
                return self.add_at(key, held_until_s)
            del self._held[key]
        if key in self._urgent:
            return True
        if key in self._plain:
            if urgent:
                del self._plain[key]
                self._urgent[key] = None
            return True
        if len(self) >= self._bound:
            self.refused += 1
            self.add_at(key, self._clock.monotonic() + FULL_S)
            return False
        (self._urgent if urgent else self._plain)[key] = None
        self._wakeup.set()
        return True

    def add_at(self, key: K, due_s: float) -> bool:
        """Make `key` due at a monotonic time; an earlier timer of the same key stays."""
        known_s = self._timers.get(key)
        if known_s is not None and known_s <= due_s:
            return True
        if known_s is None and len(self._timers) >= self._bound:
            self.refused += 1
            return False
        self._timers[key] = due_s
        self._pushed += 1  # keys need no order among themselves
        heapq.heappush(self._heap, (due_s, self._pushed, key))
        self._wakeup.set()
        return True

    async def get(self) -> K:
        """The next due key; it belongs to the caller until `done`. Waits until there is one."""
        while True:
            self._release_due()
            for ready in (self._urgent, self._plain):
                if ready:
                    key = next(iter(ready))
                    del ready[key]
                    self._running[key] = None
                    return key
            await self._wait()

    def done(self, key: K) -> None:
        """Give the key back; if it was added meanwhile it is due again."""
        again = self._running.pop(key, None)
        if again is not None:
            self.add(key, urgent=again)

    def retry(self, key: K) -> float:
        """Count a failure of `key` and make it due after its back-off; the delay in seconds."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay_s = self._backoff.after(self._failures[key])
        self.add_at(key, self._clock.monotonic() + delay_s)
        return delay_s

    def hold(self, key: K, delay_s: float) -> None:
        """Give `key` to nobody for a while, whoever adds it: it comes then, once."""
        self._held[key] = self._clock.monotonic() + delay_s

    def forget(self, key: K) -> None:
        """A success: the next failure of `key` is its first."""
        self._failures.pop(key, None)

    def _release_due(self) -> None:
        now_s = self._clock.monotonic()
        while self._heap and (self._heap[0][0] <= now_s or self._stale(self._heap[0])):
            entry = heapq.heappop(self._heap)
            if not self._stale(entry):
                key = entry[2]
                del self._timers[key]
                if not self.add(key):  # full: stay a timer, so that it is not lost
                    self._timers[key] = now_s + FULL_S
                    heapq.heappush(self._heap, (now_s + FULL_S, entry[1], key))

    def _stale(self, entry: tuple[float, int, K]) -> bool:
        return self._timers.get(entry[2]) != entry[0]

    async def _wait(self) -> None:
        self._wakeup.clear()
        if not self._heap:
            await self._wakeup.wait()
            return
        try:
            async with self._clock.timeout(self._heap[0][0] - self._clock.monotonic()):
                await self._wakeup.wait()
        except TimeoutError:
            return  # a timer is due


__all__ = ["KeyedQueue"]
