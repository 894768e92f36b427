"""What a workload waits for now, until when, and what would end it, in words. Pure.

Every named condition and every phase has its line here, and a test holds the tables against those of the
planner, so that `why` never answers with a bare name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mindie_ha.model.decisions import Decision
from mindie_ha.model.recoveries import Outcome, Phase, Recovery
from mindie_ha.model.views import WorkloadView
from mindie_ha.policy import graceful, guards, holds, ownership, rearming, turns
from mindie_ha.policy.rungs import confirming, gates, leaving, peers, phases, returning

ENDS: Mapping[str, str] = MappingProxyType(
    {
        holds.HELD_BY_PAUSE: "`mindie-ha resume` of that pause, or its end",
        holds.HELD_BY_WINDOW: "the end of the maintenance window",
        gates.HELD_BY_BRAKE: "enough nodes are Ready again",
        turns.HELD_BY_LIMIT: "a recovery before it closes, waits for something, or is overdue",
        peers.WAITING_FOR_PEER: "a peer's node answers again, or counts as lost",
        gates.BACKING_OFF: "time; nothing else is needed",
        guards.GUARDING: "the owner deletes the pods, or its time is over: then we do",
        ownership.WAITING_FOR_LABEL: "the label fault-scheduling is force or grace again",
        ownership.WAITING_FOR_PLATFORM: "the platform takes its value of ProcessRecoverStrategy away",
        graceful.RESETTING: "the card is back, or its time is over",
        returning.WAITING_FOR_CAPACITY: "a node is there on which the pods fit",
        returning.WAITING_FOR_LIST: "the scheduler's list shows the card",
        confirming.NO_ACTIVE: "one of the pods says that it is active",
        leaving.WAITING_FOR_FINALIZER: "whoever set the finalizer takes it off the pod",
        "WaitingForAdmission": "the owner (Ascend Operator) makes the pods",
        "WaitingForTable": "hccl.json is complete for the new pods, and they have addresses",
        "DeletionNotAccepted": "the API server takes the deletion",
        "DeletionsWait": "what holds the deletions is over",
    }
)
LEAVES: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.ISOLATE: "the isolation is visible in the cluster",
        Phase.BACKOFF: "deletions are allowed",
        Phase.STOP: "every deletion is accepted",
        Phase.GONE: "no old pod is left",
        Phase.RECREATE: "the owner has made all pods anew",
        Phase.PLACE: "every new pod has a node",
        Phase.TABLE: "the rank table entry of the new pods is valid",
        Phase.REJOIN: "all ranks have joined again",
        Phase.ANNOUNCE: "every subscriber has the new table",
        Phase.SETTLE: "the pods are well for long enough",
    }
)
_THEN: Mapping[phases.Overdue, str] = MappingProxyType(
    {
        phases.Overdue.GO_ON: "it goes on all the same",
        phases.Overdue.CONDITION: "it stays, under a named condition",
        phases.Overdue.NEXT_RUNG: "the next rung, or the same again after back-off",
        phases.Overdue.OWN: "the deletion is forced, then the attempt has failed",
    }
)


@dataclass(frozen=True, slots=True)
class Wait:
    """`until_s` is wall time, None where no time ends it; `then` says what follows at that time."""

    what: str
    ends: str
    until_s: float | None = None
    then: str = ""


def judge(view: WorkloadView, decision: Decision, *, now_s: float) -> Wait | None:
    """What the workload waits for; None where it waits for nothing."""
    ledger = view.ledger
    if view.ledger_error:
        return Wait("its ledger cannot be read", "its ConfigMap is restored, or deleted to forget everything")
    if ledger.parked is not None:
        remedy = f"{rearming.remedy(view.workload, reason=ledger.parked.reason)}, once the cause is gone"
        return Wait(f"a person: {ledger.parked.reason}: {ledger.parked.message}", remedy)
    if ledger.recovery is not None:
        return _of_recovery(ledger.recovery, decision, now_s=now_s)
    if decision.outcome is Outcome.HELD:
        return Wait(decision.sentence, "what holds it is over", decision.wake_at_s)
    if decision.rule == "report-only":
        return Wait(decision.sentence, "the program runs again, or the label allows retries")
    return None


def _of_recovery(recovery: Recovery, decision: Decision, *, now_s: float) -> Wait:
    rule = phases.TRANSITIONS[recovery.phase]
    ahead = recovery.deadline_s is not None and now_s < recovery.deadline_s
    condition = recovery.condition
    if condition:
        what = f"{condition}: {recovery.condition_message or decision.sentence}"
        return Wait(what, ENDS.get(condition, LEAVES[recovery.phase]), decision.wake_at_s, "it looks again")
    what = f"{recovery.rung}/{recovery.phase}: {rule.owner}"
    if recovery.phase is Phase.SETTLE and decision.wake_at_s is not None:  # the deadline is far behind it
        return Wait(what, LEAVES[recovery.phase], decision.wake_at_s, "it closes if all stayed well")
    until_s = recovery.deadline_s if ahead else None
    then = _THEN[rule.overdue] if until_s is not None else ""
    return Wait(what, LEAVES[recovery.phase], until_s, then)


__all__ = ["ENDS", "LEAVES", "Wait", "judge"]
