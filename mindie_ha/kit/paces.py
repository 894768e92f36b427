"""A bound on how often something is done, that asks nothing but the clock.

After a rest so many turns as fit into one second are taken at once, then they come evenly. Each caller
reserves its turn when it asks, so turns come in the order of asking, and a wait is one sleep for what is left
until then. Nothing is computed again while waiting: a rest that is too small for the clock to move by, which
a loop of "is it time yet" would turn round on for ever, cannot arise.
"""

from __future__ import annotations

from mindie_ha.kit.clock import Clock

BURST_S = 1.0  # of the rate may be taken at once


class Pace:
    """At most `per_s` turns a second on average."""

    def __init__(self, *, clock: Clock, per_s: float) -> None:
        if per_s <= 0:
            raise ValueError(f"a pace is above 0 a second, got {per_s}")
        self._clock = clock
        self._gap_s = 1.0 / per_s
        self._ahead_s = max(0.0, BURST_S - self._gap_s)
        self._next_s = float("-inf")  # when the next turn is due, if none is taken ahead of time

    async def turn(self) -> None:
        """Wait for a turn. One that is given up while waiting stays taken."""
        now_s = self._clock.monotonic()
        due_s = max(self._next_s, now_s)
        self._next_s = due_s + self._gap_s
        wait_s = due_s - self._ahead_s - now_s
        if wait_s > 0:
            await self._clock.sleep(wait_s)


__all__ = ["Pace"]
