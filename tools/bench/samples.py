"""Numbers of one figure and what is said of them.

Percentiles are nearest-rank: each is a value that was measured, so a P99 of 50 runs is their maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """What is reported of a sample; milliseconds."""

    runs: int
    p50_ms: float
    p99_ms: float
    max_ms: float


def summary(seconds: Sequence[float]) -> Summary:
    """The summary of at least one measurement; ValueError for none."""
    if not seconds:
        raise ValueError("nothing was measured")
    ordered = sorted(seconds)
    return Summary(
        runs=len(ordered),
        p50_ms=1000 * percentile(ordered, 50),
        p99_ms=1000 * percentile(ordered, 99),
        max_ms=1000 * ordered[-1],
    )


def percentile(ordered: Sequence[float], share: int) -> float:
    """The nearest-rank percentile of an ascending sequence."""
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)]
