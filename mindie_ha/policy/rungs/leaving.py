"""The first half of a Kubernetes rung: keep new pods away, wait for leave to delete, delete, see them gone.

Everything is judged by the view. A deletion is accepted when its pod terminates as fast as asked, or is
no longer there; what was sent before does not count. Repeats are spaced by `not_before_s`, which is
recorded, so neither a refused deletion nor a lost one makes a loop.
"""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.model.decisions import DeletePod, Notice
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Phase, Recovery
from mindie_ha.model.workloads import Role
from mindie_ha.policy import guards, manners
from mindie_ha.policy.holds import HELD_BY_PAUSE
from mindie_ha.policy.looks import Look
from mindie_ha.policy.obligations import in_effect, needs, order
from mindie_ha.policy.ownership import Mode, Ownership
from mindie_ha.policy.records import target_uids
from mindie_ha.policy.rungs.gates import STAYS_PUBLISHED, Gate, gate, guard
from mindie_ha.policy.rungs.steps import Progress, Scope

FORCING = "ForcingDeletion"
WAITING_FOR_FINALIZER = "WaitingForFinalizer"
RESEND_FIRST_S = 1.0  # the view lags a deletion by less than this
RESEND_MAX_S = 10.0


def isolate(look: Look, recovery: Recovery, scope: Scope) -> Progress:  # noqa: ARG001 - one shape for all
    """Wait until every isolation that the faults ask for is in force."""
    missing = [need for need in needs(look) if not in_effect(look, need, recovery)]
    if missing:
        return Progress(
            sentence=f"isolating {', '.join(need.ref for need in missing)}",
            actions=tuple(order(look, need, recovery) for need in missing),
        )
    to, changes = after_isolation(look, recovery)
    exit_ = "isolated" if recovery.obligations else "nothing to isolate"
    return Progress(sentence="isolation stands", leave=exit_, to=to, changes=changes)


def after_isolation(look: Look, recovery: Recovery) -> tuple[Phase, dict[str, object]]:
    """Where to go from `isolate`: to `stop`, or first to wait until a deletion is allowed."""
    changes = _withdrawing(look, recovery)
    opened = gate(look, recovery.model_copy(update=changes)).open
    return (Phase.STOP if opened else Phase.BACKOFF), changes


def backoff(look: Look, recovery: Recovery, scope: Scope) -> Progress:  # noqa: ARG001
    """Wait until a deletion is allowed, or somebody else has done it."""
    if not (guards.standing if guards.on(look) else _present)(look, recovery):
        return Progress(sentence="no target is left", leave="done by others")
    recovery, changes = _withdrawn_anew(look, recovery)
    closed_by = gate(look, recovery)
    if closed_by.open:
        return Progress(sentence="deletions are allowed", leave="allowed", notices=_resumed(look, recovery))
    ended = () if look.hold.on else _resumed(look, recovery)
    return replace(_held_by(closed_by), changes=changes, notices=ended)


def _withdrawn_anew(look: Look, recovery: Recovery) -> tuple[Recovery, dict[str, object]]:
    """While a hold stands the instance stays in the table; then consumers get their time to drop it."""
    ended = recovery.condition in STAYS_PUBLISHED and gate(look, recovery).condition not in STAYS_PUBLISHED
    changes = _withdrawing(look, recovery) if ended else {}
    return recovery.model_copy(update=changes), changes


def _withdrawing(look: Look, recovery: Recovery) -> dict[str, object]:
    """Not before consumers had the time to drop an instance gracefully."""
    not_before_s = recovery.not_before_s
    if look.claim.mode is Mode.GRACE and look.workload.role is Role.SERVER:
        not_before_s = max(not_before_s, look.now_s + look.settings.phases.withdraw_grace_s)
    return {"not_before_s": not_before_s}


def _resumed(look: Look, recovery: Recovery) -> tuple[Notice, ...]:
    """What is told of a pause that ended, where it held something."""
    if recovery.condition != HELD_BY_PAUSE:
        return ()
    by_hand = look.hold.ended and look.hold.ended_at_s >= recovery.phase_since_s
    why = look.hold.ended if by_hand else "the time of the pause is over"
    message = f"{look.workload.key}: deletions go on: {why}"
    return (Notice("Resumed", message, key=f"resumed:{look.workload.uid}#{recovery.epoch}"),)


def stop(look: Look, recovery: Recovery, scope: Scope) -> Progress:  # noqa: ARG001
    """Delete the targets until every deletion is accepted; first, if so asked, let processes know."""
    if look.hold.on and _is_untouched(look, recovery):
        return Progress(sentence="deletions are held", leave="held, nothing was deleted", to=Phase.ISOLATE)
    graces = ((pod, _grace_s(look, recovery, pod)) for pod in _present(look, recovery))
    waiting = [pod for pod, grace_s in graces if not _accepted(look, pod, grace_s)]
    closed_by = guard(look, recovery)
    if waiting and not closed_by.open:  # adoption was lost since we were let through
        return _held_by(closed_by)
    word = manners.untold(look, recovery)
    if word is not None and (until_s := manners.told_until_s(look, recovery)) is not None:
        return Progress(
            sentence="telling the training processes to save their state and leave",
            actions=(word,),
            changes={"obligations": manners.obliged(look, recovery)},
            wake_at_s=until_s,
        )
    if not waiting:
        return Progress(sentence="every deletion is accepted", leave="accepted")
    sent = _delete(look, recovery, waiting, forced=False)
    return replace(sent, notices=manners.unheard(look, recovery))


