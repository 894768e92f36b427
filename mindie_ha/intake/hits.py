"""Whom a fault of a node or card hits, and what it does to each: acts, acts later, or is only recorded.

The same rules as for decisions (`collect`), asked for people who look at the fleet: each answer has a reason.

Source: `policy/effects.py`; fault input contract §4.4, §4.8.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mindie_ha.intake.collect import reactions_of
from mindie_ha.intake.device_lists import physical_name
from mindie_ha.model.faults import Cause, Fault
from mindie_ha.model.pods import Pod
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import PodGroup, Workload
from mindie_ha.policy import ownership
from mindie_ha.policy.effects import Effect, Subject, row_of, subject_of

NODE_LOSS = (Cause.NODE_NOT_READY, Cause.NODE_GONE)
_BY_CAUSE = {
    Cause.NETWORK_UNHEALTHY: "a fault of the link alone never deletes",
    Cause.CHIP_SEPARATED: "separated by a person or a counter: no new work, what runs goes on",
    Cause.CHIP_RESETTING: "the card is being reset",
    Cause.NODE_NOT_READY: "NotReady must last",
}


@dataclass(frozen=True, slots=True)
class Hit:
    """One pod that is hit. `acts_at_s`: when it will act if it is still there. Wall time in seconds."""

    workload: str  # "<ns>/<name>"
    pod: str
    acts: bool
    acts_at_s: float | None = None
    why: str = ""  # why it does not act


@dataclass(frozen=True, slots=True)
class Resident:
    """A pod on the node, and what it belongs to."""

    pod: Pod
    workload: Workload | None
    podgroup: PodGroup | None = None


def hits(fault: Fault, residents: Iterable[Resident], *, settings: Settings, now_s: float) -> tuple[Hit, ...]:
    """Every pod that `fault` hits, by name. Pods of workloads that we do not know are left out."""
    return tuple(
        _hit(fault, one, one.workload, settings=settings, now_s=now_s)
        for one in sorted(residents, key=lambda resident: resident.pod.key)
        if one.workload is not None and is_hit(fault, one.pod)
    )


def is_hit(fault: Fault, pod: Pod) -> bool:
    """Whether a fault of a node or card hits a pod that stands on the node."""
    if fault.cause in NODE_LOSS:
        return not pod.ended
    if not pod.alive:
        return False
    return not fault.device or fault.device in map(physical_name, pod.devices)


def _hit(fault: Fault, one: Resident, workload: Workload, *, settings: Settings, now_s: float) -> Hit:
    annotations = one.podgroup.annotations if one.podgroup is not None else None
    reactions = reactions_of(workload, annotations, settings=settings)
    here, acts_at_s = reactions.to(fault, now_s=now_s)
    name, pod = str(workload.key), one.pod.key.name
    if not ownership.claim(workload, one.podgroup, settings=settings).acts:
        return Hit(name, pod, acts=False, why="the workload is only observed, see its label fault-scheduling")
    if here.acts:
        return Hit(name, pod, acts=True)
    if acts_at_s is not None and fault.cause is not Cause.CHIP_RESETTING:
        return Hit(name, pod, acts=False, acts_at_s=acts_at_s, why="a silence window of the job")
    return Hit(name, pod, acts=False, acts_at_s=acts_at_s, why=why_recorded(fault, subject_of(workload.role)))


def why_recorded(fault: Fault, subject: Subject) -> str:
    """Why a fault that does not act does not, for one kind of workload."""
    if fault.cause in _BY_CAUSE:
        return _BY_CAUSE[fault.cause]
    for fact in fault.details:
        row = row_of(fact.family, fact.level)
        effect = row.on(subject)
        if effect is Effect.STRATEGY:
            return f"level {fact.level} acts by label subHealthyStrategy only"
        if effect is Effect.LISTED:
            return f"level {fact.level} acts only when its writer lists the card or node as unhealthy"
        if row.note:
            return row.note
    return f"{fault.level or fault.cause} does nothing to this kind of workload ({subject})"
