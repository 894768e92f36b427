"""Which rungs a workload has, in order: one table by role and labels.

The last rung of a row is repeated after back-off until attempts or budget are spent; then the workload
parks. A new rung is a file in `rungs/`, a name in `RUNGS` and its place in a row.

Source: design §5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Role, Workload
from mindie_ha.policy.activity import MS_ROLES
from mindie_ha.policy.rungs.job import JobRung
from mindie_ha.policy.rungs.pod import PodRung, asked_for
from mindie_ha.policy.rungs.steps import Rung

RUNGS: Mapping[str, Rung] = MappingProxyType({rung.name: rung for rung in (PodRung(), JobRung())})


@dataclass(frozen=True, slots=True)
class LadderRow:
    """The first row whose role and condition fit decides."""

    roles: frozenset[Role]
    rungs: tuple[str, ...]
    when: Callable[[Workload, Settings], bool] = lambda *_: True


LADDERS: tuple[LadderRow, ...] = (
    LadderRow(frozenset({Role.SERVER}), ("job",)),
    LadderRow(MS_ROLES, ("pod", "job"), when=lambda workload, settings: asked_for(workload, settings.roles)),
    LadderRow(MS_ROLES, ("job",)),
    LadderRow(frozenset({Role.TRAINING}), ("job",)),
)


def ladder(workload: Workload, *, settings: Settings) -> tuple[Rung, ...]:
    """The rungs of `workload`, narrowest first."""
    for row in LADDERS:
        if workload.role in row.roles and row.when(workload, settings):
            return tuple(RUNGS[name] for name in row.rungs)
    return ()
