"""What the current faults mean for one workload.

A verdict keeps apart what must be answered (`acting`) and what is only shown (`recorded`), orders the
former so that the first one names the reason, and says who pays: hardware beats software, since a program
that dies on a broken card did not fail by itself (rescheduling contract G7).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ids import PodUID
from mindie_ha.model.recoveries import Intent, IntentKind
from mindie_ha.model.views import WorkloadView

MAX_WITNESSES = 3
_KINDS = {
    Cause.MEMBER_REPLACED: IntentKind.CONDITION,
    Cause.CONTROLLER_UNSUBSCRIBED: IntentKind.CONDITION,
    Cause.CONTROLLER_STATE_LOST: IntentKind.CONDITION,
    Cause.PEER_UNLINKED: IntentKind.CONDITION,
    Cause.REQUESTED: IntentKind.REQUEST,
}
NODE_LOSS = frozenset({Cause.NODE_NOT_READY, Cause.NODE_GONE})

# Worst first: what is certainly broken explains what merely stopped.
_RANK = {
    cause: rank
    for rank, cause in enumerate(
        (
            Cause.CHIP_UNHEALTHY,
            Cause.PUBLIC_FAULT,
            Cause.NODE_GONE,
            Cause.NODE_NOT_READY,
            Cause.NODE_HARDWARE,
            Cause.SWITCH_UNHEALTHY,
            Cause.NODE_MARKED,
            Cause.CORRELATED,
            Cause.CHIP_RESETTING,
            Cause.CHIP_FAULT_LISTED,  # acts only by the job's sub-health strategy
            Cause.POD_EVICTED,
            Cause.MEMBER_REPLACED,
            Cause.POD_MARKED,
            Cause.POD_FAILED,
            Cause.CRASH_LOOP,
            Cause.CONTROLLER_UNSUBSCRIBED,
            Cause.CONTROLLER_STATE_LOST,
            Cause.PEER_UNLINKED,
            Cause.REQUESTED,
        )
    )
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Faults of one workload, worst first."""

    acting: tuple[Fault, ...] = ()
    recorded: tuple[Fault, ...] = ()

    @property
    def pods_hit(self) -> frozenset[PodUID]:
        """The pods that an acting fault hits now."""
        return frozenset(fault.pod_uid for fault in self.acting if fault.pod_uid)

    @property
    def software(self) -> bool:
        """Whether answering it is paid from `fault-retry-times`: nothing but programs failed."""
        return bool(self.acting) and all(fault.software for fault in self.acting)

    @property
    def node_loss_only(self) -> bool:
        """Whether every acting fault is a lost node: what the fleet brake may hold."""
        return bool(self.acting) and all(fault.cause in NODE_LOSS for fault in self.acting)

    def on(self, pods: Set[PodUID]) -> Verdict:
        """The acting faults that hit one of `pods`."""
        return Verdict(acting=tuple(fault for fault in self.acting if fault.pod_uid in pods))


def judge(view: WorkloadView) -> Verdict:
    """Sort the faults of `view`."""
    ordered = sorted(view.faults, key=lambda fault: (_RANK.get(fault.cause, len(_RANK)), fault.identity))
    return Verdict(
        acting=tuple(fault for fault in ordered if fault.acts),
        recorded=tuple(fault for fault in ordered if not fault.acts),
    )


def intent(verdict: Verdict, *, now_s: float) -> Intent:
    """The reason of a recovery that answers `verdict`, in the words of its worst fault."""
    worst = verdict.acting[0]
    return Intent(
        kind=_KINDS.get(worst.cause, IntentKind.FAULT),
        cause=worst.cause,
        node=worst.node,
        device=worst.device,
        codes=worst.codes,
        pod=worst.pod,
        at_s=worst.first_seen_s or now_s,
        software=verdict.software,
        summary="; ".join((describe(worst), *witnesses(verdict))),
    )


def witnesses(verdict: Verdict) -> tuple[str, ...]:
    """What else says that the place of the worst fault is bad: one cause shown twice is one recovery, named
    by the fault that is most certain, and the others are its evidence."""
    worst = verdict.acting[0]
    if not worst.node:
        return ()
    found = dict.fromkeys(
        f"also {fault.cause}" + (f" ({', '.join(fault.codes)})" if fault.codes else "")
        for fault in (*verdict.acting[1:], *verdict.recorded)
        if fault.node == worst.node
        and (fault.device or worst.device) == (worst.device or fault.device)
        and (fault.cause, fault.device) != (worst.cause, worst.device)
        and fault.source not in (FaultSource.POD_STATUS, FaultSource.MEMBER)
    )
    return tuple(found)[:MAX_WITNESSES]


def describe(fault: Fault) -> str:
    """One fault in words: `ChipUnhealthy: Ascend910-3 on node-1 (80E18005) under pod p-0`."""
    if (
        fault.source in (FaultSource.POD, FaultSource.PERSON) and fault.evidence
    ):  # the node is where it ran, not what failed
        return f"{fault.cause}: {fault.evidence}" + (f" (on {fault.node})" if fault.node else "")
    place = f"{fault.device} on {fault.node}" if fault.device else fault.node
    words = [f"{fault.cause}:", place] if place else [f"{fault.cause}:"]
    if fault.codes:
        words.append(f"({', '.join(fault.codes)})")
    if fault.pod:
        words.append(f"under pod {fault.pod}" if place else f"pod {fault.pod}")
    return " ".join(words)
