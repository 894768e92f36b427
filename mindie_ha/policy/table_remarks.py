"""What people should be told about a table: who is missing from it and why, and what looks like a mistake.

Waiting for the operator is ordinary for a while. A wait that lasts longer than a rank table may take is told
with its most likely cause, so that nobody has to guess why an instance gets no traffic.
"""

from __future__ import annotations

from collections.abc import Iterator

from mindie_ha.model.decisions import Notice
from mindie_ha.model.ranktables import FindingCode
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.policy.drafts import Draft
from mindie_ha.policy.instances import judge_instance
from mindie_ha.ranktable.waits import why_initializing

_PASSING = frozenset({FindingCode.NOT_COMPLETED, FindingCode.POD_STALE, FindingCode.POD_MISSING})


def remarks(
    view: ScopeView, wanted: Draft, *, settings: Settings, now_s: float
) -> tuple[tuple[Notice, ...], float | None]:
    """Everything worth telling now, and when a wait becomes worth telling (wall time)."""
    notices = [*_left_out(view, wanted), *_mistakes(view)]
    times = []
    for item in view.workloads:
        if not _waits(item, wanted):
            continue
        told_at_s = _began_s(item) + settings.phases.table_s
        if now_s < told_at_s:
            times.append(told_at_s)
        else:
            notices.append(_incomplete(item))
    return tuple(notices), min(times, default=None)


def _left_out(view: ScopeView, wanted: Draft) -> Iterator[Notice]:
    """Instances that are left out for a reason that does not pass by itself."""
    for name, findings in sorted(wanted.left_out.items()):
        lasting = next((finding for finding in findings if finding.code not in _PASSING), None)
        if lasting is not None:
            message = f"{view.scope}: {name} is left out: {lasting.where}: {lasting.message}"
            key = f"left-out:{view.scope}:{name}:{lasting.code}"
            yield Notice("InstanceLeftOut", message, warning=True, key=key)


def _mistakes(view: ScopeView) -> Iterator[Notice]:
    """A shared jobID, tables that belong to nobody, instances without a deploy label."""
    if view.table is not None and view.table.namesakes:
        others = ", ".join(view.table.namesakes)
        message = f"{view.scope}: jobID {view.scope.name} is also used in {others}; give each service its own"
        yield Notice("SharedJobId", message, warning=True, key=f"job-id:{view.scope}:{others}")
    for rings in view.orphan_rings:
        message = f"{rings.key} belongs to no AscendJob that exists; it is not used"
        yield Notice("OrphanTable", message, warning=True, key=f"orphan:{rings.key}")
    for item in view.workloads:
        if item.workload.role is not Role.SERVER or item.rings is None:
            continue
        unlabelled = [one for one in judge_instance(item).findings if one.code == FindingCode.DEPLOY_NONE]
        if unlabelled:
            message = f"{item.rings.key}: {unlabelled[0].message}"
            yield Notice("NoDeployLabel", message, warning=True, key=f"deploy-none:{item.rings.key}")


def _waits(item: WorkloadView, wanted: Draft) -> bool:
    """Whether the instance is kept out by nothing but its own table, and no recovery speaks for it."""
    workload = item.workload
    if workload.role is not Role.SERVER or workload.deleting or item.ledger.recovery is not None:
        return False
    findings = wanted.left_out.get(workload.key.name, ())
    return bool(item.pods) and bool(findings) and all(finding.code in _PASSING for finding in findings)


def _began_s(item: WorkloadView) -> float:
    """Since when the table could have been complete: its last change, or that of the pods."""
    times = [pod.created_at_s for pod in item.pods]
    return max([*times, item.rings.changed_at_s if item.rings is not None else 0.0])


def _incomplete(item: WorkloadView) -> Notice:
    key = item.workload.key
    state = judge_instance(item)
    initializing = state.table is not None and not state.table.completed
    cause = why_initializing(item.pods, replicas=item.workload.replicas) if initializing else state.reason
    message = f"{key}: not in the table, its hccl.json is not complete for its pods: {cause}"
    return Notice("TableIncomplete", message, warning=True, key=f"incomplete:{item.workload.uid}:{cause}")
