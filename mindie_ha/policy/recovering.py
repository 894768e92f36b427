"""Opening, continuing and ending the recovery of one workload.

Promise: what a recovery does next follows from its record and the view alone. Every attempt is recorded
before it acts, every deletion hits a recorded target, and the actions handed out belong to the phase that
the returned ledger names. Cut anywhere and looked at again, the rest is the same.
"""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.model.decisions import Action, Decision, Notice
from mindie_ha.model.faults import Cause
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Outcome, Phase, Recovery
from mindie_ha.policy import budgets, endings, guards, manners, obligations, records, refusals, requests
from mindie_ha.policy.looks import Look, say
from mindie_ha.policy.rungs import phases, widening
from mindie_ha.policy.rungs.gates import HELD
from mindie_ha.policy.rungs.peers import spared
from mindie_ha.policy.rungs.pod import NO_PEER, why_passed_over
from mindie_ha.policy.rungs.returning import WAITING_FOR_CAPACITY, replacements
from mindie_ha.policy.rungs.steps import Degraded, Failed, Recovered, Rung, Scope, StepResult
from mindie_ha.policy.verdicts import Verdict, describe, intent

MAX_STEPS = 32  # more than the longest way through the phases: a bound, never reached

_BEFORE_STOP = (Phase.ISOLATE, Phase.BACKOFF)


def begin(look: Look) -> Decision:
    """Answer acting faults of a workload that has no open recovery."""
    stretch = budgets.recent_attempts(look.view.ledger, settings=look.settings.budgets, now_s=look.now_s)
    ledger = records.changed(look.view.ledger, attempts=stretch)
    if refusals.is_unpaid(look, look.verdict):
        notice = refusals.not_paid(look, look.verdict)
        return replace(say(look, rule="report-only", sentence=notice.message), notices=(notice,))
    refusal = refusals.refuse(look, ledger, look.verdict)
    if refusal is not None and look.hold.on:
        return _held(look)
    if refusal is not None:
        return endings.park(_with(look, ledger), reason=refusal.reason, message=refusal.message)
    rung = _first_rung(look)
    recovery = records.opened(
        epoch=ledger.epoch + 1,
        intent=intent(look.verdict, now_s=look.now_s),
        rung=rung.name,
        now_s=look.now_s,
    )
    ledger = _attempt(look, ledger, recovery, verdict=look.verdict, exit_="")
    decision = resume(_with(look, ledger), rule="open")
    return replace(decision, notices=(_opened(look, recovery), *decision.notices))


def _held(look: Look) -> Decision:
    """Acting faults for which nothing is left to try; the fault may go away before that is final."""
    hold = look.hold
    message = f"{look.workload.key}: held, {hold.message}; {describe(look.verdict.acting[0])}"
    notice = Notice(hold.condition, message, warning=True, key=f"{hold.condition}:{look.workload.uid}")
    return say(
        look,
        rule="held",
        sentence=message,
        notices=(notice,),
        wake_at_s=hold.wake_at_s,
        outcome=Outcome.HELD,
    )


def _opened(look: Look, recovery: Recovery) -> Notice:
    passed = f"; {NO_PEER}" if recovery.rung != look.rungs[0].name else ""
    message = f"{look.workload.key}: recovery {recovery.epoch} opened: {recovery.intent.summary}{passed}"
    key = f"opened:{look.workload.uid}#{recovery.epoch}"
    return Notice("RecoveryOpened", message, warning=True, key=key)


