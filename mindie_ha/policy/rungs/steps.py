"""What a rung is, and what one step of it says.

A rung is a pure object that moves a recovery one phase on. It never sees who runs it: the planner walks
steps until one waits, writes the recovery ahead and only then hands the actions of that last step out.
So a step that acts must wait, and a step that leaves its phase must not act.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from mindie_ha.model.decisions import Action, Notice
from mindie_ha.model.recoveries import Outcome, Phase, Recovery
from mindie_ha.policy.looks import Look

NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Progress:
    """A phase's word. Exactly one of `leave`, `failed` or neither (it waits) holds.

    `to` picks another exit than the table's first. `changes` are fields of the recovery to replace.
    `condition` names what a wait without a deadline waits for; its message must not change by itself,
    since it is part of the ledger.
    """

    sentence: str
    leave: str = ""
    to: Phase | None = None
    failed: str = ""
    outcome: Outcome | None = None  # with `leave` of the last phase: how the recovery ends
    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()
    condition: str = ""
    condition_message: str = ""
    changes: Mapping[str, object] = field(default_factory=lambda: NOTHING)
    patient: bool = False  # nothing is wrong, so the phase's deadline does not count
    wake_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt is over without success. `closes`: rungs that cannot help any more."""

    reason: str
    closes: frozenset[str] = frozenset()
    reenter_at: Phase | None = None


@dataclass(frozen=True, slots=True)
class Recovered:
    """The workload is back. `verified`: something better than Running said so."""

    verified: bool


@dataclass(frozen=True, slots=True)
class Degraded:
    """The workload goes on with less; `message` says what is missing."""

    message: str


Result = Recovered | Degraded | Failed


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step. `moved`: the recovery entered another phase, so another step may follow at once."""

    recovery: Recovery
    sentence: str
    moved: bool = False
    result: Result | None = None
    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()
    wake_at_s: float | None = None


class Rung(Protocol):
    """One way to recover."""

    @property
    def name(self) -> str:
        """Its name in ladders, ledgers and metrics."""

    def applicable(self, look: Look) -> bool:
        """Whether it can help with this verdict at all."""

    def scope(self, look: Look) -> Scope:
        """The pods it replaces, judged now."""

    def from_s(self, look: Look) -> float:
        """How long pods may have waited for a node, on narrower rungs, before this one is tried."""

    def step(self, look: Look, recovery: Recovery) -> StepResult:
        """Move `recovery` on by at most one phase."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a rung replaces: the pods now in its scope, and how many there must be afterwards.

    `names`: what they are called, where the rung replaces some of many. `rejoins`: those who are left have to
    be told that the others are back.
    """

    uids: frozenset[str]
    expected: int
    names: frozenset[str] = frozenset()
    rejoins: bool = False
