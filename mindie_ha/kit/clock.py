"""The one clock that everything reads.

Deadlines inside a process use `monotonic`; what is shown to people, or must survive a restart of
ours, uses `wall`. Both come from the event loop, so a test on virtual time moves them together, and
`demo` runs them faster than life through `speed`.

Wall time does not jump: where the system's clock is set (NTP after a long while, a person), ours goes on
evenly and moves towards it by at most `SLEW`. Deadlines of a recovery are wall time, because they must
survive us; a jump would end all of them at once, or hold them for as long as it was wide.

Time-outs of the network and of the Lease are never scaled: those use `asyncio.timeout` directly. The deadline
of the Lease is read from a `Steady` source: `boot_time` in a real process, because on Linux the loop's clock
(CLOCK_MONOTONIC) goes on while a process is stopped (SIGSTOP) but not while the machine sleeps, and
CLOCK_BOOTTIME goes on in both.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

MIN_DELAY_S = 1e-5
SLEW = 0.1  # share of the time that passes by which wall time approaches the system's


Steady = Callable[[], float]
"""Seconds since an arbitrary origin, never scaled, never going back."""


def loop_time() -> float:
    """The running loop's time: virtual in tests."""
    return asyncio.get_running_loop().time()


def boot_time() -> float:
    """Seconds that passed in this machine, those included in which it or this process stood still."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


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
    the wall time at the moment of creation (tests, simulations); without it the system's clock is followed,
    smoothly. `system` is that clock.
    """

    def __init__(
        self,
        *,
        speed: float = 1.0,
        wall_origin_s: float | None = None,
        system: Callable[[], float] = time.time,
    ) -> None:
        if speed <= 0:
            raise ValueError(f"speed must be above 0, got {speed}")
        self.speed = speed
        self._loop_origin_s = asyncio.get_running_loop().time()
        self._follow_system = wall_origin_s is None and speed == 1.0
        self._system = system
        self._wall_origin_s = system() if wall_origin_s is None else wall_origin_s
        self._seen_s = 0.0  # monotonic time up to which `_wall_origin_s` has followed the system

    def monotonic(self) -> float:
        """Seconds of this clock since its creation."""
        return (asyncio.get_running_loop().time() - self._loop_origin_s) * self.speed

    def wall(self) -> float:
        """Unix time; follows the system's clock, without jumps, unless scaled or pinned."""
        now_s = self.monotonic()
        if self._follow_system:
            behind_s = self._system() - (self._wall_origin_s + now_s)
            most_s = (now_s - self._seen_s) * SLEW
            self._wall_origin_s += min(max(behind_s, -most_s), most_s)
            self._seen_s = now_s
        return self._wall_origin_s + now_s

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


__all__ = ["Clock", "LoopClock", "Steady", "boot_time", "loop_time"]
