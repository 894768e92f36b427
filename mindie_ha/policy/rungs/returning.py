"""The second half of a Kubernetes rung: new pods exist, have a place, a table, are known and are well.

Others do the work here (the operator, the scheduler, the kubelet, the publisher); we look, and name what
is missing. A replacement is a pod of the scope that is no target; old pods never count as success.
"""

from __future__ import annotations

from mindie_ha.model.decisions import Notice
from mindie_ha.model.pods import Pod
from mindie_ha.model.ranktables import FindingCode
from mindie_ha.model.recoveries import Outcome, Phase, Recovery
from mindie_ha.model.workloads import Role
from mindie_ha.policy.instances import InstanceState, has_table, judge_instance
from mindie_ha.policy.looks import Look
from mindie_ha.policy.obligations import blocking
from mindie_ha.policy.records import replacements_of, target_uids
from mindie_ha.policy.rungs.confirming import confirm
from mindie_ha.policy.rungs.steps import Progress, Scope
from mindie_ha.ranktable.waits import NO_OPERATOR, why_initializing

WAITING_FOR_CAPACITY = "WaitingForCapacity"
WAITING_FOR_LIST = "WaitingForList"
OPERATOR_S = 5.0  # which the operator has to write a table before its absence is suspected
_WAITING = (Phase.RECREATE, Phase.PLACE)
_PLACED = (Phase.TABLE, Phase.REJOIN, Phase.ANNOUNCE, Phase.SETTLE)


def replacements(look: Look, recovery: Recovery, scope: Scope) -> tuple[Pod, ...]:
    """The pods that stand, or will stand, where the targets stood."""
    targets = target_uids(recovery)
    return tuple(pod for pod in look.alive if pod.uid in scope.uids and pod.uid not in targets)


def recreate(look: Look, recovery: Recovery, scope: Scope) -> Progress:
    """Wait until the owner has made as many pods as it has to."""
    pods = replacements(look, recovery, scope)
    if len(pods) < scope.expected:
        return Progress(sentence=f"{len(pods)} of {scope.expected} pods are re-created")
    return Progress(
        sentence="the pods are re-created",
        leave="re-created",
        changes={"replacements": replacements_of(pods)},
    )


def place(look: Look, recovery: Recovery, scope: Scope) -> Progress:
    """Wait until every replacement has a node."""
    pods = replacements(look, recovery, scope)
    homeless = [pod for pod in pods if not pod.node]
    if not homeless:
        return Progress(
            sentence="every pod has a node",
            leave="placed",
            changes={"replacements": replacements_of(pods)},
        )
    refused = [pod for pod in homeless if pod.unschedulable]
    believed_at_s = recovery.phase_since_s + look.settings.phases.capacity_patience_s
    if not refused or look.now_s < believed_at_s:  # a gang is refused once before all its pods are there
        sentence = f"{len(homeless)} of {len(pods)} pods wait for a node"
        return Progress(sentence=sentence, wake_at_s=believed_at_s if refused else None)
    # Of a gang some only wait for the others; one says what is missing.
    telling = next((pod for pod in refused if "nodes are available" in pod.unschedulable), refused[0])
    return Progress(
        sentence=f"{telling.key.name} finds no node: {telling.unschedulable}",
        condition=WAITING_FOR_CAPACITY,
        condition_message="the scheduler finds no node for the new pods",
    )


def place_deadline_s(look: Look, recovery: Recovery) -> float | None:
    """How long a pod may still wait for its node: what the next rung allows, less what pods of this recovery
    have waited already, on narrower rungs too. Creating a pod anew is part of its waiting."""
    if look.last_rung:
        return None
    return look.wider_from_s - _waited_s(look, recovery)


def _waited_s(look: Look, recovery: Recovery) -> float:
    """Time since the old pods were gone, without the time that deleting more of them took; counted anew
    with each attempt of the narrowest rung, and where a pod that had found its place vanished later."""
    waited_s, before = 0.0, None
    for record in recovery.history:
        narrowest = record.rung == recovery.history[0].rung
        if (record.phase is Phase.ISOLATE and narrowest) or (record.phase in _WAITING and before in _PLACED):
            waited_s = 0.0
        if record.phase in _WAITING:
            waited_s += (look.now_s if record.end_s is None else record.end_s) - record.start_s
        before = record.phase
    return waited_s


