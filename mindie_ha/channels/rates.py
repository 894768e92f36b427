"""Token buckets for unary calls.

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


__all__ = ["HEALTH_METHOD", "TokenBucket", "UnaryRates"]
