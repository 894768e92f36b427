"""A short wait that turns a burst of completions into one table.

When a service starts, or several instances come back together, their `hccl.json` files complete within
moments of each other. Each table costs MS Controller a round of role posting, so a newly complete instance
waits up to `gather_s` while a sibling has all its pods placed and only its table is missing. The last one
to complete waits for nobody; what is already published never waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mindie_ha.model.ranktables import Finding, FindingCode
from mindie_ha.model.views import WorkloadView
from mindie_ha.ranktable.hold import Held

_COMING = frozenset({FindingCode.NOT_COMPLETED, FindingCode.POD_STALE, FindingCode.POD_MISSING})


def gather(
    new: Iterable[str],
    *,
    since_s: Mapping[str, float],
    siblings: Iterable[WorkloadView],
    left_out: Mapping[str, tuple[Finding, ...]],
    gather_s: float,
    now_s: float,
) -> tuple[Held, ...]:
    """The newly complete instances to leave out for the moment. `left_out` names the incomplete ones."""
    coming = sorted(
        item.workload.key.name
        for item in siblings
        if item.workload.key.name in left_out and _is_coming(item, left_out[item.workload.key.name])
    )
    if not coming:
        return ()
    reason = f"waits a moment for {', '.join(coming)}, so that one table shows both"
    times = {name: min(since_s[name], now_s) + gather_s for name in new}
    return tuple(
        Held(key=name, until_s=until_s, reason=reason)
        for name, until_s in sorted(times.items())
        if now_s < until_s
    )


def _is_coming(item: WorkloadView, findings: tuple[Finding, ...]) -> bool:
    """Whether only the operator's table is missing: every pod is there and has its node."""
    alive = [pod for pod in item.pods if pod.alive]
    placed = len(alive) == item.workload.replicas and all(pod.node for pod in alive)
    return placed and all(finding.code in _COMING for finding in findings)