def resume(look: Look, *, rule: str = "continue") -> Decision:
    """Take the open recovery as far as the view allows."""
    notices: list[Notice] = []
    sentences: list[str] = []
    for _ in range(MAX_STEPS):
        look = _with(look, _minded(look))
        recovery = _open(look)
        if _is_moot(look, recovery):
            return _moot(look, recovery)
        if (widened := _widened(look, recovery)) is not None:
            sentences.append(_why_passed_over(look, recovery))
            look = _with(look, widened)
            continue
        disturbed = _disturbance(look, recovery)
        if disturbed is not None:
            verdict, reason = disturbed
            again = _again(look, recovery, verdict=verdict, reason=reason)
            if isinstance(again, Decision):
                return again
            look = _with(look, again)
            sentences.append(reason)
            continue
        step = _rung_of(look, recovery).step(_on_rung(look, recovery), recovery)
        notices += step.notices
        sentences.append(step.sentence)
        moved = _aimed(look, step.recovery, before=recovery.phase)
        step = replace(step, recovery=moved)
        step = _kept(look, step)
        ledger = _paid(look.view.ledger, step.recovery, before=recovery.phase)
        look = _with(look, records.changed(ledger, recovery=step.recovery))
        if step.moved:
            continue
        if step.result is None:
            return _waiting(look, step, rule=rule, sentences=sentences, notices=notices)
        ended = _ended(look, step.recovery, step.result)
        if isinstance(ended, Decision):
            return replace(ended, notices=(*notices, *ended.notices))
        look = _with(look, ended)
    return say(look, rule=rule, sentence=sentences[-1], wake_at_s=look.now_s)


def _waiting(
    look: Look, step: StepResult, *, rule: str, sentences: list[str], notices: list[Notice]
) -> Decision:
    recovery = step.recovery
    outcome = None
    if recovery.condition:
        outcome = Outcome.HELD if recovery.condition in HELD else Outcome.WAITING
        message = f"{look.workload.key}: {recovery.condition}: {step.sentence}"
        key = f"condition:{look.workload.uid}#{recovery.epoch}:{recovery.condition}"
        notices = [*notices, Notice(recovery.condition, message, key=key)]
    notices = [*notices, *widening.told(look, recovery)]
    fresh = _fresh(look, recovery)
    if refusals.is_unpaid(look, fresh):
        notices = [*notices, refusals.not_paid(look, fresh)]
    return Decision(
        workload=look.workload.key,
        ledger=look.view.ledger,
        sentence=f"recovery {recovery.epoch}, {recovery.rung}/{recovery.phase}: {'; '.join(sentences)}",
        rule=rule,
        actions=_with_orders(look, recovery, step.actions),
        notices=tuple(notices),
        wake_at_s=step.wake_at_s,
        outcome=outcome,
    )


# --- what a look adds to the record ------------------------------------------------------------------------


def _minded(look: Look) -> WorkloadLedger:
    """The ledger with every isolation that the faults ask for as an obligation."""
    ledger = requests.preempted(look.view.ledger, look.verdict, now_s=look.now_s)
    look = _with(look, ledger)
    recovery = _open(look)
    owed = obligations.obliged(recovery, obligations.needs(look), now_s=look.now_s)
    recovery = guards.watched(look, records.updated(recovery, obligations=owed))
    return records.changed(look.view.ledger, recovery=recovery)


def _aimed(look: Look, recovery: Recovery, *, before: Phase) -> Recovery:
    """On the way into `stop`: pods that the owner made beside a target that still stands are targets too.
    Where no target stands any more somebody else has done the work, and the new pods are left alone."""
    stands = records.target_uids(recovery) & {pod.uid for pod in look.alive}
    if before not in _BEFORE_STOP or recovery.phase is not Phase.STOP or not stands:
        return recovery
    uids = _hit(look, recovery)
    return records.aimed(recovery, pods=[pod for pod in look.view.pods if pod.uid in uids])


def _paid(ledger: WorkloadLedger, recovery: Recovery, *, before: Phase) -> WorkloadLedger:
    """`ledger`, which pays for the first attempt on the way into `stop`: before, its fault may go away."""
    stops = before in _BEFORE_STOP and recovery.phase is Phase.STOP
    first = sum(recovery.attempts.values()) == 1
    again = any(record.phase is Phase.STOP for record in recovery.history[:-1])
    if not (stops and first and recovery.intent.software) or again:
        return ledger
    return records.changed(ledger, software_retries_spent=ledger.software_retries_spent + 1)


