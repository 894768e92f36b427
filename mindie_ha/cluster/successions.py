"""Whose memory a workload has: its own, or that of an object of its name that it takes the place of.

The object of an AscendJob or vcjob is the user's: one of the same name that is made later is another job and
remembers nothing. An instance of an InferServiceSet is made by its InstanceSet, and to rebuild it means to
delete the object and make it anew. So its memory lives as long as the InstanceSet and passes on: an open
recovery goes on with the new object, budgets and parks stand. Who its members were counts only where the old
object was seen to go just before; an instance that was scaled in and comes back a day later misses nobody.
"""

from __future__ import annotations

from mindie_ha.cluster.config_maps import LedgerEntry, read
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.workloads import Workload


def remembered(entry: LedgerEntry | None, workload: Workload, *, rebuilt: bool) -> tuple[WorkloadLedger, str]:
    """The memory of `workload`, a fresh one where it has none, and why it cannot be read."""
    fresh = WorkloadLedger(workload=f"{workload.kind}/{workload.key}", workload_uid=workload.uid)
    if entry is None or (entry.owner_uid and entry.owner_uid != workload.keeper_uid):
        return fresh, ""  # none, or that of an earlier object of this name
    ledger, error = read(entry, WorkloadLedger)
    if ledger is None or ledger.workload_uid == workload.uid:
        return ledger or fresh, error
    if workload.maker is None:
        return fresh, ""
    members = ledger.members if rebuilt or ledger.recovery is not None else ()
    return ledger.model_copy(update={"workload_uid": workload.uid, "members": members}), error


__all__ = ["remembered"]
