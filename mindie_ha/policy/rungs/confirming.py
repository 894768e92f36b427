"""Are the replacements well in their role? The judgement that ends a recovery.

Of most workloads Kubernetes' word is enough. Active and standby are unready by design, so of MS it
takes more: each replacement runs and answers for its health, and somebody is active, whoever it is.

Certainly nobody active for `failover_s` ends the pod rung: a wider one follows. Not knowing is something
else: it starts no clock, and after `unverified_after_s` of running the recovery is closed as not verified.

Source: design §5.1 (settle), §5.4.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.faults import Cause
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Recovery
from mindie_ha.model.workloads import Role
from mindie_ha.policy import activity
from mindie_ha.policy.leaders import twins
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs.steps import Progress
from mindie_ha.policy.wellness import goal, unwell

NO_ACTIVE = "NoActive"
_RESET = {"quiet_since_s": None, "no_active_since_s": None}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`waits`: what is still missing. Else all is well; `doubt` says why nobody can vouch for it."""

    waits: Progress | None = None
    doubt: str = ""


def confirm(look: Look, recovery: Recovery, pods: tuple[Pod, ...]) -> Confirmation:
    """Judge `pods`, the replacements of `recovery`."""
    if not _tells_roles(look):
        return _by_kubernetes(look, pods)
    waiting = _not_well(look, pods)
    if waiting:
        return Confirmation(Progress(sentence=waiting, changes=_RESET))
    if activity.active(look.alive, look.view.roles):
        return Confirmation(doubt=_doubt(look, pods))
    if recovery.intent.cause is Cause.CONTROLLER_UNSUBSCRIBED:
        return Confirmation(doubt="it did not subscribe again so far")
    if activity.nobody_since_s(look.alive, look.view.roles) is not None:
        return Confirmation(_nobody(look, recovery))
    return Confirmation(doubt=f"who is active is not known: {_reason(look)}")


def _tells_roles(look: Look) -> bool:
    """Whether anything can be known of who is active. A Controller that never subscribed tells nothing."""
    if look.workload.role is Role.COORDINATOR:
        return bool(look.view.roles)
    told = look.view.ledger.subscribed_uid or activity.active(look.alive, look.view.roles)
    return look.workload.role is Role.CONTROLLER and bool(told)


def _by_kubernetes(look: Look, pods: tuple[Pod, ...]) -> Confirmation:
    mine = {pod.uid for pod in pods}  # peers outside count only in that one of them may be the active one
    waited_for = [pod for pod in unwell(look.workload.role, look.alive) if pod.uid in mine]
    if waited_for:
        sentence = f"{waited_for[0].key.name} is not {goal(waited_for[0])} yet"
        return Confirmation(Progress(sentence=sentence, changes=_RESET))
    if look.lives_together and (doubled := twins(look.alive)):
        return Confirmation(Progress(sentence=doubled, changes=_RESET))
    probed = look.workload.role is Role.TRAINING or all(pod.has_readiness_probe for pod in pods)
    return Confirmation(doubt="" if probed else "they have no readinessProbe")


def _not_well(look: Look, pods: tuple[Pod, ...]) -> str:
    for pod in pods:
        role = look.view.roles.get(pod.uid)
        if not pod.runs:
            return f"{pod.key.name} is not {goal(pod)} yet"
        if role is not None and role.healthy is False:
            return f"{pod.key.name} says that it is not well"
        if look.workload.role is Role.CONTROLLER and pod.has_readiness_probe and not pod.ready:
            return f"{pod.key.name} is not Ready yet"
    return ""


def _doubt(look: Look, pods: tuple[Pod, ...]) -> str:
    """Why a replacement is not known to be well, though it runs beside an active pod."""
    for pod in pods:
        role = look.view.roles.get(pod.uid)
        answers = role is not None and role.healthy
        if not answers and not (pod.has_readiness_probe and pod.ready):
            return f"{pod.key.name} does not answer for its health"
    return ""


def _nobody(look: Look, recovery: Recovery) -> Progress:
    since_s = look.now_s if recovery.no_active_since_s is None else recovery.no_active_since_s
    until_s = since_s + look.settings.roles.failover_s
    sentence = "no pod is active, all are standby"
    if not look.last_rung and look.now_s >= until_s:
        return Progress(sentence=sentence, failed=f"{sentence} for {look.settings.roles.failover_s:g} s")
    return Progress(
        sentence=sentence,
        condition=NO_ACTIVE,
        condition_message=sentence,
        changes={"quiet_since_s": None, "no_active_since_s": since_s},
        wake_at_s=until_s if look.now_s < until_s else None,
    )


def _reason(look: Look) -> str:
    known = (look.view.roles.get(pod.uid) for pod in activity.running(look.alive))
    return next((role.reason for role in known if role is not None), "no pod runs")


__all__ = ["NO_ACTIVE", "Confirmation", "confirm"]
