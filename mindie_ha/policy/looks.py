"""What one rule or rung looks at: a workload, its surroundings and the judgements made of them.

A look is made once per workload and plan. It is the only argument through which facts reach a rule, so
that a rule can be read without knowing where a fact comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mindie_ha.model.decisions import Decision, Notice
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Outcome
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import FleetView, NodeView, WorkloadView
from mindie_ha.model.workloads import Workload
from mindie_ha.policy.brakes import Brake
from mindie_ha.policy.holds import Hold
from mindie_ha.policy.ownership import Claim
from mindie_ha.policy.turns import Crowd
from mindie_ha.policy.verdicts import Verdict

if TYPE_CHECKING:  # a rung is given a look
    from mindie_ha.policy.rungs.steps import Rung


@dataclass(frozen=True, slots=True)
class TableStanding:
    """Where the service's table stands, compared with what the view asks for.

    `current`: the published table is the desired one. `handed_to_all`: every subscriber has it.
    `kept_out`: why this workload's instance is not in the desired table, "" if it is.
    """

    current: bool
    subscribers: int
    handed_to_all: bool
    kept_out: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """One workload as a rule sees it. Times are wall time in seconds."""

    view: WorkloadView
    claim: Claim
    verdict: Verdict
    settings: Settings
    now_s: float
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    rungs: tuple[Rung, ...] = ()  # of its ladder, narrowest first
    brake: Brake = field(default_factory=Brake)
    hold: Hold = field(default_factory=Hold)
    fleet: FleetView = field(default_factory=FleetView)
    crowds: tuple[Crowd, ...] = ()  # empty: nothing is limited
    has_service: bool = False
    table: TableStanding | None = None  # judged only where a step may need it
    state_lost: str = ""  # Controller: why it counts as having lost what it knew
    served: bool = False  # a Coordinator of the service serves
    last_rung: bool = True
    wider_from_s: float = 0.0  # how long pods may wait for a node before the next rung is tried

    @property
    def workload(self) -> Workload:
        """The workload itself."""
        return self.view.workload

    @property
    def alive(self) -> tuple[Pod, ...]:
        """Its pods that neither ended nor are being deleted."""
        return tuple(pod for pod in self.view.pods if pod.alive)

    @property
    def complete(self) -> bool:
        """Whether as many pods are alive as the owner wants."""
        return 0 < self.workload.replicas == len(self.alive)

    @property
    def lives_together(self) -> bool:
        """Whether one pod lost means all are lost."""
        return self.workload.ranks_together


def wants_name(look: Look, epoch: int) -> str:
    """The name under which a recovery wants an isolation: `recovery:<ns>/<name>#<epoch>`."""
    return f"recovery:{look.workload.key}#{epoch}"


def say(
    look: Look,
    *,
    rule: str,
    sentence: str,
    notices: tuple[Notice, ...] = (),
    wake_at_s: float | None = None,
    outcome: Outcome | None = None,
) -> Decision:
    """A decision that keeps the ledger of `look` and acts on nothing."""
    return Decision(
        workload=look.workload.key,
        ledger=look.view.ledger,
        sentence=sentence,
        rule=rule,
        notices=notices,
        wake_at_s=wake_at_s,
        outcome=outcome,
    )