def _with_orders(look: Look, recovery: Recovery, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """`actions`, and the isolations that became due, or are not to be counted, while a phase goes on."""
    words = manners.taken_back(look, recovery)
    actions = (*obligations.discounts(look, recovery), *words, *actions)
    if recovery.phase is Phase.ISOLATE:
        return actions
    orders = tuple(
        obligations.order(look, need, recovery)
        for need in obligations.needs(look)
        if not obligations.in_effect(look, need, recovery)
    )
    return (*orders, *actions)


# --- faults during a recovery ------------------------------------------------------------------------------


def _is_moot(look: Look, recovery: Recovery) -> bool:
    """Whether the faults went away before anything was deleted, and the pods stand as they stood."""
    if recovery.phase not in _BEFORE_STOP or sum(recovery.attempts.values()) != 1 or look.verdict.acting:
        return False
    if _is_still_told(look, recovery):
        return False
    alive = {pod.uid for pod in look.alive}
    return bool(recovery.targets) and records.target_uids(recovery) <= alive


def _is_still_told(look: Look, recovery: Recovery) -> bool:
    """Whether the fault that opened it is there, and only its patience runs again, as after our restart: that
    it had lasted long enough is in the record. What a sub-health strategy asked for may be taken back."""
    opened_by = recovery.intent
    return opened_by.cause is not Cause.CHIP_FAULT_LISTED and any(
        (fault.cause, fault.node, fault.device) == (opened_by.cause, opened_by.node, opened_by.device)
        for fault in look.verdict.recorded
    )


def _moot(look: Look, recovery: Recovery) -> Decision:
    if obligations.blocking(look, recovery):
        sentence = "the fault is gone, its isolation is still needed"
        wake_at_s = look.now_s + look.settings.phases.list_lag_s
        waits = say(look, rule="moot", sentence=sentence, wake_at_s=wake_at_s)
        return replace(waits, actions=manners.taken_back(look, recovery, at_once=True))
    ledger = records.changed(look.view.ledger, attempts=look.view.ledger.attempts[:-1])  # it never acted
    summary = "the fault went away, nothing was deleted"
    return endings.close(_with(look, ledger), recovery, Outcome.RECOVERED_UNVERIFIED, summary)


def _disturbance(look: Look, recovery: Recovery) -> tuple[Verdict, str] | None:
    """A new fault on a replacement, a replacement lost or misplaced."""
    if recovery.phase in _BEFORE_STOP:
        return None
    fresh = _fresh(look, recovery)
    if fresh.acting and not _is_stumble(look, fresh):
        known = {item.uid for item in recovery.replacements}
        who = "a replacement is hit" if fresh.pods_hit & known else "another pod is hit"
        return fresh, f"{who}: {describe(fresh.acting[0])}"
    if recovery.phase is Phase.STOP:
        return None
    pods = replacements(look, recovery, _rung_of(look, recovery).scope(look))
    isolated = obligations.actively_isolated(look, recovery)
    misplaced = [pod for pod in pods if pod.node in isolated]
    if misplaced:
        return Verdict(), f"{misplaced[0].key.name} was placed on isolated {misplaced[0].node}"
    alive = {pod.uid for pod in pods}
    recorded = {item.uid for item in recovery.replacements}
    lost = sorted(item.name for item in recovery.replacements if item.uid not in alive)
    if lost and look.lives_together and recorded & alive:
        return Verdict(), f"replacement {lost[0]} vanished, the others cannot go on without it"
    return None


def _widened(look: Look, recovery: Recovery) -> WorkloadLedger | None:
    """The same attempt by a wider rung, where the chosen one does not fit any more and a target stands."""
    alive = {pod.uid for pod in look.alive}
    stands = recovery.phase is Phase.STOP and bool(records.target_uids(recovery) & alive)
    wider = _instead(look, recovery) if stands or recovery.phase in _BEFORE_STOP else None
    if wider is None:
        return None
    uids = wider.scope(look).uids
    return records.widened(
        look.view.ledger,
        recovery,
        rung=wider.name,
        pods=[pod for pod in look.view.pods if pod.uid in uids],
        deadline_s=phases.deadline_s(look, recovery, Phase.ISOLATE),
        exit_=_why_passed_over(look, recovery),
        now_s=look.now_s,
    )


def _kept(look: Look, step: StepResult) -> StepResult:
    """`step`; but an attempt that failed waits on where a wider rung would take serving pods for nothing."""
    if not isinstance(step.result, Failed) or _wider(look, step.recovery) is None:
        return step
    scope = _rung_of(look, step.recovery).scope(look)
    why = widening.why_not(look, step.recovery, scope, peers=spared(look, scope))
    waited = step.recovery.condition_message.startswith(widening.NO_WIDER)
    if not why and not waited:
        return step
    condition = step.recovery.condition or phases.TRANSITIONS[step.recovery.phase].condition
    changes: dict[str, object] = {"condition": condition or WAITING_FOR_CAPACITY}
    if why:
        message = f"{step.result.reason}; a wider rung could not be placed: {why}"
        changes["condition_message"] = widening.NO_WIDER + why
        wake_at_s = look.now_s + widening.RECHECK_S
    else:  # there is room again, perhaps for this rung: only the scheduler can say
        message = f"{step.result.reason}; there is room again, the scheduler gets time"
        wake_at_s = look.now_s + look.settings.phases.place_pod_to_job_s
        changes |= {"condition_message": "there is room again", "deadline_s": wake_at_s}
    recovery = records.updated(step.recovery, **changes)
    return replace(step, recovery=recovery, sentence=message, result=None, wake_at_s=wake_at_s)


def _fresh(look: Look, recovery: Recovery) -> Verdict:
    """What hits pods that are no targets. Targets may fail as they like."""
    return look.verdict.on({pod.uid for pod in look.view.pods} - records.target_uids(recovery))


def _is_stumble(look: Look, verdict: Verdict) -> bool:
    """Whether a container failed, unpaid, in a pod that goes on: shown, and left to the limits of the phase,
    so that one failure while it starts does not end in a park."""
    return refusals.is_unpaid(look, verdict) and verdict.pods_hit <= {pod.uid for pod in look.alive}


def _again(look: Look, recovery: Recovery, *, verdict: Verdict, reason: str) -> WorkloadLedger | Decision:
    """One more attempt of the same rung, of a wider one where that does not fit any more, or a park."""
    refusal = refusals.refuse(look, look.view.ledger, verdict)
    if refusal is not None:
        return endings.park(look, reason=refusal.reason, message=f"{refusal.message}; last: {reason}")
    wider = _instead(look, recovery)
    if wider is not None:
        reason = f"{reason}; {_why_passed_over(look, recovery)}"
        recovery = records.updated(recovery, rung=wider.name)
    return _attempt(look, look.view.ledger, recovery, verdict=verdict, exit_=reason)


def _attempt(
    look: Look, ledger: WorkloadLedger, recovery: Recovery, *, verdict: Verdict, exit_: str
) -> WorkloadLedger:
    """Record an attempt, pay for it unless it is the first, and name its targets."""
    if verdict.software and recovery.attempts:
        ledger = records.changed(ledger, software_retries_spent=ledger.software_retries_spent + 1)
    recovery = records.missed(recovery, guards.vanished(verdict))
    seen = _with(look, records.changed(ledger, recovery=recovery))
    uids = _hit(seen, recovery) if verdict.acting else _chosen(seen, recovery).uids
    pods = guards.old_pods(seen, (pod for pod in look.view.pods if pod.uid in uids), verdict=verdict)
    return records.tried(
        ledger,
        recovery,
        pods=[pod for pod in pods if not _is_new_beside_stuck(look, recovery, pod)],
        present={pod.uid for pod in look.view.pods},
        not_before_s=_not_before_s(look, ledger, recovery),
        deadline_s=phases.deadline_s(look, recovery, Phase.ISOLATE),
        exit_=exit_,
        now_s=look.now_s,
    )


def _chosen(look: Look, recovery: Recovery) -> Scope:
    """What the rung of `recovery` would replace if it chose now."""
    choosing = records.updated(recovery, phase=Phase.ISOLATE)
    return _rung_of(look, recovery).scope(_with(look, records.changed(look.view.ledger, recovery=choosing)))


def _hit(look: Look, recovery: Recovery) -> frozenset[str]:
    """The pods that are hit, and whom the rung takes with them. A good replacement has the name of a target
    and is not taken for it."""
    return _chosen(look, records.updated(recovery, targets=())).uids


def _not_before_s(look: Look, ledger: WorkloadLedger, recovery: Recovery) -> float:
    """Back-off keeps the same from being tried again and again. A wider rung that a recovery turns to has
    waited as long as its own place in the ladder says, so its first attempt is made at once."""
    if recovery.attempts and not recovery.attempts.get(recovery.rung):
        return 0.0
    seed = f"{look.workload.uid}#{recovery.epoch}"
    return budgets.not_before_s(ledger.attempts, seed=seed, settings=look.settings.budgets)


def _is_new_beside_stuck(look: Look, recovery: Recovery, pod: Pod) -> bool:
    """Whether `pod` is a good replacement, made while another target hangs in its deletion. It waits for its
    sibling, and deleting it once more for each attempt would bring nothing."""
    targets = records.target_uids(recovery)
    stuck = any(each.uid in targets and each.terminating for each in look.view.pods)
    if not stuck or pod.uid in targets or pod.uid in look.verdict.pods_hit:
        return False
    return pod.alive and pod.node not in obligations.actively_isolated(look, recovery)


# --- ends ---------------------------------------------------------------------------------------------------


def _ended(
    look: Look, recovery: Recovery, result: Recovered | Degraded | Failed
) -> Decision | WorkloadLedger:
    match result:
        case Recovered(verified):
            outcome = Outcome.RECOVERED if verified else Outcome.RECOVERED_UNVERIFIED
            return endings.close(look, recovery, outcome, f"{len(look.alive)} pods are well again")
        case Degraded(message):
            return endings.close(look, recovery, Outcome.DEGRADED, message)
        case Failed():
            return _next_rung(look, recovery, result)


def _next_rung(look: Look, recovery: Recovery, failed: Failed) -> Decision | WorkloadLedger:
    """The next open rung of the ladder; after the last the same again."""
    barred = tuple(dict.fromkeys((*recovery.closed_rungs, *sorted(failed.closes))))
    recovery = records.updated(recovery, closed_rungs=barred)
    following = _wider(look, recovery)
    if following is not None:
        recovery = records.updated(recovery, rung=following.name)
    elif recovery.rung in barred:
        return endings.park(look, reason="LadderSpent", message=f"no rung is open any more: {failed.reason}")
    return _again(look, recovery, verdict=Verdict(), reason=failed.reason)


# --- small readings ----------------------------------------------------------------------------------------


def _first_rung(look: Look) -> Rung:
    return next(rung for rung in look.rungs if rung.applicable(look))


def _wider(look: Look, recovery: Recovery) -> Rung | None:
    """The next rung of the ladder that is open and can help."""
    names = [rung.name for rung in look.rungs]
    wider = look.rungs[names.index(recovery.rung) + 1 :] if recovery.rung in names else look.rungs
    return next(
        (rung for rung in wider if rung.name not in recovery.closed_rungs and rung.applicable(look)), None
    )


def _instead(look: Look, recovery: Recovery) -> Rung | None:
    """The rung that follows where the chosen one does not fit any more, or is on the ladder no longer."""
    rung = _rung_of(look, recovery)
    return None if rung.name == recovery.rung and rung.applicable(look) else _wider(look, recovery)


def _why_passed_over(look: Look, recovery: Recovery) -> str:
    if _rung_of(look, recovery).name != recovery.rung:
        return f"labels and settings ask for the rung {recovery.rung} no longer"
    return why_passed_over(look, _rung_of(look, recovery).scope(look)) or NO_PEER


def _rung_of(look: Look, recovery: Recovery) -> Rung:
    """The rung a recovery is on; a name that this version does not know is taken as the widest."""
    return next((rung for rung in look.rungs if rung.name == recovery.rung), look.rungs[-1])


def _on_rung(look: Look, recovery: Recovery) -> Look:
    """The look with whether a wider rung is still open, and when the next one is tried."""
    names = [rung.name for rung in look.rungs if rung.name not in recovery.closed_rungs]
    look = replace(look, last_rung=not names or names[-1] == recovery.rung)
    wider = None if look.last_rung else _wider(look, recovery)
    return look if wider is None else replace(look, wider_from_s=wider.from_s(look))


def _open(look: Look) -> Recovery:
    recovery = look.view.ledger.recovery
    if recovery is None:
        raise ValueError(f"{look.workload.key}: no recovery is open")
    return recovery


def _with(look: Look, ledger: WorkloadLedger) -> Look:
    return replace(look, view=replace(look.view, ledger=ledger))
