"""A recovery that a person asks for. Pure.

The word of the person is part of the ledger before it is answered. As long as it stands, the pods that it
names count as hit, so that the engine recovers them as it would after a fault: same rungs, phases, limits and
holds; nothing is paid from `fault-retry-times`. A pod that is gone is not asked for again, since a UID never
comes back. A fault that comes before the first deletion gives the recovery its own reason: one workload,
one reason. The word ends with the recovery that answered it, with a park, when none of its pods is left, or
where none could be opened within `EXPIRES_S`: nobody wants to be taken at a word of last week.
"""

from __future__ import annotations

from mindie_ha.model.decisions import Notice
from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import Request, WorkloadLedger
from mindie_ha.model.recoveries import IntentKind, Phase
from mindie_ha.model.views import WorkloadView
from mindie_ha.policy import persons, records, verdicts
from mindie_ha.policy.verdicts import Verdict

EXPIRES_S = 600.0
_BEFORE_STOP = (Phase.ISOLATE, Phase.BACKOFF)


def asked(
    ledger: WorkloadLedger, pods: tuple[str, ...], *, person: str, text: str, now_s: float
) -> WorkloadLedger:
    """The ledger with what `person` asks for. Raises InputError for what is no name or no reason."""
    word = Request(
        person=persons.named(person),
        text=persons.reason(text),
        pods=tuple(sorted(pods)),
        after_epoch=ledger.epoch,
        at_s=now_s,
    )
    return records.changed(ledger, request=word)


def faults(view: WorkloadView, *, now_s: float) -> tuple[Fault, ...]:
    """The pods that are asked for, as faults that hit them."""
    request = view.ledger.request
    if request is None or view.ledger_error:
        return ()
    if view.ledger.recovery is None and now_s >= request.at_s + EXPIRES_S:
        return ()
    who = request.person.removeprefix(persons.PERSON)
    wanted = frozenset(request.pods)
    return tuple(
        Fault(
            source=FaultSource.PERSON,
            cause=Cause.REQUESTED,
            pod_uid=pod.uid,
            pod=pod.key.name,
            first_seen_s=request.at_s,
            evidence=f"{who} asked: {request.text}",
        )
        for pod in view.pods
        if pod.uid in wanted and pod.alive
    )


def told(ledger: WorkloadLedger, *, key: ObjectKey) -> tuple[WorkloadLedger, tuple[Notice, ...]]:
    """The ledger in which a person's word is told, and what is to be told now."""
    request = ledger.request
    if request is None or request.told:
        return ledger, ()
    who = request.person.removeprefix(persons.PERSON)
    message = f"{key}: {who} asked for a recovery of {_pods(len(request.pods))}: {request.text}"
    ledger = records.changed(ledger, request=request.model_copy(update={"told": True}))
    notice = Notice("RecoveryRequested", message, key=f"request:{ledger.workload_uid}@{request.at_s:.3f}")
    return ledger, (notice,)


def settled(ledger: WorkloadLedger, view: WorkloadView, *, now_s: float) -> WorkloadLedger:
    """The ledger without a word that was answered, or that nobody can answer any more."""
    request = ledger.request
    if request is None or ledger.recovery is not None:
        return ledger
    answered = ledger.epoch > request.after_epoch or ledger.parked is not None
    return records.changed(ledger, request=None) if answered or not faults(view, now_s=now_s) else ledger


def preempted(ledger: WorkloadLedger, verdict: Verdict, *, now_s: float) -> WorkloadLedger:
    """The ledger whose open recovery, begun for a person, names the fault that came before its deletions."""
    recovery = ledger.recovery
    if recovery is None or recovery.intent.kind is not IntentKind.REQUEST:
        return ledger
    if recovery.phase not in _BEFORE_STOP or verdict.acting[:1] == ():
        return ledger
    if verdict.acting[0].cause is Cause.REQUESTED:
        return ledger
    reason = verdicts.intent(verdict, now_s=now_s)
    return records.changed(ledger, recovery=records.updated(recovery, intent=reason))


def _pods(count: int) -> str:
    return f"{count} {'pod' if count == 1 else 'pods'}"


__all__ = ["asked", "faults", "preempted", "settled", "told"]
