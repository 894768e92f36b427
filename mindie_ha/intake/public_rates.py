"""How often one program may report: a token bucket for each, as plain data.

Every message costs one token, invalid ones too. A program without a bucket has none to take, which is why
an unknown one is told "too often" and not "invalid", as on the wire today.

Source: fault input contract §3.2, step 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

RATE_PER_S = 1.0
BURST = 100.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tokens left at a time (monotonic seconds)."""

    tokens: float
    at_s: float

    def filled(self, now_s: float) -> float:
        """Tokens at `now_s`."""
        return min(BURST, self.tokens + max(0.0, now_s - self.at_s) * RATE_PER_S)


@dataclass(frozen=True, slots=True)
class Rates:
    """The buckets of all programs that may report."""

    buckets: Mapping[str, Bucket] = field(default_factory=dict)

    @classmethod
    def full(cls, resources: Iterable[str], *, now_s: float) -> Rates:
        """Every program may send a burst."""
        return cls({resource: Bucket(BURST, now_s) for resource in resources})

    def take(self, resource: str, *, now_s: float) -> tuple[Rates, bool]:
        """One token of `resource`, if there is one."""
        bucket = self.buckets.get(resource)
        if bucket is None:
            return self, False
        tokens = bucket.filled(now_s)
        if tokens < 1:
            return self, False
        return Rates({**self.buckets, resource: Bucket(tokens - 1, now_s)}), True

    def wait_s(self, resource: str, *, now_s: float) -> float | None:
        """Seconds until `resource` has a token; None where it never will."""
        bucket = self.buckets.get(resource)
        if bucket is None:
            return None
        return max(0.0, (1 - bucket.filled(now_s)) / RATE_PER_S)


__all__ = ["BURST", "RATE_PER_S", "Bucket", "Rates"]
