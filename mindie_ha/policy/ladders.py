"""Which rungs a workload has, in order: one table by role and labels.

The last rung of a row is repeated after back-off until attempts or budget are spent; then the workload
parks. A new rung is a file in `rungs/` and its place in a row; nothing outside this room knows one
by name, so rows that are handed to the planner run through the same engine.

Source: design §5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mindie_ha.model.settings import Owner, Settings
from mindie_ha.model.workloads import Role, Workload
from mindie_ha.policy.activity import MS_ROLES
from mindie_ha.policy.rungs.job import JobRung
from mindie_ha.policy.rungs.members import BLOCKS, MemberRung, limited_to_pods
from mindie_ha.policy.rungs.pod import PodRung, asked_for, label_asks
from mindie_ha.policy.rungs.steps import Rung

TRAINING = frozenset({Role.TRAINING})

POD, JOB = PodRung(), JobRung()
MEMBER, ONLY_MEMBERS = MemberRung(), MemberRung(leads=True)


@dataclass(frozen=True, slots=True)
class LadderRow:
    """The first row whose role and condition fit decides."""

    roles: frozenset[Role]
    rungs: tuple[Rung, ...]
    when: Callable[[Workload, Settings], bool] = lambda *_: True


LADDERS: tuple[LadderRow, ...] = (
    LadderRow(frozenset({Role.SERVER}), (JOB,)),
    LadderRow(
        MS_ROLES,
        (POD, JOB),
        when=lambda workload, settings: (
            asked_for(workload, settings.roles) or _by_volcano(workload, settings)
        ),
    ),
    LadderRow(MS_ROLES, (JOB,)),
    LadderRow(TRAINING, (ONLY_MEMBERS,), when=lambda workload, _: limited_to_pods(workload)),
    LadderRow(TRAINING, (MEMBER, *BLOCKS, JOB), when=lambda workload, _: label_asks(workload)),
    LadderRow(TRAINING, (JOB,)),
)


def _by_volcano(workload: Workload, settings: Settings) -> bool:
    """Volcano replaces only the failed pods of an MS job, whatever its labels say."""
    return settings.ownership.owner is Owner.VOLCANO and workload.replicas > 1


def ladder(
    workload: Workload, *, settings: Settings, rows: tuple[LadderRow, ...] = LADDERS
) -> tuple[Rung, ...]:
    """The rungs of `workload`, narrowest first."""
    for row in rows:
        if workload.role in row.roles and row.when(workload, settings):
            return row.rungs
    return ()
