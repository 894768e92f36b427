"""What the planner sees: one service (or job), the nodes under it, and a summary of the fleet.

A view is an immutable snapshot built in O(size of the service) by `cluster/store.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mindie_ha.model.decisions import Notice
from mindie_ha.model.faults import Fault
from mindie_ha.model.ids import PodUID, ScopeKey
from mindie_ha.model.ledgers import NodeLedger, Recurrence, ServiceLedger, WorkloadLedger
from mindie_ha.model.nodes import DeviceReport, ListedDevices, Node
from mindie_ha.model.pauses import Pauses
from mindie_ha.model.pods import Pod
from mindie_ha.model.reset_configs import ResetConfig
from mindie_ha.model.roles import Links, PodRole, Streams
from mindie_ha.model.workloads import PodGroup, RingsConfig, Workload


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node with everything known about it."""

    node: Node
    report: DeviceReport | None = None
    troubles: tuple[Fault, ...] = ()  # of its switch and board, and by its annotations
    unreported: str = ""  # why the newest device report is no report; a condition, not a fault
    listed: ListedDevices | None = None  # None: the scheduler's list does not show this node
    publicly_bad: frozenset[str] = frozenset()  # cards that acting public faults name
    recurring: tuple[Recurrence, ...] | None = None  # what its ledger has to remember; None: as it is
    ledger: NodeLedger | None = None
    ledger_version: str = ""  # of the object that holds it: whoever saves says which one was looked at
    ledger_error: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A workload with its pods (all objects of its owner UID, dying ones too), faults and memory."""

    workload: Workload
    pods: tuple[Pod, ...]  # by rank, then name
    ledger: WorkloadLedger
    ledger_version: str = ""
    ledger_error: str = ""  # not empty: unreadable, observe only
    podgroup: PodGroup | None = None
    rings: RingsConfig | None = None
    reset: ResetConfig | None = None
    faults: tuple[Fault, ...] = ()  # that hit this workload's pods or the nodes and cards under them
    remarks: tuple[Notice, ...] = ()  # what is told of it beside its faults
    retry_times: int | None = None  # remain-retry-times[...].Times; None: no entry
    roles: Mapping[PodUID, PodRole] = field(default_factory=dict)  # MS: who is active
    links: Mapping[PodUID, Links] = field(default_factory=dict)  # server pods that were asked for them
    retry_times_ours: bool = True  # False: the entry that stands was written by somebody else


@dataclass(frozen=True, slots=True)
class FleetView:
    """Kept incrementally by the store; O(1) to read."""

    nodes: int = 0
    ready: int = 0
    open: int = 0  # Ready, not cordoned, and without a taint that keeps new pods away
    lost_recently: int = 0  # nodes that became NotReady or vanished within the brake's window
    braked_since_s: float | None = None
    open_recoveries: int = 0


@dataclass(frozen=True, slots=True)
class TableView:
    """The service's table as published, and who listens."""

    ledger: ServiceLedger
    ledger_version: str = ""
    ledger_error: str = ""
    recorded: bool = True  # False: its ledger was deleted or set back; the newest that we saw, to be written
    subscribers: int = 0
    handed_to_all: bool = True  # nothing of the current generation is still owed
    shared_with: tuple[str, ...] = ()  # other services that name the same ConfigMap
    namesakes: tuple[str, ...] = ()  # other namespaces with a service of the same jobID


@dataclass(frozen=True, slots=True)
class Turn:
    """An open recovery, anywhere in the cluster, as the limits of concurrency see it."""

    workload: str  # "<ns>/<name>"
    opened_at_s: float
    acts_until_s: float | None = None  # it takes a place, at the longest until then
    queues: bool = False  # it waits for a place


@dataclass(frozen=True, slots=True)
class ScopeView:
    """Everything the planner may look at for one key."""

    scope: ScopeKey
    workloads: tuple[WorkloadView, ...]
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    fleet: FleetView = field(default_factory=FleetView)
    table: TableView | None = None  # None for a job without service
    orphan_rings: tuple[RingsConfig, ...] = ()  # rings-config of this jobID whose AscendJob is gone
    pauses: Pauses = field(default_factory=Pauses)
    turns: tuple[Turn, ...] = ()  # of the whole cluster; empty where nothing is limited
    streams: Streams = field(default_factory=Streams)  # who subscribes to the table
    wake_at_s: float | None = None  # wall time at which a fault that is only recorded now will act
