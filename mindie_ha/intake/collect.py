"""All faults that hit one workload now, each bound to the pod that it hits.

A card's fault belongs to the pod that holds the card at this moment, by the pod's own annotation and
UID; a pod that ended or is being deleted holds nothing. So a late report about a node that a pod has left
hits nobody. A lost node also hits pods that are being deleted there: nobody confirms their end. Faults of the
switch, the board and marks of the node hit every pod that lives there, with or without cards.

Source: rescheduling contract D7-D10, §2.2; cases 055, 057, 069, 137.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mindie_ha.intake.correlated import correlated
from mindie_ha.intake.device_lists import physical_name
from mindie_ha.intake.freshness import goes_stale_at_s
from mindie_ha.intake.members import member_faults
from mindie_ha.intake.nodes import node_fault
from mindie_ha.intake.pod_marks import mark_faults
from mindie_ha.intake.pods import pod_faults
from mindie_ha.intake.reactions import Reactions
from mindie_ha.intake.relations import RelationRules
from mindie_ha.intake.remarks import remarks
from mindie_ha.intake.silences import windows
from mindie_ha.model.decisions import Notice
from mindie_ha.model.faults import Fault
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import Pod
from mindie_ha.model.settings import Owner, Settings
from mindie_ha.model.views import NodeView
from mindie_ha.model.workloads import Role, Workload
from mindie_ha.policy.effects import LABEL_STRATEGY, subject_of


@dataclass(frozen=True, slots=True)
class Collected:
    """Faults of one workload, what else is to be told of it, and when that changes by itself (wall time)."""

    faults: tuple[Fault, ...] = ()
    remarks: tuple[Notice, ...] = ()
    wake_at_s: float | None = None


def collect(
    *,
    workload: Workload,
    pods: Iterable[Pod],
    nodes: Mapping[str, NodeView],
    device_faults: Mapping[str, tuple[Fault, ...]],
    ledger: WorkloadLedger,
    settings: Settings,
    now_s: float,
    annotations: Mapping[str, str] | None = None,
    rules: RelationRules | None = None,
) -> Collected:
    """`device_faults` are those of `device_info.parse`, by node; `annotations` those of the PodGroup, which
    count where the job has none of its own; `rules` join network faults with their triggers."""
    listed = tuple(pods)
    node_found, wake_at_s = _node_faults(listed, nodes, settings=settings, now_s=now_s)
    reactions = reactions_of(workload, annotations, settings=settings)
    told = (*_device_faults(listed, device_faults), *_trouble_faults(listed, nodes))
    together, changes_at_s = correlated(
        listed, told, rules=rules or RelationRules(), annotations=workload.annotations, now_s=now_s
    )
    made = workload.maker is not None
    marked = (fault for pod in listed for fault in mark_faults(pod, now_s=now_s, conclusive=made))
    judged = [reactions.to(fault, now_s=now_s) for fault in (*told, *together, *marked)]
    stale_s = settings.faults.report_stale_s
    guarded = made or settings.ownership.owner is Owner.VOLCANO
    stales = (goes_stale_at_s(view.report, stale_s=stale_s, now_s=now_s) for view in nodes.values())
    times = [wake_at_s, changes_at_s, *stales, *(later_s for _, later_s in judged)]
    return Collected(
        remarks=remarks(
            workload,
            findings=reactions.windows.findings,
            faults=[fault for fault, _ in judged],
            nodes={pod.node: nodes[pod.node] for pod in listed if pod.alive and pod.node in nodes},
        ),
        faults=(
            *(fault for fault, _ in judged),
            *node_found,
            *pod_faults(workload, listed, now_s=now_s),
            *member_faults(workload, listed, ledger=ledger, now_s=now_s, guarded=guarded),
        ),
        wake_at_s=min((time_s for time_s in times if time_s is not None), default=None),
    )


def reactions_of(
    workload: Workload, annotations: Mapping[str, str] | None, *, settings: Settings
) -> Reactions:
    """How `workload` answers faults, by its role, labels and annotations."""
    return Reactions(
        subject=subject_of(workload.role),
        windows=windows(
            {**(annotations or {}), **workload.annotations},
            role=Role.TRAINING
            if workload.service
            else workload.role,  # only MindIE's servers repeat requests
            link_s=workload.op_retry_s,
        ),
        strategy=workload.labels.get(LABEL_STRATEGY, ""),
        resetting_s=settings.faults.resetting_s,
    )


def _device_faults(pods: tuple[Pod, ...], faults: Mapping[str, tuple[Fault, ...]]) -> Iterator[Fault]:
    for pod in pods:
        found = faults.get(pod.node, ()) if pod.alive and pod.node else ()
        if not found:
            continue
        held = frozenset(map(physical_name, pod.devices))
        for fault in found:
            if fault.device in held:
                yield replace(fault, pod_uid=pod.uid, pod=pod.key.name)


def _trouble_faults(pods: tuple[Pod, ...], nodes: Mapping[str, NodeView]) -> Iterator[Fault]:
    for pod in pods:
        view = nodes.get(pod.node) if pod.node and pod.alive else None
        if view is None or not view.node.exists:
            continue
        for fault in view.troubles:
            yield replace(fault, pod_uid=pod.uid, pod=pod.key.name)


def _node_faults(
    pods: tuple[Pod, ...], nodes: Mapping[str, NodeView], *, settings: Settings, now_s: float
) -> tuple[list[Fault], float | None]:
    found: list[Fault] = []
    times: list[float] = []
    for pod in pods:
        view = nodes.get(pod.node) if pod.node and not pod.ended else None
        if view is None:
            continue
        fault, acts_at_s = node_fault(view.node, settings=settings.faults, now_s=now_s)
        if fault is not None:
            found.append(replace(fault, pod_uid=pod.uid, pod=pod.key.name))
        if acts_at_s is not None:
            times.append(acts_at_s)
    return found, min(times, default=None)
