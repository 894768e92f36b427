"""The planner: from one view to what is to be done, for each workload and for the service's table.

`plan` is a pure function and reads top-down: the rules below are tried in order and the first that fits
speaks for the workload. Each decision carries the ledger to write *before* its actions run, so a look
after a crash finds what was about to happen. The same healthy view gives the same ledgers and no actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mindie_ha.model.decisions import Action, AdoptPodGroup, Decision, Notice, Plan
from mindie_ha.model.faults import Fault
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import PodPhase
from mindie_ha.model.recoveries import RUNG_JOB, Outcome, Phase
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.policy import (
    activity,
    brakes,
    budgets,
    clocks,
    conditions,
    coupled,
    endings,
    graceful,
    holds,
    manners,
    ownership,
    pod_labels,
    rearming,
    records,
    recovering,
    requests,
    retries,
    tables,
    verdicts,
    windows,
)
from mindie_ha.policy.ladders import LADDERS, LadderRow, ladder
from mindie_ha.policy.looks import Look, TableStanding, say
from mindie_ha.policy.ownership import Ownership
from mindie_ha.policy.rungs.pod import remark as pod_rescheduling_remark
from mindie_ha.policy.turns import Crowd

READOPT_S = 30.0  # an adoption that is not seen is ordered again after this long

_MAY_ANNOUNCE = (Phase.RECREATE, Phase.PLACE, Phase.TABLE, Phase.ANNOUNCE)

Rule = Callable[[Look], Decision | None]


def plan(
    view: ScopeView, settings: Settings, now_s: float, *, ladders: tuple[LadderRow, ...] = LADDERS
) -> Plan:
    """Decide for every workload of `view`, then for its table."""
    view = _in_our_time(view, settings=settings, now_s=now_s)
    brake = brakes.judge(view.fleet, settings=settings.brakes, now_s=now_s)
    hold = holds.judge(view.pauses, view.scope, now_s=now_s)
    window = windows.judge(settings.maintenance.windows, now_s=now_s)
    hold = window if window.on and not hold.on else hold
    crowds = _crowds(view, settings)
    standing = conditions.judge(view, settings=settings.roles, now_s=now_s)
    unlinked = coupled.judge(view, settings=settings.coupled, now_s=now_s)
    view = _with_conditions(view, standing, unlinked, now_s=now_s)
    decisions = tuple(
        decide(
            Look(
                view=workload,
                claim=ownership.claim(workload.workload, workload.podgroup, settings=settings),
                verdict=verdicts.judge(workload),
                settings=settings,
                now_s=now_s,
                rungs=ladder(workload.workload, settings=settings, rows=ladders),
                nodes=view.nodes,
                brake=brake,
                hold=hold,
                fleet=view.fleet,
                crowds=crowds,
                has_service=view.table is not None,
                state_lost=standing.lost.get(workload.workload.key, ""),
                served=standing.served,
                table=_standing(view, workload, settings=settings, now_s=now_s),
            )
        )
        for workload in view.workloads
    )
    ledgers = {decision.workload: decision.ledger for decision in decisions}
    table = tables.plan_table(view, ledgers=ledgers, settings=settings, now_s=now_s)
    times = [decision.wake_at_s for decision in decisions]
    times += [table.wake_at_s if table else None, view.wake_at_s, standing.wake_at_s, unlinked.wake_at_s]
    wake_at_s = min((time for time in times if time is not None), default=None)
    return Plan(decisions=decisions, table=table, wake_at_s=wake_at_s)


def _in_our_time(view: ScopeView, *, settings: Settings, now_s: float) -> ScopeView:
    """`view` with ledgers of before a clock was set back."""
    pause_s = budgets.longest_pause_s(settings.budgets)
    workloads = tuple(
        replace(workload, ledger=clocks.of_workload(workload.ledger, now_s=now_s, pause_s=pause_s))
        for workload in view.workloads
    )
    return replace(view, workloads=workloads)


def decide(look: Look) -> Decision:
    """The first rule that fits, then the bookkeeping that every managed workload gets."""
    for rule in RULES:
        decision = rule(look)
        if decision is not None:
            break
    else:
        decision = say(look, rule="healthy", sentence=_health(look))
    decision = _with_nobody_active(look, _with_remarks(look, decision))
    if look.view.ledger_error or look.workload.deleting or not look.claim.acts:
        return decision
    return _keep_books(look, decision)


# --- the rules, in order -----------------------------------------------------------------------------------


def unreadable(look: Look) -> Decision | None:
    """A memory that cannot be read is never started from zero: observe only, loudly."""
    if not look.view.ledger_error:
        return None
    message = f"{look.workload.key}: observed only, its ledger is unreadable: {look.view.ledger_error}"
    notice = Notice("LedgerUnreadable", message, warning=True, key=f"ledger:{look.workload.uid}")
    return say(look, rule="ledger-unreadable", sentence=message, notices=(notice,))


def deleting(look: Look) -> Decision | None:
    """A workload that its owner takes away is left alone."""
    if not look.workload.deleting:
        return None
    return say(look, rule="deleting", sentence="its owner is being deleted")


def not_ours(look: Look) -> Decision | None:
    """No label, or somebody else's: shown and published, never touched. Our word is taken back."""
    if look.claim.acts:
        return None
    unlabelled = "its label fault-scheduling is neither force nor grace"
    platform = look.claim.ownership is Ownership.PLATFORM
    why = f"{ownership.WAITING_FOR_PLATFORM}, a platform owns it" if platform else unlabelled
    what = f", faults: {_words(look.verdict.acting)}" if look.verdict.acting else ""
    recovery = look.view.ledger.recovery
    outcome = Outcome.HELD if recovery is not None else None
    if recovery is not None:
        condition = ownership.WAITING_FOR_PLATFORM if platform else ownership.WAITING_FOR_LABEL
        message = "a platform owns the job" if platform else unlabelled
        recovery = records.updated(
            recovery, condition=condition, condition_message=f"{message}, so nothing is deleted"
        )
        ledger = records.changed(look.view.ledger, recovery=recovery)
        look = replace(look, view=replace(look.view, ledger=ledger))
    shown = say(
        look, rule="not-ours", sentence=f"observed only, never restarted: {why}{what}", outcome=outcome
    )
    return replace(shown, actions=manners.taken_back(look, recovery, at_once=True))


