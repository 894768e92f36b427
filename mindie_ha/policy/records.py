"""How the record of a recovery changes: opened, moved to another phase, tried again, closed.

Nothing here decides. Each function returns a new record and keeps its bounds, so that a rule reads as
what it means and not as a list of fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mindie_ha.model.ids import PodUID
from mindie_ha.model.ledgers import (
    MAX_CLOSED,
    MAX_PHASES_KEPT,
    MAX_PODS_CLOSED,
    Attempt,
    Member,
    Park,
    WorkloadLedger,
)
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import (
    ClosedRecovery,
    Intent,
    Outcome,
    Phase,
    PhaseRecord,
    Recovery,
    Replacement,
    Target,
)
from mindie_ha.policy.budgets import with_attempt
from mindie_ha.policy.leaders import is_leader


def opened(*, epoch: int, intent: Intent, rung: str, now_s: float) -> Recovery:
    """A new recovery before its first attempt; `tried` makes it act."""
    return Recovery(
        epoch=epoch,
        intent=intent,
        rung=rung,
        phase=Phase.ISOLATE,
        phase_since_s=now_s,
        opened_at_s=now_s,
    )


def tried(
    ledger: WorkloadLedger,
    recovery: Recovery,
    *,
    pods: Iterable[Pod],
    present: Collection[PodUID],
    not_before_s: float,
    deadline_s: float | None,
    exit_: str,
    now_s: float,
) -> WorkloadLedger:
    """`ledger` with one more attempt of the recovery's rung: recorded, its targets named, at `isolate`.

    `present`: the pods that exist. Of earlier targets that are gone only so many stay named, as a UID
    never comes back.
    """
    recovery = aimed(_without_old_targets(recovery, present=present), pods=pods)
    recovery = entered(recovery, Phase.ISOLATE, exit_=exit_, deadline_s=deadline_s, now_s=now_s)
    attempts = {**recovery.attempts, recovery.rung: recovery.attempts.get(recovery.rung, 0) + 1}
    recovery = updated(
        recovery, attempts=attempts, not_before_s=not_before_s, replacements=(), verified=False
    )
    attempt = Attempt(epoch=recovery.epoch, rung=recovery.rung, at_s=now_s)
    return changed(
        ledger,
        recovery=recovery,
        epoch=recovery.epoch,
        attempts=with_attempt(ledger.attempts, attempt),
    )


def widened(
    ledger: WorkloadLedger,
    recovery: Recovery,
    *,
    rung: str,
    pods: Iterable[Pod],
    deadline_s: float | None,
    exit_: str,
    now_s: float,
) -> WorkloadLedger:
    """`ledger` with the running attempt, which has deleted nothing yet, as one of the rung `rung`."""
    attempts = dict(recovery.attempts)
    attempts[recovery.rung] = attempts.get(recovery.rung, 1) - 1
    attempts[rung] = attempts.get(rung, 0) + 1
    recovery = updated(
        aimed(recovery, pods=pods),
        rung=rung,
        attempts={name: count for name, count in attempts.items() if count},
    )
    recovery = entered(recovery, Phase.ISOLATE, exit_=exit_, deadline_s=deadline_s, now_s=now_s)
    last = (one.model_copy(update={"rung": rung}) for one in ledger.attempts[-1:])
    return changed(ledger, recovery=recovery, attempts=(*ledger.attempts[:-1], *last))


def aimed(recovery: Recovery, *, pods: Iterable[Pod]) -> Recovery:
    """`recovery` with `pods` among its targets, each once."""
    known = target_uids(recovery)
    more = tuple(
        Target(name=pod.key.name, uid=pod.uid, node=pod.node, rank=pod.rank)
        for pod in pods
        if pod.uid not in known
    )
    return updated(recovery, targets=(*recovery.targets, *more)) if more else recovery


def missed(recovery: Recovery, targets: Iterable[Target]) -> Recovery:
    """`recovery` with pods among its targets that are gone already."""
    known = target_uids(recovery)
    more = tuple(target for target in targets if target.uid not in known)
    return updated(recovery, targets=(*recovery.targets, *more)) if more else recovery


def _without_old_targets(recovery: Recovery, *, present: Collection[PodUID]) -> Recovery:
    gone = [target for target in recovery.targets if target.uid not in present]
    dropped = {target.uid for target in gone[: max(0, len(gone) - MAX_PODS_CLOSED)]}
    kept = tuple(target for target in recovery.targets if target.uid not in dropped)
    return updated(recovery, targets=kept) if dropped else recovery


def entered(
    recovery: Recovery, phase: Phase, *, exit_: str, deadline_s: float | None, now_s: float
) -> Recovery:
    """`recovery` in `phase`; the phase it leaves ends with `exit_` as its reason."""
    begun = PhaseRecord(rung=recovery.rung, phase=phase, start_s=now_s)
    history = (*ended(recovery, exit_=exit_, now_s=now_s), begun)
    return updated(
        recovery,
        phase=phase,
        phase_since_s=now_s,
        deadline_s=deadline_s,
        history=history[-MAX_PHASES_KEPT:],
        condition="",
        condition_message="",
        quiet_since_s=None,
        no_active_since_s=None,
        rejoin=None if phase is Phase.REJOIN else recovery.rejoin,  # said anew for whoever came anew
    )


def ended(recovery: Recovery, *, exit_: str, now_s: float) -> tuple[PhaseRecord, ...]:
    """The history with its open phase ended."""
    if not recovery.history or recovery.history[-1].end_s is not None:
        return recovery.history
    last = recovery.history[-1].model_copy(update={"end_s": now_s, "exit": exit_})
    return (*recovery.history[:-1], last)


def rungs_of(recovery: Recovery) -> tuple[str, ...]:
    """The rungs that were tried, in their order. A ledger as text keeps no order of names, so the history has
    it; a rung that the bounded history has forgotten came first."""
    seen = dict.fromkeys(record.rung for record in recovery.history if record.rung in recovery.attempts)
    return (*(name for name in recovery.attempts if name not in seen), *seen)


def closed(
    ledger: WorkloadLedger,
    recovery: Recovery,
    *,
    outcome: Outcome,
    summary: str,
    members: tuple[Member, ...],
    now_s: float,
) -> WorkloadLedger:
    """`ledger` without an open recovery; what happened is kept, the members are counted anew.

    Pods are named for the newest recovery only, and not without end: a job of hundreds of pods must not
    outgrow its ledger, or it could never be recovered again.
    """
    older = (one.model_copy(update={"targets": (), "replacements": ()}) for one in ledger.closed)
    record = ClosedRecovery(
        epoch=recovery.epoch,
        intent=recovery.intent,
        outcome=outcome,
        rungs=rungs_of(recovery),
        opened_at_s=recovery.opened_at_s,
        closed_at_s=now_s,
        targets=recovery.targets[-MAX_PODS_CLOSED:],
        replacements=recovery.replacements[-MAX_PODS_CLOSED:],
        history=ended(recovery, exit_=outcome.value, now_s=now_s),
        summary=summary,
    )
    return changed(ledger, recovery=None, closed=(*older, record)[-MAX_CLOSED:], members=members)


def parked(ledger: WorkloadLedger, *, reason: str, message: str, now_s: float) -> WorkloadLedger:
    """`ledger` stopped until a person re-arms it; an open recovery closes as parked."""
    if ledger.recovery is not None:
        ledger = closed(
            ledger, ledger.recovery, outcome=Outcome.PARKED, summary=message, members=(), now_s=now_s
        )
    park = Park(reason=reason, message=message, at_s=now_s)
    return changed(ledger, parked=park, members=())


def members_of(pods: Iterable[Pod]) -> tuple[Member, ...]:
    """`pods` as members, by name."""
    return tuple(
        Member(name=pod.key.name, uid=pod.uid, leads=is_leader(pod))
        for pod in sorted(pods, key=lambda pod: pod.key)
    )


def replacements_of(pods: Iterable[Pod]) -> tuple[Replacement, ...]:
    """`pods` as replacements, in their order."""
    return tuple(
        Replacement(name=pod.key.name, uid=pod.uid, node=pod.node, devices=pod.devices) for pod in pods
    )


def target_uids(recovery: Recovery) -> frozenset[PodUID]:
    """The pods that this recovery may delete."""
    return frozenset(target.uid for target in recovery.targets)


def updated(recovery: Recovery, **fields: object) -> Recovery:
    """`recovery` with `fields` replaced."""
    return recovery.model_copy(update=fields)


def changed(ledger: WorkloadLedger, **fields: object) -> WorkloadLedger:
    """`ledger` with `fields` replaced."""
    return ledger.model_copy(update=fields)
