"""`HCCL_OP_RETRY_*`: whether collectives are run again after a link error, and how long that takes.

What the containers show decides: a variable, or an export in their command. Where they show nothing the
annotation `mindie-ha.io/hccl-op-retry` on the job does (`on`, or the text of the parameters); else it is
unknown, and nobody waits. Source: training contract §1.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

ANNOTATION = "mindie-ha.io/hccl-op-retry"
ENABLE, PARAMS = "HCCL_OP_RETRY_ENABLE", "HCCL_OP_RETRY_PARAMS"
_ENABLE = re.compile(r"\s*L([012])\s*:\s*([01])\s*\Z")
_MOST = {"MaxCnt": 10, "HoldTime": 60_000, "IntervalTime": 60_000}  # that CANN takes
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
    """`MaxCnt:3, HoldTime:5000, IntervalTime:1000`, each at most once, in its range; None: no such text."""
    found: dict[str, int] = {}
    for item in text.split(","):
        match = _PARAM.match(item)
        if match is None or match[1] in found or int(match[2]) > _MOST[match[1]]:
            return None
        found[match[1]] = int(match[2])
    default = OpRetry()
    return OpRetry(
        max_count=found.get("MaxCnt", default.max_count),
        hold_ms=found.get("HoldTime", default.hold_ms),
        interval_ms=found.get("IntervalTime", default.interval_ms),
    )


def op_retry_of(
    containers: Iterable[Callable[[str], str | None]], annotations: Mapping[str, str]
) -> OpRetry | None:
    """The link recovery of a job; None: off or unknown. A container is the reading of a variable in it."""
    for visible in containers:
        enabled = read_enable(visible(ENABLE) or "")
        if enabled is not None:
            return (read_op_retry(visible(PARAMS) or "") or OpRetry()) if any(enabled.values()) else None
    told = annotations.get(ANNOTATION, "")
    return OpRetry() if told == "on" else read_op_retry(told)
