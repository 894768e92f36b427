"""A member vanished or was replaced without us, while others of its instance go on.

Ranks of one instance live and die together: a pod that was deleted by hand and re-created by its owner
joins nobody. The old members that still stand are then the broken part. Nothing is wrong when no old
member stands any more (all were replaced), when the owner is being deleted or scaled, or while a recovery
is open (then it watches its own replacements).

Where others delete first (Volcano owns the deletions, or the infer-operator makes the workload), a member
that goes is enough, in every role and with no other left: the pods are often gone before we know of a fault,
and somebody has to see to their successors. But pods that stand each for itself miss nobody.

Source: rescheduling contract I4, I5, I7; cases 059, 067, 087, 091.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import Pod
from mindie_ha.model.workloads import Role, Workload


def member_faults(
    workload: Workload,
    pods: Iterable[Pod],
    *,
    ledger: WorkloadLedger,
    now_s: float,
    guarded: bool = False,
) -> tuple[Fault, ...]:
    """One fault for each member that is missing beside others that stand; where others delete, for
    each that is missing or going at all: what they do is watched to its end."""
    if not (_counted(workload, ledger) and workload.bound):
        return ()
    listed = tuple(pods)
    alive = {pod.uid for pod in listed if pod.alive}
    present = {pod.uid for pod in listed if not (guarded and pod.terminating)}
    if guarded and workload.role is Role.TRAINING and not alive:
        return ()  # a job that is finished is cleaned up; one that is restarted has new pods in a moment
    lives_together = workload.ranks_together and len(ledger.members) > 1
    if not guarded and not (lives_together and any(member.uid in alive for member in ledger.members)):
        return ()
    successors = {pod.key.name: pod for pod in listed}
    found = []
    for member in ledger.members:
        if member.uid in present:
            continue
        successor = successors.get(member.name)
        told = "a pod of that name has another UID" if successor is not None else "no such pod"
        told = "is being deleted" if successor is not None and successor.uid == member.uid else told
        found.append(
            Fault(
                source=FaultSource.MEMBER,
                cause=Cause.MEMBER_REPLACED,
                pod_uid=member.uid,
                pod=member.name,
                first_seen_s=successor.created_at_s if successor is not None else now_s,
                last_seen_s=now_s,
                evidence=f"member {member.name} ({member.uid}): {told}",
            )
        )
    return tuple(found)


def _counted(workload: Workload, ledger: WorkloadLedger) -> bool:
    return workload.replicas == len(ledger.members) and not workload.deleting and ledger.recovery is None
