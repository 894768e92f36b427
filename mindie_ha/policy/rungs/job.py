"""The job rung: every pod of the workload's own AscendJob is replaced, and no pod of another.

It is the widest Kubernetes rung and helps with every fault, so it ends each ladder.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.recoveries import Recovery
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs import phases
from mindie_ha.policy.rungs.steps import Scope, StepResult


@dataclass(frozen=True, slots=True)
class JobRung:
    """All pods of one AscendJob."""

    name: str = "job"

    def applicable(self, look: Look) -> bool:  # noqa: ARG002 - it always is
        """Always."""
        return True

    def scope(self, look: Look) -> Scope:
        """Every pod object of the workload; as many must stand afterwards as its owner wants."""
        uids = frozenset(pod.uid for pod in look.view.pods)
        return Scope(uids=uids, expected=look.workload.replicas)

    def step(self, look: Look, recovery: Recovery) -> StepResult:
        """The shared phases over that scope."""
        return phases.step(look, recovery, self.scope(look))