def _is_untouched(look: Look, recovery: Recovery) -> bool:
    """Whether nobody had a deletion of this attempt accepted: all targets still stand."""
    names = {target.name for target in recovery.targets}
    return bool(names) and names <= {pod.key.name for pod in guards.standing(look, recovery)}


def _held_by(closed_by: Gate) -> Progress:
    return Progress(
        sentence=f"deletions wait: {closed_by.message}",
        condition=closed_by.condition,
        condition_message=closed_by.message,
        wake_at_s=closed_by.wake_at_s,
    )


def gone(look: Look, recovery: Recovery, scope: Scope) -> Progress:  # noqa: ARG001
    """Wait until no target is left; force what stays too long, or stands on a node that was lost."""
    left = _present(look, recovery)
    if not left:
        return Progress(sentence="every target is gone", leave="gone")
    forced = recovery.condition in (FORCING, WAITING_FOR_FINALIZER)
    late = recovery.deadline_s is not None and look.now_s >= recovery.deadline_s
    if late and forced:
        known = {"condition": WAITING_FOR_FINALIZER} if any(pod.finalizers for pod in left) else {}
        failed = f"pods are still there: {_why_stuck(left)}"
        return Progress(sentence="targets stay", failed=failed, changes=known)
    if late:
        deadline_s = look.now_s + look.settings.phases.gone_s
        changes: dict[str, object] = {"deadline_s": deadline_s, "not_before_s": 0.0}
        recovery, forced = recovery.model_copy(update=changes), True
    else:
        changes = {}
    urgent = [pod for pod in left if forced or _grace_s(look, recovery, pod) == 0]
    unaccepted = [pod for pod in urgent if not _accepted(look, pod, 0, forced=forced)]
    condition, message = (FORCING, f"pods outlived their grace: {_why_stuck(left)}") if forced else ("", "")
    if not unaccepted:
        return Progress(
            sentence=message or f"{len(left)} of the targets are still there",
            changes=changes,
            condition=condition,
            condition_message=message,
        )
    sent = _delete(look, recovery, unaccepted, forced=True)
    return Progress(
        sentence=f"{sent.sentence}; {message}" if message else sent.sentence,
        actions=sent.actions,
        changes={**changes, **sent.changes},
        condition=condition,
        condition_message=message,
        wake_at_s=sent.wake_at_s,
    )


def gone_deadline_s(look: Look, recovery: Recovery) -> float:
    """How long targets may take to vanish before they are forced."""
    phases = look.settings.phases
    if manners.manner(look, recovery) is Mode.FORCE:
        return phases.gone_s
    if look.claim.external:
        graces = [pod.termination_grace_s for pod in _present(look, recovery)]
        return max(graces, default=phases.gone_s)
    return phases.stop_grace_s


def _present(look: Look, recovery: Recovery) -> list[Pod]:
    uids = target_uids(recovery)
    return [pod for pod in look.view.pods if pod.uid in uids]


def _grace_s(look: Look, recovery: Recovery, pod: Pod) -> int | None:
    """0 is at once: asked by label, or since no kubelet can stop it any more. None: the pod's own."""
    return 0 if manners.manner(look, recovery) is Mode.FORCE or _is_on_lost_node(look, pod) else None


def _is_on_lost_node(look: Look, pod: Pod) -> bool:
    view = look.nodes.get(pod.node)
    if view is None or not pod.node:
        return False
    if not view.node.exists:
        return True
    since_s = view.node.not_ready_since_s
    patience_s = look.settings.faults.node_not_ready_s
    return not view.node.ready and since_s is not None and look.now_s >= since_s + patience_s


def _accepted(look: Look, pod: Pod, grace_s: int | None, *, forced: bool = False) -> bool:
    if not pod.terminating or grace_s is None or pod.grace_s == 0:
        return pod.terminating
    # what somebody else asked for counts, as long as a kubelet can do it and there is time
    return guards.on(look) and not forced and not _is_on_lost_node(look, pod)


def _delete(look: Look, recovery: Recovery, pods: list[Pod], *, forced: bool) -> Progress:
    names = ", ".join(pod.key.name for pod in pods)
    if look.now_s < recovery.not_before_s:
        sentence = f"waiting for the deletion of {names} to be accepted"
        return Progress(sentence=sentence, wake_at_s=recovery.not_before_s)
    waited_s = look.now_s - recovery.phase_since_s
    again_at_s = look.now_s + min(RESEND_MAX_S, max(RESEND_FIRST_S, waited_s))
    adopted = look.claim.ownership is Ownership.ADOPTED
    return Progress(
        sentence=f"deleting {names}",
        actions=tuple(
            DeletePod(
                key=pod.key,
                uid=pod.uid,
                grace_s=0 if forced else _grace_s(look, recovery, pod),
                adopted=adopted,
            )
            for pod in pods
        ),
        changes={"not_before_s": again_at_s},
        wake_at_s=again_at_s,
    )


def _why_stuck(pods: list[Pod]) -> str:
    return ", ".join(
        f"{pod.key.name} ({'finalizer ' + ', '.join(pod.finalizers) if pod.finalizers else 'no finalizer'})"
        for pod in pods
    )
