"""Training jobs in the planner's tiny world: ranks with a leader, a mailbox, boards and switches that break.

`Gang` is a `World` that also keeps `reset-config-<job>` and does what plans say to it. `gang` brings up one
job whose pods run, each on a node of its own, and nothing of what was written before counts.
"""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.intake.node_troubles import trouble
from mindie_ha.model.decisions import Action, AskRejoin, TellExit
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey, job_key
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.pods import Pod
from mindie_ha.model.reset_configs import ResetConfig
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView, ScopeView
from mindie_ha.model.workloads import Role
from mindie_ha.policy.leaders import REPLICA_TYPE
from tests.policy.inhabitants import Job
from tests.policy.worlds import CARDS, NAMESPACE, World

JOB = "train"
SETTINGS = Settings.model_validate({"phases": {"settle_s": 5.0}})
ON = {"pod-rescheduling": "on"}


class Gang(World):
    """See the module. `leader`: the replica type of rank 0."""

    def __init__(self, *, nodes: int = 6, settings: Settings | None = None, leader: str = "master") -> None:
        super().__init__(nodes=nodes, settings=settings or SETTINGS)
        self.leader = leader
        self.mailbox = ResetConfig(ObjectKey(NAMESPACE, f"reset-config-{JOB}"))  # as it is made
        self.reset: ResetConfig | None = self.mailbox
        self.troubles: dict[str, tuple[Fault, ...]] = {}
        self.asked: list[AskRejoin] = []
        self.told: list[TellExit] = []

    def node_view(self, name: str) -> NodeView:
        """With its board and switch."""
        return replace(super().node_view(name), troubles=self.troubles.get(name, ()))

    def view(self) -> ScopeView:
        """A job by itself: no table, and its mailbox."""
        seen = super().view()
        workloads = tuple(replace(each, reset=self.reset) for each in seen.workloads)
        if all(each.workload.role is not Role.TRAINING for each in workloads):
            return seen
        return replace(seen, scope=job_key(workloads[0].workload.key), workloads=workloads, table=None)

    def turn(self) -> None:
        """As ever; pods say what they are."""
        super().turn()
        for pod in list(self.pods.values()):
            if REPLICA_TYPE not in pod.labels:
                kind = self.leader if pod.rank == 0 else "worker"
                self.change(pod, labels={**pod.labels, REPLICA_TYPE: kind})

    def _act(self, action: Action) -> None:
        match action:
            case AskRejoin(retry_time=number) if self.reset is not None:
                self.asked.append(action)
                self.reset = replace(self.reset, retry_time=number, restart_type="podReschedule")
            case TellExit(ending=ending) if self.reset is not None:
                self.told.append(action)
                self.reset = replace(self.reset, graceful_exit=ending)
            case _:
                super()._act(action)

    # --- what happens to it ---

    def pod(self, index: int) -> Pod:
        """The pod of a rank."""
        return self.pods_of(JOB)[index]

    def node(self, index: int) -> str:
        """Where the pod of a rank runs."""
        return self.pod(index).node

    def remain(self, *, without: int) -> None:
        """The pod of a rank finds no node any more, wherever it is made anew."""
        self.pins[self.pod(without).key.name] = frozenset({"nowhere"})

    def card(self, index: int, level: Level, *, family: Family = Family.CHIP, listed: bool = False) -> None:
        """A card of a rank has a code of this level."""
        told = self.pod(index)
        cause = Cause.NETWORK_UNHEALTHY if family is Family.NETWORK else Cause.CHIP_FAULT_LISTED
        self.machines[told.node].faults.append(
            Fault(
                source=FaultSource.DEVICE,
                cause=cause,
                node=told.node,
                device=told.devices[0],
                codes=("80E18008",),
                level=level,
                first_seen_s=self.now_s,
                details=(CodeFact("80E18008", level, family, listed=listed, first_seen_s=self.now_s),),
            )
        )

    def board(self, node: str, *levels: Level, family: Family = Family.NODE, listed: bool = False) -> None:
        """The board, or the switch, of a node is broken."""
        found = trouble(
            node,
            source=FaultSource.NODE_INFO if family is Family.NODE else FaultSource.SWITCH,
            cause=Cause.NODE_HARDWARE if family is Family.NODE else Cause.SWITCH_UNHEALTHY,
            family=family,
            facts=[CodeFact("28000037", level, family, first_seen_s=self.now_s) for level in levels],
            listed=listed,
            updated_at_s=self.now_s,
            now_s=self.now_s,
            told_by="as told",
        )
        self.troubles[node] = found.faults

    def annotate(self, **annotations: str) -> None:
        """Set annotations of the job."""
        job = self.job(JOB)
        job.workload = replace(job.workload, annotations={**job.workload.annotations, **annotations})

    def mark(self, index: int, **labels: str) -> None:
        """Set labels of the pod of a rank."""
        named = {name.replace("_", "-"): value for name, value in labels.items()}
        self.change(self.pod(index), labels={**self.pod(index).labels, **named})

    # --- what came of it ---

    @property
    def old(self) -> set[str]:
        """Ranks that were deleted, as text."""
        return {item.key.name.removeprefix(f"{JOB}-") for item in self.deleted}

    def cause(self) -> Cause | None:
        """Why its recovery was opened, if one was."""
        recovery = self.job(JOB).ledger.recovery
        return recovery.intent.cause if recovery is not None else None

    def wait(self, for_s: float) -> None:
        """Let time go by."""
        self.settle(for_s=for_s)


def gang(
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    replicas: int = 2,
    cards: int = CARDS,
    nodes: int = 6,
    role: Role = Role.TRAINING,
    leader: str = "master",
    settings: Settings | None = None,
    start: bool = True,
    kind: type[Gang] = Gang,
) -> Gang:
    """One job that runs."""
    world = kind(nodes=nodes, leader=leader, settings=settings)
    job: Job = world.add(JOB, role=role, replicas=replicas, cards=cards, labels=labels)
    job.workload = replace(job.workload, annotations=annotations or {})
    if start:
        world.settle(for_s=6.0)
        world.deleted.clear()
        world.notices.clear()
    return world
