"""Token buckets for unary calls and for queries.

Source: rank table contract §4.1. `/Recover/HealthCheck` has its own bucket, every other unary method shares
one; streams are not limited. On the wire all streaming methods, and only those, are called `Subscribe…`,
which is how a method that is only passed through is told apart.
"""

from __future__ import annotations

from mindie_ha.kit.clock import Clock

HEALTH_METHOD = "/Recover/HealthCheck"


class TokenBucket:
    """Lets `rate_per_s` through on average and as many at once; refuses the rest without waiting."""

    def __init__(self, *, rate_per_s: float, clock: Clock) -> None:
        self._rate_per_s = rate_per_s
        self._clock = clock
        self._tokens = rate_per_s
        self._filled_at_s = clock.monotonic()

    def allow(self) -> bool:
        """Take one token if there is one."""
        now_s = self._clock.monotonic()
        self._tokens = min(self._rate_per_s, self._tokens + (now_s - self._filled_at_s) * self._rate_per_s)
        self._filled_at_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class QueryGate:
    """Lets a few queries through at once, a few more wait a little, and turns the rest away.

    Source: rank table contract §5.1: 10 per second, 50 waiting, 5 s.
    """

    def __init__(
        self, *, clock: Clock, rate_per_s: float = 10.0, max_waiting: int = 50, patience_s: float = 5.0
    ) -> None:
        self._bucket = TokenBucket(rate_per_s=rate_per_s, clock=clock)
        self._clock = clock
        self._pause_s = 1.0 / rate_per_s
        self._max_waiting = max_waiting
        self._patience_s = patience_s
        self._waiting = 0

    async def admit(self) -> bool:
        """Whether the query may go on; waits for its turn, but not for long."""
        if self._bucket.allow():
            return True
        if self._waiting >= self._max_waiting:
            return False
        self._waiting += 1
        try:
            async with self._clock.timeout(self._patience_s):
                while not self._bucket.allow():
                    await self._clock.sleep(self._pause_s)
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True


class UnaryRates:
    """The buckets of one server."""

    def __init__(self, *, unary_per_s: float, health_per_s: float, clock: Clock) -> None:
        self._unary = TokenBucket(rate_per_s=unary_per_s, clock=clock)
        self._health = TokenBucket(rate_per_s=health_per_s, clock=clock)

    def allow(self, method: str) -> bool:
        """Whether a call of this full method name may go on."""
        if method.rpartition("/")[2].startswith("Subscribe"):
            return True
        return (self._health if method == HEALTH_METHOD else self._unary).allow()


__all__ = ["HEALTH_METHOD", "QueryGate", "TokenBucket", "UnaryRates"]
