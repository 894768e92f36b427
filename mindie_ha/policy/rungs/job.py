"""The job rung: every pod of the workload's own AscendJob is replaced, and no pod of another.

It is the widest Kubernetes rung and helps with every fault, so it ends each ladder.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.recoveries import RUNG_JOB, Recovery
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs import phases
from mindie_ha.policy.rungs.members import BLOCKS, LEVELS
from mindie_ha.policy.rungs.steps import Scope, StepResult


@dataclass(frozen=True, slots=True)
class JobRung:
    """All pods of one AscendJob."""

    name: str = RUNG_JOB

    def applicable(self, look: Look) -> bool:  # noqa: ARG002 - it always is
        """Always."""
        return True

    def scope(self, look: Look) -> Scope:
        """Every pod object of the workload; as many must stand afterwards as its owner wants."""
        uids = frozenset(pod.uid for pod in look.view.pods)
        return Scope(uids=uids, expected=look.workload.replicas)

    def from_s(self, look: Look) -> float:
        """When waiting for less has lasted long enough; earlier, where a block would take the leader."""
        taking = [block.from_s(look) for block in BLOCKS if block.takes_leader(look)]
        levels = [block.from_s(look) for block in LEVELS if block.size(look)]
        latest_s = look.settings.phases.place_pod_to_job_s
        if levels:  # one level each time, then everything
            latest_s = max(levels) + look.settings.phases.place_block_to_next_s
        return min([latest_s, *taking])

    def step(self, look: Look, recovery: Recovery) -> StepResult:
        """The shared phases over that scope."""
        return phases.step(look, recovery, self.scope(look))
