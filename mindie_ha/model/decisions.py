"""What the planner answers: actions to take, memory to write first, and the sentence that explains.

Actions are plain data. The executor performs each through the fenced writer and knows nothing of roles
or rungs; a repeated action must find its work done and do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.ledgers import Isolation, NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.ranktables import Finding
from mindie_ha.model.recoveries import Outcome


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete exactly this pod. `grace_s` 0 is at once, None the pod's own grace. `adopted`: decided since
    the job was seen as adopted, and so only to be sent while it is."""

    key: ObjectKey
    uid: PodUID
    grace_s: int | None
    adopted: bool = False

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        manner = "its own grace" if self.grace_s is None else f"grace {self.grace_s} s"
        return f"delete pod {self.key} (uid {self.uid}, {manner})"


@dataclass(frozen=True, slots=True)
class IsolateNode:
    """Record `isolation` in the node's ledger, then taint the node with NoSchedule."""

    node: str
    node_uid: str
    isolation: Isolation

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        device = f" for {self.isolation.device}" if self.isolation.device else ""
        return f"isolate node {self.node}{device} until {self.isolation.until}"


@dataclass(frozen=True, slots=True)
class DiscountIsolation:
    """Take an isolation out of the frequency rule's count: the program was at fault, not the card."""

    node: str
    isolation_id: str
    by: str  # the recovery that asked for it

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        return f"do not count isolation {self.isolation_id} of {self.node}: the program was at fault"


@dataclass(frozen=True, slots=True)
class AdoptPodGroup:
    """Annotate the PodGroup so that Volcano does not delete pods of this job."""

    key: ObjectKey
    uid: str

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        return f"adopt PodGroup {self.key}"


@dataclass(frozen=True, slots=True)
class LabelPod:
    """Give exactly this pod a label of ours, or take it off (`value` None)."""

    key: ObjectKey
    uid: PodUID
    name: str
    value: str | None

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        return f"label pod {self.key}: {self.name}" + (f"={self.value}" if self.value else " taken off")


@dataclass(frozen=True, slots=True)
class GrantRetries:
    """Write the operator's `remain-retry-times` entry where nobody else did."""

    entry: str  # "<ns>/<name>-<uid>"
    job_uid: str
    times: int

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        return f"write remain-retry-times of {self.entry}: {self.times}"


@dataclass(frozen=True, slots=True)
class AskRejoin:
    """Raise `RetryTime` in `reset-config-<job>` to `retry_time`, so that survivors join the replaced pods."""

    key: ObjectKey
    retry_time: int
    at_s: float

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        return f"ask the survivors to join again: RetryTime {self.retry_time} in {self.key}"


@dataclass(frozen=True, slots=True)
class TellExit:
    """Set `GracefulExit` in `reset-config-<job>`: training processes end by themselves, or no longer do."""

    key: ObjectKey
    ending: bool
    at_s: float

    @property
    def words(self) -> str:
        """The action, the same in every place it is shown."""
        return f"set GracefulExit {int(self.ending)} in {self.key}"


Action = (
    DeletePod
    | IsolateNode
    | DiscountIsolation
    | AdoptPodGroup
    | GrantRetries
    | LabelPod
    | AskRejoin
    | TellExit
)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something people should see: it becomes a log line, a Kubernetes Event, a metric, a row of `why`.

    `reason` is a bounded CamelCase word. A notice with the same `key` is not repeated while it stands.
    """

    reason: str
    message: str
    warning: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The planner's word on one workload.

    `ledger` is written (compare-and-swap) before any action when it differs from the view's.
    """

    workload: ObjectKey
    ledger: WorkloadLedger
    sentence: str
    rule: str  # bounded name of the rule that decided
    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()
    wake_at_s: float | None = None  # wall time
    outcome: Outcome | None = None  # set when a recovery closed, parked, waits or is held with this decision


@dataclass(frozen=True, slots=True)
class TableDecision:
    """The planner's word on a service's table. `publish`: deliver `ledger.text` after writing the ledger."""

    ledger: ServiceLedger
    publish: bool
    sentence: str
    config_map: ObjectKey | None = None  # where the boot copy goes; None: nowhere, see notices
    left_out: tuple[tuple[str, tuple[Finding, ...]], ...] = ()  # instance, why
    held: tuple[tuple[str, float], ...] = ()  # instance, until (wall)
    notices: tuple[Notice, ...] = ()
    about: ObjectKey | None = None  # the workload at which a person looks for what is told of it
    wake_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """The planner's word on one node's isolations: which of our taints to set or remove."""

    node: str
    ledger: NodeLedger
    tainted: bool  # whether our taint must be on the node
    changed: bool  # whether anything has to be written
    marks: frozenset[str] | None = None  # cards that ClusterD must take for broken; None: as told before
    sentence: str = ""
    notices: tuple[Notice, ...] = ()
    wake_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All decisions of one look at one scope."""

    decisions: tuple[Decision, ...] = ()
    table: TableDecision | None = None
    wake_at_s: float | None = field(default=None)  # earliest of all
