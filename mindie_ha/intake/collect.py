"""All faults that hit one workload now, each bound to the pod that it hits.

A card's fault belongs to the pod that holds the card at this moment, by the pod's own annotation and
UID; a pod that ended or is being deleted holds nothing. So a late report about a node that a pod has left
hits nobody. A lost node also hits pods that are being deleted there: nobody confirms their end.

Source: rescheduling contract D7-D10; cases 055, 057, 069, 137.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mindie_ha.intake.members import member_faults
from mindie_ha.intake.nodes import node_fault
from mindie_ha.intake.pods import pod_faults
from mindie_ha.model.faults import Fault
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import Pod
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.model.workloads import Workload


@dataclass(frozen=True, slots=True)
class Collected:
    """Faults of one workload, and when one that does not act yet will (wall time)."""

    faults: tuple[Fault, ...] = ()
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
) -> Collected:
    """`device_faults` are those of `device_info.parse`, by node."""
    listed = tuple(pods)
    node_found, wake_at_s = _node_faults(listed, nodes, settings=settings, now_s=now_s)
    return Collected(
        faults=(
            *_device_faults(listed, device_faults),
            *node_found,
            *pod_faults(workload, listed, now_s=now_s),
            *member_faults(workload, listed, ledger=ledger, now_s=now_s),
        ),
        wake_at_s=wake_at_s,
    )


def _device_faults(pods: tuple[Pod, ...], faults: Mapping[str, tuple[Fault, ...]]) -> Iterator[Fault]:
    for pod in pods:
        if not pod.alive or not pod.node:
            continue
        held = frozenset(pod.devices)
        for fault in faults.get(pod.node, ()):
            if fault.device in held:
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