def table(look: Look, recovery: Recovery, scope: Scope) -> Progress:
    """Wait until the instance's own table describes exactly the replacements."""
    pods = replacements(look, recovery, scope)
    changes: dict[str, object] = {"replacements": replacements_of(pods)}
    to = Phase.REJOIN if scope.rejoins else None
    if has_table(look.view):
        state = judge_instance(look.view)
        if not state.complete:
            why, wake_at_s = _why_incomplete(look, state), None
            if why == NO_OPERATOR and look.now_s < recovery.phase_since_s + OPERATOR_S:
                why, wake_at_s = "the operator is to write it", recovery.phase_since_s + OPERATOR_S
            return Progress(sentence=f"the instance table is not complete: {why}", wake_at_s=wake_at_s)
        return Progress(sentence="the instance table is complete", leave="complete", to=to, changes=changes)
    missing = [pod for pod in pods if not pod.ip]
    if missing and look.workload.role is not Role.TRAINING:
        return Progress(sentence=f"{missing[0].key.name} has no address yet")
    return Progress(sentence="every pod has an address", leave="addressed", to=to, changes=changes)


def announce(look: Look, recovery: Recovery, scope: Scope) -> Progress:  # noqa: ARG001
    """Wait, never for long, until every subscriber has the table with the replacements."""
    standing = look.table
    if not look.has_service:
        return Progress(sentence="no table to announce", leave="no table")
    if standing is None:
        return Progress(sentence="the table is judged with the next look", wake_at_s=look.now_s)
    if standing.kept_out:
        return Progress(sentence=f"not in the table: {standing.kept_out}", leave="kept out")
    if not standing.subscribers:
        message = f"{look.workload.key}: nobody subscribed; the table is kept and replayed to who comes"
        notice = Notice("NoSubscriber", message, key=f"no-subscriber:{look.workload.scope}")
        return Progress(sentence="nobody subscribed", leave="no subscriber", notices=(notice,))
    if standing.current and standing.handed_to_all:
        sentence = f"handed to {standing.subscribers} subscribers"
        return Progress(sentence=sentence, leave="handed over")
    return Progress(sentence="the table is on its way to its subscribers")


def settle(look: Look, recovery: Recovery, scope: Scope) -> Progress:
    """Wait until the replacements have been well for long enough, and no mark of ours is still needed."""
    pods = replacements(look, recovery, scope)
    word = confirm(look, recovery, pods)
    if word.waits is not None:
        return word.waits
    verified = not word.doubt
    phases = look.settings.phases
    window_s = phases.settle_s if verified else max(phases.settle_s, phases.unverified_after_s)
    since_s = look.now_s if recovery.quiet_since_s is None else recovery.quiet_since_s
    restarts = [pod.last_restart_at_s for pod in pods if pod.last_restart_at_s is not None]
    since_s = max([since_s, *(time_s for time_s in restarts if time_s <= look.now_s)])
    changes: dict[str, object] = {
        "quiet_since_s": since_s,
        "no_active_since_s": None,
        "verified": verified,
        "replacements": replacements_of(pods),
    }
    if look.now_s < since_s + window_s:
        sentence = f"{len(pods)} pods are well, watching them for {window_s:g} s"
        sentence += f"; {word.doubt}" if word.doubt else ""
        return Progress(sentence=sentence, changes=changes, patient=True, wake_at_s=since_s + window_s)
    open_marks = blocking(look, recovery)
    if open_marks:
        return Progress(
            sentence=f"well, but the scheduler's list does not show {open_marks[0].ref} yet",
            changes=changes,
            condition=WAITING_FOR_LIST,
            condition_message=f"the isolation {open_marks[0].ref} is still needed",
            patient=True,
            wake_at_s=look.now_s + phases.list_lag_s,  # also a list that goes away ends the wait
        )
    outcome = Outcome.RECOVERED if verified else Outcome.RECOVERED_UNVERIFIED
    return Progress(sentence="the pods are well", leave="settled", outcome=outcome, changes=changes)


def _why_incomplete(look: Look, state: InstanceState) -> str:
    if any(finding.code == FindingCode.NOT_COMPLETED for finding in state.rejections) and look.view.rings:
        return why_initializing(look.view.pods, replicas=look.workload.replicas)
    return state.reason