def already_parked(look: Look) -> Decision | None:
    """Only a person re-arms it."""
    park = look.view.ledger.parked
    if park is None:
        return None
    remedy = rearming.remedy(look.workload, reason=park.reason)
    sentence = f"parked ({park.reason}): {park.message}; a person has to act: {remedy}"
    return say(look, rule="parked", sentence=sentence)


def owner_gave_up(look: Look) -> Decision | None:
    """A terminally Failed owner makes no pods any more, so no deletion can help."""
    if not look.workload.failed:
        return None
    return endings.park(look, reason=rearming.OWNER_GAVE_UP, message=_why_owner_gave_up(look))


def continue_recovery(look: Look) -> Decision | None:
    """One recovery at a time; it absorbs what happens meanwhile."""
    if look.view.ledger.recovery is None:
        return None
    return recovering.resume(look)


def held_by_brake(look: Look) -> Decision | None:
    """Many nodes lost at once: wait before deleting because of it."""
    if not (look.brake.on and look.verdict.node_loss_only):
        return None
    message = f"{look.workload.key}: held, {look.brake.reason}; {_words(look.verdict.acting)}"
    notice = Notice("HeldByBrake", message, warning=True, key=f"brake:{look.workload.uid}")
    return say(
        look,
        rule="brake",
        sentence=message,
        notices=(notice,),
        wake_at_s=look.brake.wake_at_s,
        outcome=Outcome.HELD,
    )


def state_lost(look: Look) -> Decision | None:
    """A rebuilt Controller that does not get its service to serve needs a person."""
    if not look.state_lost:
        return None
    return endings.park(look, reason="ControllerStateLost", message=look.state_lost)


