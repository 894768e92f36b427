"""`HCCL_OP_RETRY_*`: whether collectives are run again after a link error, and how long that takes.

Source: training contract §1.14.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENABLE = re.compile(r"\s*L([012])\s*:\s*([01])\s*\Z")
_PARAM = re.compile(r"\s*(MaxCnt|HoldTime|IntervalTime)\s*:\s*([0-9]{1,9})\s*\Z")


@dataclass(frozen=True, slots=True)
class OpRetry:
    """Attempts, and milliseconds before the first and between two."""

    max_count: int = 3
    hold_ms: int = 5000
    interval_ms: int = 1000

    @property
    def whole_s(self) -> float:
        """How long all attempts take."""
        return (self.hold_ms + self.max_count * self.interval_ms) / 1000


def read_enable(text: str) -> dict[str, bool] | None:
    """`L0:0, L1:1, L2:1`; None: it is no such text."""
    found: dict[str, bool] = {}
    for item in text.split(","):
        match = _ENABLE.match(item)
        if match is None:
            return None
        found[f"L{match[1]}"] = match[2] == "1"
    return found


def read_op_retry(text: str) -> OpRetry | None:
    """`MaxCnt:3, HoldTime:5000, IntervalTime:1000`, each at most once; None: it is no such text."""
    found: dict[str, int] = {}
    for item in text.split(","):
        match = _PARAM.match(item)
        if match is None or match[1] in found:
            return None
        found[match[1]] = int(match[2])
    default = OpRetry()
    return OpRetry(
        max_count=found.get("MaxCnt", default.max_count),
        hold_ms=found.get("HoldTime", default.hold_ms),
        interval_ms=found.get("IntervalTime", default.interval_ms),
    )
