"""Graceful fault tolerance: an old device plugin resets the card under the job, and processes go on.

It is out of service upstream, and understood here so that nobody is restarted for nothing: while the job's
reset-config says that a rank is being reset, or was, its card's fault is waited out, at the longest for
`faults.graceful_reset_s`. `failed`, or time that ran out, leads to the job rung, as it does where process
recovery is on as well: the two exclude each other. Source: training contract §1.10; design §5.2.
"""

from __future__ import annotations

from mindie_ha.model.decisions import Notice
from mindie_ha.model.faults import Cause
from mindie_ha.model.recoveries import Recovery
from mindie_ha.model.reset_configs import ResetConfig
from mindie_ha.policy import manners
from mindie_ha.policy.looks import Look

RESETTING = "ChipResetting"
_GOING_WELL = ("unrecovered", "recovered")  # recovered: the card's own report follows
_OF_A_CHIP = frozenset({Cause.CHIP_UNHEALTHY, Cause.CHIP_RESETTING, Cause.CHIP_FAULT_LISTED})


def waits_until_s(look: Look, recovery: Recovery) -> float | None:
    """Until when the device plugin is given time; None: it is at work on nothing that explains the faults."""
    reset = look.view.reset
    causes = {fault.cause for fault in look.verdict.acting} or {recovery.intent.cause}
    if reset is None or not _is_at_work(reset) or not causes <= _OF_A_CHIP:
        return None
    if manners.recovers_processes(look.workload):
        return None
    return recovery.opened_at_s + look.settings.faults.graceful_reset_s


def remarks(look: Look) -> tuple[Notice, ...]:
    """What is told of a job under which cards are reset."""
    reset = look.view.reset
    if reset is None or not reset.held:
        return ()
    job = look.workload
    message = f"{job.key}: a card is reset under the job (graceful fault tolerance, which is out of service)"
    if manners.recovers_processes(job):
        message += "; with process recovery on the two exclude each other, so the whole job is replaced"
    return (Notice("GracefulTolerance", message, warning=True, key=f"graceful-reset:{job.uid}"),)


def _is_at_work(reset: ResetConfig) -> bool:
    held = [rank for rank in reset.ranks if rank.policy]
    return bool(held) and all(rank.status in _GOING_WELL for rank in held)
