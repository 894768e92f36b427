"""Guard: somebody else deletes first, and we watch, verify, and act where nothing is deleted.

In guard a pod is deleted by whoever comes first and never by both. So a recovery aims at the pods that stood
when its fault was seen, never at those that their owner made since; a pod that the other took away counts as
done; and our turn comes `guard_s` after the last deletion that was seen, not after the fault alone. Adoption
that is lost in the middle of a recovery starts the same clock, since Volcano may act from then on.

What the other never does is not waited for: Volcano never widens to the job of a Controller or Coordinator.

Source: rescheduling contract §2.5, §2.6, §7.1 (1); design §7.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.model.faults import FaultSource
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import RUNG_JOB, RUNG_POD, Phase, Recovery, Target
from mindie_ha.model.settings import Owner
from mindie_ha.model.workloads import Role
from mindie_ha.policy import records
from mindie_ha.policy.looks import Look
from mindie_ha.policy.ownership import Ownership
from mindie_ha.policy.verdicts import Verdict

GUARDING = "GuardingOwner"
_BEFORE_STOP = (Phase.ISOLATE, Phase.BACKOFF)
_NEVER_REBUILT = frozenset({Role.CONTROLLER, Role.COORDINATOR})  # as jobs, by Volcano


def on(look: Look) -> bool:
    """Whether somebody else may delete first."""
    return look.claim.ownership is Ownership.GUARD


def old_pods(look: Look, pods: Iterable[Pod], *, verdict: Verdict) -> list[Pod]:
    """Those of `pods` that an attempt aims at: in guard not what the owner made meanwhile."""
    found = list(pods)
    if not on(look):
        return found
    recovery = look.view.ledger.recovery
    known = {member.uid for member in look.view.ledger.members} | verdict.pods_hit
    if recovery is not None:
        known |= {item.uid for item in recovery.replacements}
    old = [pod for pod in found if pod.uid in known]
    return old if old or vanished(verdict) else found


def vanished(verdict: Verdict) -> tuple[Target, ...]:
    """The members that went before the recovery was opened: its targets, though done by others."""
    gone = (fault for fault in verdict.acting if fault.source is FaultSource.MEMBER)
    return tuple(Target(name=fault.pod, uid=fault.pod_uid) for fault in gone)


def watched(look: Look, recovery: Recovery) -> Recovery:
    """`recovery` with the clock of the guard as it stands with this look."""
    if not on(look):
        if recovery.guarded_since_s is None:
            return recovery
        return records.updated(recovery, guarded_since_s=None, guarded_left=0)
    left = len(standing(look, recovery))
    since_s = recovery.guarded_since_s
    deleted = recovery.phase in _BEFORE_STOP and left < recovery.guarded_left
    if since_s is None or deleted:
        since_s = look.now_s
    elif left == recovery.guarded_left or recovery.phase not in _BEFORE_STOP:
        return recovery
    return records.updated(recovery, guarded_since_s=since_s, guarded_left=left)


def standing(look: Look, recovery: Recovery) -> list[Pod]:
    """Targets that nobody has asked to be deleted."""
    uids = records.target_uids(recovery)
    return [pod for pod in look.view.pods if pod.uid in uids and not pod.terminating]


def acts_at_s(look: Look, recovery: Recovery) -> float:
    """When our turn comes; 0 where nobody else is waited for."""
    if not on(look) or _never_done_by_others(look, recovery):
        return 0.0
    attempts = look.view.ledger.attempts
    began_s = attempts[-1].at_s if attempts else recovery.opened_at_s
    return max(began_s, recovery.guarded_since_s or 0.0) + look.settings.ownership.guard_s


def why(look: Look) -> str:
    """What is waited for."""
    if look.settings.ownership.owner is Owner.VOLCANO:
        return "Volcano acts first"
    if look.claim.external:
        return "the owner of the pods acts first"
    return "the PodGroup is not seen as adopted, so Volcano may act first"


def _never_done_by_others(look: Look, recovery: Recovery) -> bool:
    widened = recovery.rung == RUNG_JOB and bool(recovery.attempts.get(RUNG_POD))
    return look.workload.role in _NEVER_REBUILT and widened


__all__ = ["GUARDING", "acts_at_s", "old_pods", "on", "standing", "vanished", "watched", "why"]