def open_recovery(look: Look) -> Decision | None:
    """An acting fault is answered."""
    if not look.verdict.acting:
        return None
    return recovering.begin(look)


RULES: tuple[Rule, ...] = (
    unreadable,
    deleting,
    not_ours,
    already_parked,
    owner_gave_up,
    continue_recovery,
    state_lost,
    held_by_brake,
    open_recovery,
)


def _with_remarks(look: Look, decision: Decision) -> Decision:
    """What is noticed of the workload whatever rule speaks."""
    labels = (look.claim.notice, pod_rescheduling_remark(look.workload))
    told = (*labels, *look.view.remarks, *graceful.remarks(look))
    return replace(decision, notices=(*decision.notices, *(notice for notice in told if notice is not None)))


def _with_nobody_active(look: Look, decision: Decision) -> Decision:
    """Told, not acted upon: an election that fails is not mended by a restart (decision 009)."""
    since_s = activity.nobody_since_s(look.alive, look.view.roles)
    if since_s is None or look.view.ledger.recovery is not None:
        return decision
    due_s = since_s + look.settings.roles.failover_s
    if look.now_s < due_s:
        times = [time for time in (decision.wake_at_s, due_s) if time is not None]
        return replace(decision, wake_at_s=min(times))
    message = f"{look.workload.key}: nobody is active, every pod says it is a standby"
    nobody = Notice("NoActive", message, warning=True, key=f"no-active:{look.workload.uid}")
    return replace(decision, notices=(*decision.notices, nobody))


# --- bookkeeping -------------------------------------------------------------------------------------------


def _keep_books(look: Look, decision: Decision) -> Decision:
    """Adoption, members, the operator's retries and a person's word: each written once per object."""
    ledger, adoption, adopt_again_s = _adopt(look, decision.ledger)
    ledger = _count_members(look, ledger)
    ledger, granted, grant_at_s = (ledger, None, None) if ledger.parked else retries.grant(look, ledger)
    ledger = _remember_proof(look, _remember_subscriber(look, ledger))
    ledger, word = rearming.told(ledger, key=look.workload.key)
    ledger, asked = requests.told(ledger, key=look.workload.key)
    ledger = requests.settled(ledger, look.view, now_s=look.now_s)
    extra: tuple[Action, ...] = tuple(
        action for action in (adoption, granted, *pod_labels.orders(look)) if action is not None
    )
    times = [time for time in (decision.wake_at_s, adopt_again_s, grant_at_s) if time is not None]
    return replace(
        decision,
        ledger=ledger,
        actions=(*extra, *decision.actions),
        notices=(*word, *asked, *decision.notices),
        wake_at_s=min(times, default=None),
    )


def _adopt(look: Look, ledger: WorkloadLedger) -> tuple[WorkloadLedger, AdoptPodGroup | None, float | None]:
    podgroup = look.view.podgroup
    if not look.claim.adopt or podgroup is None:
        return ledger, None, None
    again_at_s = ledger.adopted_at_s + READOPT_S
    guarded_since_s = ledger.recovery.guarded_since_s if ledger.recovery is not None else None
    lost = guarded_since_s is not None and guarded_since_s > ledger.adopted_at_s  # since it was ordered
    if ledger.adopted_podgroup_uid == podgroup.uid and look.now_s < again_at_s and not lost:
        return ledger, None, again_at_s
    ledger = records.changed(ledger, adopted_podgroup_uid=podgroup.uid, adopted_at_s=look.now_s)
    return ledger, AdoptPodGroup(key=podgroup.key, uid=podgroup.uid), look.now_s + READOPT_S


def _count_members(look: Look, ledger: WorkloadLedger) -> WorkloadLedger:
    """Who belongs to a complete, undisturbed workload."""
    undisturbed = ledger.recovery is None and ledger.parked is None and not look.verdict.acting
    running = all(pod.phase is PodPhase.RUNNING for pod in look.alive)
    if not (undisturbed and look.complete and running):
        return ledger
    members = records.members_of(look.alive)
    return ledger if ledger.members == members else records.changed(ledger, members=members)


