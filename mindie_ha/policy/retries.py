"""The operator's patience: `remain-retry-times`, written where nobody else does.

A Failed pod makes its AscendJob terminally Failed unless gang scheduling is on, `fault-retry-times` is
above 0 and `vcjob-fault-npu-cm` has a positive entry for the job. Volcano's plugin writes that entry;
where nobody did within 30 s of Running, we do. An entry of ours follows what we spent, but only while no
recovery is open: the operator may still be about to read it. Source: rescheduling contract §2.6, O8-O11.
"""

from __future__ import annotations

from mindie_ha.model.decisions import GrantRetries
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import PodPhase
from mindie_ha.model.workloads import ASCEND_JOB_KIND
from mindie_ha.policy import budgets, records
from mindie_ha.policy.looks import Look

RETRY_CONFIG_MAP = ObjectKey("volcano-system", "vcjob-fault-npu-cm")
RETRY_KEY = "remain-retry-times"


def entry_of(look: Look) -> str:
    """The job's key in `remain-retry-times`."""
    return f"{look.workload.key}-{look.workload.uid}"


def grant(look: Look, ledger: WorkloadLedger) -> tuple[WorkloadLedger, GrantRetries | None, float | None]:
    """The ledger, the entry to write (None: nothing is due) and when to look again."""
    left = budgets.retries_left(look.workload, ledger)
    stands = look.view.retry_times is not None
    if budgets.retries_allowed(look.workload) == 0 or look.view.podgroup is None or ledger.recovery:
        return ledger, None, None
    if look.workload.kind != ASCEND_JOB_KIND:
        return ledger, None, None  # only the Ascend Operator reads it
    ours = ledger.retry_times_written and look.view.retry_times_ours
    if stands and (not ours or look.view.retry_times == left):
        return ledger, None, None
    running_since_s = _running_since_s(look)
    if running_since_s is None:
        return ledger, None, None
    pause_s = look.settings.budgets.grant_retries_after_s
    due_at_s = max(running_since_s, ledger.retry_times_written_at_s) + pause_s
    if stands:
        due_at_s = ledger.retry_times_written_at_s + 1.0  # our own entry: only keep from repeating at once
    if look.now_s < due_at_s:
        return ledger, None, due_at_s
    ledger = records.changed(ledger, retry_times_written=True, retry_times_written_at_s=look.now_s)
    return ledger, GrantRetries(entry=entry_of(look), job_uid=look.workload.uid, times=left), None


def _running_since_s(look: Look) -> float | None:
    """Since when every pod runs; None while one does not."""
    started = [pod.started_at_s for pod in look.alive if pod.phase is PodPhase.RUNNING]
    if not look.complete or len(started) != len(look.alive):
        return None
    return max((time for time in started if time is not None), default=None)
