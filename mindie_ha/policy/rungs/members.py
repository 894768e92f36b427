"""Rungs of training jobs that keep some pods: the faulty ones alone, then the block around them.

Promises: a pod outside the scope is not touched, it keeps its rank, and when the replacements are placed it
is told to join again (phase `rejoin`); the leader is never replaced without all the others, so where it is
hit, or in the block, the rung does not fit and the job rung follows. A wider rung is tried when the pods
have waited for a node as long as `from_s` says. Source: rescheduling contract §2.5-2.6; design §5, §5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mindie_ha.model.recoveries import RUNG_POD, Recovery
from mindie_ha.model.workloads import Workload
from mindie_ha.policy import blocks
from mindie_ha.policy.leaders import leader_names
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs import phases, scopes
from mindie_ha.policy.rungs.steps import Scope, StepResult

RECOVER_POLICY = "huawei.com/recover_policy_path"


@dataclass(frozen=True, slots=True)
class MemberRung:
    """The pods that are hit, and whoever stands in their place. `leads`: the leader too, on its own."""

    name: str = RUNG_POD
    leads: bool = False

    def applicable(self, look: Look) -> bool:
        """Whether something is hit; not everything, and not the leader, unless it is all that may be done."""
        scope = self.scope(look)
        if self.leads:
            return scope.expected > 0
        return _keeps_some(look, scope) and not _has_leader(look, scope) and not _is_held(look)

    def scope(self, look: Look) -> Scope:
        """Pods of the names that are hit."""
        return scopes.named(look, rejoins=True)

    def from_s(self, look: Look) -> float:  # noqa: ARG002 - one shape for all
        """At once."""
        return 0.0

    def step(self, look: Look, recovery: Recovery) -> StepResult:
        """The shared phases over that scope."""
        return phases.step(look, recovery, self.scope(look))


SizeOf = Callable[[Look], int]


@dataclass(frozen=True, slots=True)
class BlockRung:
    """The pods that are hit and everybody in a block with them; `size` in pods, 0 where there are none."""

    name: str
    size: SizeOf
    stage: Callable[[Look], float]

    def applicable(self, look: Look) -> bool:
        """Whether there are such blocks, the block is not the job, the leader is in another, and those who
        are left can be told."""
        if not self.size(look) or _is_held(look):
            return False
        scope = self.scope(look)
        return _keeps_some(look, scope) and not _has_leader(look, scope)

    def scope(self, look: Look) -> Scope:
        """Pods of the names that are hit or in a block with one that is."""
        size = self.size(look)
        return scopes.named(look, widen=lambda at, names: _widened(at, names, size=size), rejoins=True)

    def from_s(self, look: Look) -> float:
        """How long the pods may have waited for a node before it is tried."""
        return self.stage(look)

    def takes_leader(self, look: Look) -> bool:
        """Whether the leader is in the block, so that from here on everything is replaced."""
        return bool(self.size(look)) and _has_leader(look, self.scope(look))

    def step(self, look: Look, recovery: Recovery) -> StepResult:
        """The shared phases over that scope."""
        return phases.step(look, recovery, self.scope(look))


def _level(number: int) -> BlockRung:
    return BlockRung(
        name=f"level-{number}",
        size=lambda look: blocks.pods_per_level(look.workload.annotations, number),
        stage=lambda look: look.settings.phases.place_block_to_next_s * number,
    )


RACK = BlockRung(
    name="rack",
    size=lambda look: blocks.pods_per_block(look.workload.annotations, blocks.RA_BLOCK, look.view.pods),
    stage=lambda look: look.settings.phases.place_pod_to_rack_s,
)
SUPER_POD = BlockRung(
    name="super-pod",
    size=lambda look: blocks.pods_per_block(look.workload.annotations, blocks.SP_BLOCK, look.view.pods),
    stage=lambda look: look.settings.phases.place_block_to_next_s,
)
LEVELS = tuple(_level(number) for number in range(1, 4))
BLOCKS: tuple[BlockRung, ...] = (RACK, SUPER_POD, *LEVELS)


def limited_to_pods(workload: Workload) -> bool:
    """Whether a platform limits the job to its faulty pods, whatever comes of it."""
    return workload.annotations.get(RECOVER_POLICY) == "pod"


def _is_held(look: Look) -> bool:
    """Whether the mailbox is in use: survivors could not be told, so nobody is kept."""
    return look.view.reset is not None and look.view.reset.held


def _widened(look: Look, names: set[str], *, size: int) -> set[str]:
    return blocks.members(look.view.pods, names, size=size) if size else names


def _keeps_some(look: Look, scope: Scope) -> bool:
    return 0 < scope.expected < look.workload.replicas


def _has_leader(look: Look, scope: Scope) -> bool:
    return bool(leader_names(look.view.pods, look.view.ledger.members) & scope.names)
