"""Who lives in the planner's tiny world: machines and jobs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mindie_ha.model.decisions import AskRejoin, TellExit
from mindie_ha.model.faults import Fault
from mindie_ha.model.ledgers import NodeLedger, WorkloadLedger
from mindie_ha.model.nodes import Node
from mindie_ha.model.reset_configs import ResetConfig
from mindie_ha.model.workloads import PodGroup, RingsConfig, Workload


@dataclass
class Machine:
    """A node and what is known about it."""

    node: Node
    bad: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)  # told in full
    listed: set[str] | None = field(default_factory=set)
    ledger: NodeLedger | None = None


@dataclass
class Job:
    """A workload, its memory and its table."""

    workload: Workload
    cards: int
    ledger: WorkloadLedger
    podgroup: PodGroup
    rings: RingsConfig | None = None
    retry_times: int | None = None
    created: int = 0
    reset: ResetConfig | None = None  # the mailbox of a training job

    def hear(self, word: AskRejoin | TellExit) -> None:
        """Something is written into the mailbox."""
        assert self.reset is not None
        if isinstance(word, AskRejoin):
            self.reset = replace(self.reset, retry_time=word.retry_time)
        else:
            self.reset = replace(self.reset, graceful_exit=word.ending)
