"""The one clock that everything reads.

Deadlines inside a process use `monotonic`; what is shown to people, or must survive a restart of
ours, uses `wall`. Both come from the event loop, so a test on virtual time moves them together, and
`demo` runs them faster than life through `speed`.

Time-outs of the network and of the Lease are never scaled: those use `asyncio.timeout` directly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Protocol

MIN_DELAY_S = 1e-5


class Clock(Protocol):
    """Reads and waits for time; all values in seconds."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary origin; never goes back."""
        ...

    def wall(self) -> float:
        """Unix time."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Wait `delay_s` of this clock's time."""
        ...

    def timeout(self, delay_s: float) -> asyncio.Timeout:
        """Context manager that raises TimeoutError after `delay_s` of this clock's time."""
        ...


class LoopClock:
    """A clock on the running event loop.

    `speed` is how many seconds of this clock pass in one second of the loop. `wall_origin_s` fixes
    the wall time at the moment of creation (tests, simulations); without it the real wall clock is used,
    and it may jump as real ones do.
    """

    def __init__(self, *, speed: float = 1.0, wall_origin_s: float | None = None) -> None:
        if speed <= 0:
            raise ValueError(f"speed must be above 0, got {speed}")
        self.speed = speed
        self._loop_origin_s = asyncio.get_running_loop().time()
        self._follow_system = wall_origin_s is None and speed == 1.0
        self._wall_origin_s = time.time() if wall_origin_s is None else wall_origin_s

    def monotonic(self) -> float:
        """Seconds of this clock since its creation."""
        return (asyncio.get_running_loop().time() - self._loop_origin_s) * self.speed

    def wall(self) -> float:
        """Unix time; follows the system's clock unless scaled or pinned."""
        if self._follow_system:
            return time.time()
        return self._wall_origin_s + self.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Wait `delay_s` of this clock's time; a delay below 0 only yields to the loop."""
        await asyncio.sleep(self._of_loop(delay_s))

    def timeout(self, delay_s: float) -> asyncio.Timeout:
        """Context manager that raises TimeoutError after `delay_s` of this clock's time."""
        return asyncio.timeout(self._of_loop(delay_s))

    def _of_loop(self, delay_s: float) -> float:
        """A delay in the loop's time; never so short that the loop's clock would not move by it.

        Without that, "wait for what is left until the deadline" turns round for ever on virtual time
        when a rounding error is all that is left.
        """
        return max(delay_s / self.speed, MIN_DELAY_S) if delay_s > 0 else 0.0


async def ticks(clock: Clock, period_s: float) -> AsyncIterator[float]:
    """Yield the monotonic time every `period_s`, for ever; drift is not made up for."""
    while True:
        yield clock.monotonic()
        await clock.sleep(period_s)


__all__ = ["Clock", "LoopClock", "ticks"]
