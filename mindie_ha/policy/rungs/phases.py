"""The phases that every Kubernetes rung goes through, as one table.

    isolate -> [backoff] -> stop -> gone -> recreate -> place -> table -> [rejoin] -> announce -> settle

Each row says who has to act, what is looked at, how long it may take and what happens then, and where it
can lead. Rungs differ only in their scope (which pods, how many), so a new rung brings no phase of its
own. Promise: every phase has an owner, an exit, and a deadline or a named condition; a test walks the
table and proves it. Source: design §5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from mindie_ha.model.recoveries import Outcome, Phase, Recovery
from mindie_ha.policy.looks import Look
from mindie_ha.policy.records import entered, updated
from mindie_ha.policy.rungs import leaving, rejoining, returning
from mindie_ha.policy.rungs.steps import Failed, Progress, Recovered, Scope, StepResult

Check = Callable[[Look, Recovery, Scope], Progress]
Deadline = Callable[[Look, Recovery], float | None]


class Overdue(StrEnum):
    """What a phase does when its deadline has passed."""

    GO_ON = "go-on"  # next phase, noted
    CONDITION = "condition"  # stay, and say what is waited for
    NEXT_RUNG = "next-rung"  # this attempt failed
    OWN = "own"  # the check handles it (force, then fail)


@dataclass(frozen=True, slots=True)
class PhaseRule:
    """One row. `exits[0]` is the regular one, None closes the recovery.

    `last_overdue` holds on the last rung of a ladder, where there is nothing wider to turn to.
    `condition` names the wait where no deadline ends it.
    """

    owner: str
    check: Check
    deadline: Deadline
    overdue: Overdue
    last_overdue: Overdue
    condition: str
    exits: tuple[Phase | None, ...]


TRANSITIONS: Mapping[Phase, PhaseRule] = MappingProxyType(
    {
        Phase.ISOLATE: PhaseRule(
            owner="mindie-ha (node taint)",
            check=leaving.isolate,
            deadline=lambda look, _: look.settings.phases.isolate_s,
            overdue=Overdue.GO_ON,
            last_overdue=Overdue.GO_ON,
            condition="",
            exits=(Phase.STOP, Phase.BACKOFF),
        ),
        Phase.BACKOFF: PhaseRule(
            owner="mindie-ha (back-off, guard, brake, pause)",
            check=leaving.backoff,
            deadline=lambda *_: None,
            overdue=Overdue.CONDITION,
            last_overdue=Overdue.CONDITION,
            condition="DeletionsWait",
            exits=(Phase.STOP, Phase.ISOLATE),
        ),
        Phase.STOP: PhaseRule(
            owner="mindie-ha (pod deletion)",
            check=leaving.stop,
            deadline=lambda look, _: look.settings.phases.stop_s,
            overdue=Overdue.CONDITION,
            last_overdue=Overdue.CONDITION,
            condition="DeletionNotAccepted",
            exits=(Phase.GONE, Phase.ISOLATE),
        ),
        Phase.GONE: PhaseRule(
            owner="kubelet, then mindie-ha (force)",
            check=leaving.gone,
            deadline=leaving.gone_deadline_s,
            overdue=Overdue.OWN,
            last_overdue=Overdue.OWN,
            condition="",
            exits=(Phase.RECREATE, Phase.ISOLATE),
        ),
        Phase.RECREATE: PhaseRule(
            owner="owner of the pods (Ascend Operator)",
            check=returning.recreate,
            deadline=lambda look, _: look.settings.phases.recreate_s,
            overdue=Overdue.NEXT_RUNG,
            last_overdue=Overdue.CONDITION,
            condition="WaitingForAdmission",
            exits=(Phase.PLACE, Phase.ISOLATE),
        ),
        Phase.PLACE: PhaseRule(
            owner="scheduler",
            check=returning.place,
            deadline=returning.place_deadline_s,
            overdue=Overdue.NEXT_RUNG,
            last_overdue=Overdue.CONDITION,
            condition=returning.WAITING_FOR_CAPACITY,
            exits=(Phase.TABLE, Phase.RECREATE, Phase.ISOLATE),
        ),
        Phase.TABLE: PhaseRule(
            owner="Ascend Operator (hccl.json), kubelet (addresses)",
            check=returning.table,
            deadline=lambda look, _: look.settings.phases.table_s,
            overdue=Overdue.NEXT_RUNG,
            last_overdue=Overdue.CONDITION,
            condition="WaitingForTable",
            exits=(Phase.ANNOUNCE, Phase.REJOIN, Phase.RECREATE, Phase.ISOLATE),
        ),
        Phase.REJOIN: PhaseRule(
            owner="mindie-ha (reset-config), then the training agents",
            check=rejoining.rejoin,
            deadline=lambda look, _: look.settings.phases.rejoin_s,
            overdue=Overdue.NEXT_RUNG,
            last_overdue=Overdue.NEXT_RUNG,
            condition="",
            exits=(Phase.ANNOUNCE, Phase.RECREATE, Phase.ISOLATE),
        ),
        Phase.ANNOUNCE: PhaseRule(
            owner="publisher",
            check=returning.announce,
            deadline=lambda look, _: look.settings.phases.settle_s,
            overdue=Overdue.GO_ON,
            last_overdue=Overdue.GO_ON,
            condition="",
            exits=(Phase.SETTLE, Phase.RECREATE, Phase.ISOLATE),
        ),
        Phase.SETTLE: PhaseRule(
            owner="the workload itself",
            check=returning.settle,
            deadline=lambda look, _: look.settings.phases.startup_s,
            overdue=Overdue.NEXT_RUNG,
            last_overdue=Overdue.NEXT_RUNG,
            condition="",
            exits=(None, Phase.RECREATE, Phase.ISOLATE),
        ),
    }
)

WITH_REPLACEMENTS = (Phase.PLACE, Phase.TABLE, Phase.REJOIN, Phase.ANNOUNCE, Phase.SETTLE)
"""Phases that a vanished replacement throws back to `recreate`."""


def deadline_s(look: Look, recovery: Recovery, phase: Phase) -> float | None:
    """Wall time by which `phase`, entered now, has to end."""
    after_s = TRANSITIONS[phase].deadline(look, recovery)
    return None if after_s is None else look.now_s + after_s


def step(look: Look, recovery: Recovery, scope: Scope) -> StepResult:
    """One step of `recovery` through the table."""
    if recovery.phase in WITH_REPLACEMENTS:
        count = len(returning.replacements(look, recovery, scope))
        if count < scope.expected:
            return _enter(look, recovery, Phase.RECREATE, exit_="a replacement vanished")
    rule = TRANSITIONS[recovery.phase]
    progress = rule.check(look, recovery, scope)
    recovery = updated(recovery, **progress.changes)
    if progress.failed:
        return StepResult(recovery, progress.failed, result=Failed(f"{recovery.phase}: {progress.failed}"))
    if progress.leave:
        return _leave(look, recovery, rule, progress)
    if progress.patient or recovery.deadline_s is None or look.now_s < recovery.deadline_s:
        return _wait(look, recovery, progress, condition=progress.condition)
    return _overdue(look, recovery, rule, progress)


def _leave(look: Look, recovery: Recovery, rule: PhaseRule, progress: Progress) -> StepResult:
    to = progress.to or rule.exits[0]
    if to is None:
        verified = progress.outcome is not Outcome.RECOVERED_UNVERIFIED
        return StepResult(recovery, progress.sentence, result=Recovered(verified), notices=progress.notices)
    return _enter(look, recovery, to, exit_=progress.leave, progress=progress)


def _overdue(look: Look, recovery: Recovery, rule: PhaseRule, progress: Progress) -> StepResult:
    match rule.last_overdue if look.last_rung else rule.overdue:
        case Overdue.GO_ON if recovery.phase is Phase.ISOLATE:
            to, changes = leaving.after_isolation(look, recovery)
            return _enter(look, updated(recovery, **changes), to, exit_="not visible in time")
        case Overdue.GO_ON:
            return _enter(look, recovery, rule.exits[0] or recovery.phase, exit_="not in time")
        case Overdue.NEXT_RUNG:
            reason = f"{recovery.phase}: not done in time, {progress.sentence}"
            return StepResult(recovery, reason, result=Failed(reason))
        case Overdue.CONDITION:
            condition = progress.condition or rule.condition
            return _wait(look, recovery, progress, condition=condition)
        case Overdue.OWN:
            return _wait(look, recovery, progress, condition=progress.condition)


def _wait(look: Look, recovery: Recovery, progress: Progress, *, condition: str) -> StepResult:
    message = progress.condition_message if progress.condition else ""
    recovery = updated(recovery, condition=condition, condition_message=message)
    ahead = recovery.deadline_s is not None and look.now_s < recovery.deadline_s
    times = [progress.wake_at_s, recovery.deadline_s if ahead else None]
    return StepResult(
        recovery,
        progress.sentence,
        actions=progress.actions,
        notices=progress.notices,
        wake_at_s=min((time for time in times if time is not None), default=None),
    )


def _enter(
    look: Look, recovery: Recovery, phase: Phase, *, exit_: str, progress: Progress | None = None
) -> StepResult:
    recovery = entered(
        recovery, phase, exit_=exit_, deadline_s=deadline_s(look, recovery, phase), now_s=look.now_s
    )
    sentence = progress.sentence if progress else exit_
    notices = progress.notices if progress else ()
    return StepResult(recovery, sentence, moved=True, notices=notices)