def _remember_subscriber(look: Look, ledger: WorkloadLedger) -> WorkloadLedger:
    """The Controller's pod that holds the rank table stream: one that once did is expected to come back."""
    holders = [uid for uid, role in look.view.roles.items() if role.subscribed]
    if look.workload.role is not Role.CONTROLLER or not holders or ledger.subscribed_uid in holders:
        return ledger
    return records.changed(ledger, subscribed_uid=holders[0])


def _remember_proof(look: Look, ledger: WorkloadLedger) -> WorkloadLedger:
    """A Coordinator served after the Controller's recovery: it knows its servers."""
    newest = ledger.closed[-1] if ledger.closed else None
    if look.workload.role is not Role.CONTROLLER or not look.served or newest is None:
        return ledger
    if newest.rungs[-1:] != (RUNG_JOB,) or ledger.recovery is not None or ledger.proven_epoch == newest.epoch:
        return ledger
    return records.changed(ledger, proven_epoch=newest.epoch)


def _with_conditions(
    view: ScopeView, standing: conditions.Conditions, unlinked: coupled.Coupled, *, now_s: float
) -> ScopeView:
    """`view` with what conditions and people ask for among the faults."""
    asked = {each.workload.key: requests.faults(each, now_s=now_s) for each in view.workloads}
    if not (standing.faults or unlinked.faults or any(asked.values())):
        return view
    workloads = tuple(
        replace(
            each,
            faults=(*each.faults, *standing.faults.get(key, ()), *unlinked.faults.get(key, ()), *asked[key]),
        )
        for key, each in ((each.workload.key, each) for each in view.workloads)
    )
    return replace(view, workloads=workloads)


def _crowds(view: ScopeView, settings: Settings) -> tuple[Crowd, ...]:
    """Among whom deletions are limited. A dry run records nothing, so nobody could queue up."""
    of_service, of_cluster = (
        settings.budgets.max_concurrent_recoveries_per_service,
        settings.budgets.max_concurrent_recoveries_per_cluster,
    )
    own = {str(workload.workload.key) for workload in view.workloads}
    peers = tuple(turn for turn in view.turns if turn.workload in own)
    crowds = (
        Crowd(of_service, peers, f"{view.scope.namespace}/{view.scope.name}"),
        Crowd(of_cluster, view.turns, "the cluster"),
    )
    return () if settings.dry_run else tuple(crowd for crowd in crowds if crowd.limit)


def _standing(
    view: ScopeView, workload: WorkloadView, *, settings: Settings, now_s: float
) -> TableStanding | None:
    """Where the table stands, for a workload that may reach `announce` with this look."""
    recovery = workload.ledger.recovery
    if recovery is None or recovery.phase not in _MAY_ANNOUNCE:
        return None
    return tables.standing(view, workload, settings=settings, now_s=now_s)


# --- sentences ---------------------------------------------------------------------------------------------


def _health(look: Look) -> str:
    shown = f"; recorded only: {_words(look.verdict.recorded)}" if look.verdict.recorded else ""
    if not look.complete:
        return f"no fault; {len(look.alive)} of {look.workload.replicas} pods are there{shown}"
    return f"well, {len(look.alive)} {'pod' if len(look.alive) == 1 else 'pods'}{shown}"


def _words(faults: tuple[Fault, ...]) -> str:
    return ", ".join(verdicts.describe(fault) for fault in faults[:3])


def _why_owner_gave_up(look: Look) -> str:
    workload = look.workload
    told = f" ({workload.failed_message})" if workload.failed_message else ""
    label = workload.labels.get(budgets.LABEL_RETRY_TIMES, "absent")
    times = "no entry" if look.view.retry_times is None else f"Times={look.view.retry_times}"
    return (
        f"the operator declared {workload.kind} {workload.key} Failed for good{told}. Its limits: label "
        f"{budgets.LABEL_RETRY_TIMES} is {label}; ConfigMap {retries.RETRY_CONFIG_MAP} key "
        f"{retries.RETRY_KEY} has {times} for {retries.entry_of(look)}"
    )
