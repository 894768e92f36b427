"""How the targets of a recovery are deleted: at once, or with time to save their state.

The job's label `fault-scheduling` says it, except for cards that are only sub-healthy: there the strategy
does. `forceExit` is at once; with `graceExit` a training process is first told to leave by itself
(`GracefulExit` in the job's reset-config) and its pods get their own grace. What is told is an obligation:
recorded before, taken back when the successors are placed. Source: rescheduling contract §2.4, M8-M10.
"""

from __future__ import annotations

from mindie_ha.model import reset_configs
from mindie_ha.model.decisions import Notice, TellExit
from mindie_ha.model.faults import Cause
from mindie_ha.model.recoveries import Obligation, Phase, Recovery
from mindie_ha.model.workloads import Workload
from mindie_ha.policy.effects import FORCE_EXIT, GRACE_EXIT, LABEL_STRATEGY, Subject, subject_of
from mindie_ha.policy.looks import Look
from mindie_ha.policy.ownership import Mode

MARK_EXIT = "graceful-exit"
LABEL_PROCESS_RECOVERY = "process-recover-enable"
ANNOTATION_STRATEGIES = "recover-strategy"
WORD_S = 5.0  # nothing is broken yet, so the word may take so long to be written
AWAY_S = 1.0  # a look that is so late was none of ours
_TELLING = (Phase.ISOLATE, Phase.BACKOFF, Phase.STOP, Phase.GONE, Phase.RECREATE, Phase.PLACE)


def manner(look: Look, recovery: Recovery) -> Mode:
    """Whether the targets get their own grace."""
    strategy = look.workload.labels.get(LABEL_STRATEGY, "")
    if not _is_only_sub_health(look, recovery) or strategy not in (FORCE_EXIT, GRACE_EXIT):
        return look.claim.mode
    return Mode.FORCE if strategy == FORCE_EXIT else Mode.GRACE


def untold(look: Look, recovery: Recovery) -> TellExit | None:
    """The word to the processes that has to be there before their pods are deleted; None: none, or it is."""
    reset = look.view.reset
    if not _is_told(look, recovery) or reset is None or reset.error or reset.held or reset.graceful_exit:
        return None
    return TellExit(key=reset.key, ending=True, at_s=look.now_s)


def unheard(look: Look, recovery: Recovery) -> tuple[Notice, ...]:
    """What is told where processes should have got the word and there is nowhere to write it."""
    reset = look.view.reset
    if not _is_told(look, recovery) or (reset is not None and not reset.error and not reset.held):
        return ()
    name = f"ConfigMap {reset_configs.name_of(look.workload.key.name)}"
    why = f"{name} is missing" if reset is None else reset.error or f"{name} is in use by the device plugin"
    message = f"{look.workload.key}: processes are not told to save their state, {why}"
    key = f"graceful:{look.workload.uid}#{recovery.epoch}"
    return (Notice("GracefulExitNotWritten", message, warning=True, key=key),)


def obliged(look: Look, recovery: Recovery) -> tuple[Obligation, ...]:
    """The obligations of `recovery` with that of the word."""
    if untold(look, recovery) is None or _word_of(look, recovery) is not None:
        return recovery.obligations
    name = reset_configs.name_of(look.workload.key.name)
    undo = f"set GracefulExit to 0 in {look.workload.key.namespace}/{name}"
    word = Obligation(mark=MARK_EXIT, ref=f"{name}/GracefulExit", undo=undo, since_s=look.now_s)
    others = tuple(one for one in recovery.obligations if one.mark != MARK_EXIT)
    return (*others, word)


def told_until_s(look: Look, recovery: Recovery) -> float | None:
    """Until when the word that is not there yet is ordered; None: it was tried for long enough."""
    word = _word_of(look, recovery)
    return look.now_s + WORD_S if word is None else _tried_until_s(look, word)


def _word_of(look: Look, recovery: Recovery) -> Obligation | None:
    """The recorded word; not one whose time was over when nobody looked: who died may not have said it."""
    found = next((one for one in recovery.obligations if one.mark == MARK_EXIT), None)
    return None if found is not None and look.now_s > found.since_s + WORD_S + AWAY_S else found


def _tried_until_s(look: Look, word: Obligation) -> float | None:
    until_s = word.since_s + WORD_S
    return until_s if look.now_s < until_s else None


def stands(look: Look, obligation: Obligation) -> bool:
    """Whether the word still has to be taken back."""
    reset = look.view.reset
    return obligation.mark == MARK_EXIT and reset is not None and not reset.error and reset.graceful_exit


def taken_back(look: Look, recovery: Recovery | None, *, at_once: bool = False) -> tuple[TellExit, ...]:
    """The action that takes the word back, where it is time: successors must not leave at once."""
    if recovery is None or look.view.reset is None or (recovery.phase in _TELLING and not at_once):
        return ()
    if not any(stands(look, one) for one in recovery.obligations):
        return ()
    return (TellExit(key=look.view.reset.key, ending=False, at_s=look.now_s),)


def recovers_processes(job: Workload) -> bool:
    """Whether agents in the pods recover processes by themselves: then the mailbox is theirs."""
    return job.labels.get(LABEL_PROCESS_RECOVERY) == "on" or ANNOTATION_STRATEGIES in job.annotations


def _is_told(look: Look, recovery: Recovery) -> bool:
    job = look.workload
    return (
        job.labels.get(LABEL_STRATEGY) == GRACE_EXIT
        and recovery.phase is Phase.STOP
        and subject_of(job.role) is Subject.TRAINING
        and _is_only_sub_health(look, recovery)
        and not recovers_processes(job)
    )


def _is_only_sub_health(look: Look, recovery: Recovery) -> bool:
    causes = {recovery.intent.cause, *(fault.cause for fault in look.verdict.acting)}
    return causes == {Cause.CHIP_FAULT_LISTED}


__all__ = [
    "MARK_EXIT",
    "manner",
    "obliged",
    "recovers_processes",
    "stands",
    "taken_back",
    "told_until_s",
    "unheard",
    "untold",
]
