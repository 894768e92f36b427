"""What was seen while a scenario ran, as plain records.

Nothing here is the product's word about itself, with one exception that is part of the judgement: the
ledgers it wrote, as they were read back from the API. Times are seconds of the scenario's clock; `version`
is the API server's resourceVersion, which orders all objects of a run: "written before the deletion" is a
comparison of two numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

OUR_AGENT = "mindie-ha"
FIRST_INSTANCE_GROUP = 2


@dataclass(slots=True)
class PodLife:
    """One pod from its creation to its end, always the newest that was seen of it."""

    workload: str  # "<ns>/<name>" of the AscendJob that owns it
    name: str
    namespace: str
    uid: str
    created_s: float
    created_version: int = 0
    node: str = ""
    devices: tuple[str, ...] = ()
    ip: str = ""
    phase: str = ""
    ready: bool = False
    deleted_s: float | None = None  # first seen with a deletion timestamp, or gone
    deleted_version: int | None = None
    gone_s: float | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def here_at(self, at_s: float) -> bool:
        """Whether it existed, undeleted, at that time."""
        return self.created_s <= at_s and (self.deleted_s is None or self.deleted_s > at_s)


@dataclass(frozen=True, slots=True)
class LedgerSeen:
    """One state of a workload's ledger. `body` is its JSON; empty once the object is gone."""

    at_s: float
    version: int
    workload: str
    body: dict[str, Any]

    @property
    def recovery(self) -> dict[str, Any] | None:
        """The open recovery."""
        return self.body.get("recovery")

    @property
    def targets(self) -> frozenset[str]:
        """UIDs that may be deleted."""
        return frozenset(each["uid"] for each in (self.recovery or {}).get("targets", ()))


@dataclass(frozen=True, slots=True)
class TableSeen:
    """One published table, as remembered in the service's ledger."""

    at_s: float
    version: int
    service: str  # "<ns>/<jobID>"
    generation: int
    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A table that arrived somewhere: what a Controller, a ConfigMap or the push target holds."""

    at_s: float
    channel: str  # configmap | grpc | http
    peer: str
    digest: str  # SHA-256 of what arrived
    text: str


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One state of a node: whether our taint is on it, and its other taints."""

    at_s: float
    version: int
    node: str
    tainted: bool
    foreign: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class IsolationSeen:
    """One state of a node's isolation ledger; no entries once the object is gone."""

    at_s: float
    version: int
    node: str
    entries: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class InstanceTableSeen:
    """An instance's own table (`rings-config-*`) was completed for these pods (UIDs or addresses)."""

    at_s: float
    workload: str
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class ActiveSeen:
    """Whom the status called active from then on: pods of one workload with their UIDs; none if nobody."""

    at_s: float
    workload: str
    pods: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Write:
    """One write as the API server saw it."""

    at_s: float
    verb: str
    resource: str
    name: str
    uid: str
    agent: str
    code: int

    @property
    def ours(self) -> bool:
        """Whether the product wrote it."""
        return self.agent.startswith(OUR_AGENT)


@dataclass(slots=True)
class JobSeen:
    """An AscendJob, vcjob or instance: how many pods it wants, and whether its operator gave up."""

    key: str
    replicas: int
    app: str = ""
    job_id: str = ""
    failed: str = ""  # the message of the condition Failed


JOB_KINDS = ("AscendJob", "Job", "StatefulSet", "Deployment")


def jobs_in(objects: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The jobs among `objects`; those that the infer-operator will make of an InferServiceSet, too."""
    found: list[Mapping[str, Any]] = []
    for each in objects:
        if each["kind"] in JOB_KINDS:
            found.append(each)
        if each["kind"] != "InferServiceSet":
            continue
        spec, meta = each["spec"], each["metadata"]
        names = [
            (role["workload"]["kind"], f"{meta['name']}-{service}-{role['name']}-{index}")
            for service in range(spec.get("replicas", 1))
            for role in spec["template"]["roles"]
            for index in range(role.get("replicas", 1))
        ]
        labels = {"jobID": meta["name"]}
        found += [
            {"kind": kind, "metadata": {**meta, "name": name, "labels": labels}} for kind, name in names
        ]
    return found


def counted_jobs(objects: Iterable[Mapping[str, Any]]) -> str:
    """How many jobs of each kind there are, in words: `2 AscendJobs`."""
    counts = Counter("vcjob" if each["kind"] == "Job" else each["kind"] for each in objects)
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in sorted(counts.items()))


@dataclass(slots=True)
class EventSeen:
    """One Kubernetes Event of ours, with how often it was repeated."""

    reason: str
    about: str  # kind of the object
    name: str
    message: str
    count: int
    warning: bool = False


class Harm(StrEnum):
    """What a step broke."""

    CARD = "card"
    PUBLIC = "public"  # a card, by the word of somebody outside
    SWITCH = "switch"
    BOARD = "board"
    MARK = "mark"  # an annotation of a node
    NODE_LOST = "node-lost"
    NODE_DELETED = "node-deleted"
    PROCESS = "process"


_CLOSES_NODE = frozenset({"RestartRequest", "Separate", "SeparateFault"})


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault as it was set. `device` is empty where it hit a whole node or a process."""

    at_s: float
    node: str
    device: str
    code: str
    pod: str
    level: str = ""
    kind: Harm = Harm.CARD
    healed_s: float | None = None

    @property
    def node_lost(self) -> bool:
        """The node does not report any more."""
        return self.kind in (Harm.NODE_LOST, Harm.NODE_DELETED)

    @property
    def closes_node(self) -> bool:
        """Nothing new may run on the node."""
        on_node = self.kind in (Harm.SWITCH, Harm.BOARD) and self.level in _CLOSES_NODE
        return self.node_lost or on_node

    def stands_at(self, at_s: float) -> bool:
        """It was set and not healed yet."""
        return self.at_s <= at_s and (self.healed_s is None or self.healed_s > at_s)


@dataclass(slots=True)
class Observations:
    """Everything that was seen, in the order in which it was seen."""

    pods: dict[str, PodLife] = field(default_factory=dict)  # by UID
    jobs: dict[str, JobSeen] = field(default_factory=dict)
    ledgers: list[LedgerSeen] = field(default_factory=list)
    tables: list[TableSeen] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    nodes: list[NodeSeen] = field(default_factory=list)
    isolations: list[IsolationSeen] = field(default_factory=list)
    instance_tables: list[InstanceTableSeen] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    faults: list[Injected] = field(default_factory=list)
    events: dict[str, EventSeen] = field(default_factory=dict)  # by UID
    said: dict[str, float] = field(default_factory=dict)  # line of the status -> first seen
    states: dict[str, set[str]] = field(default_factory=dict)  # workload -> states that the status showed
    actives: list[ActiveSeen] = field(default_factory=list)
    leaders: dict[str, str] = field(
        default_factory=dict
    )  # workload -> UID of the pod that really leads at the end
    missed: list[str] = field(default_factory=list)  # waits of the steps that ended in vain
    by_person: set[int] = field(default_factory=set)  # versions that a person's step wrote
    subscribers: set[str] = field(default_factory=set)  # peers that must have the newest table at the end
    quiet_from_s: float | None = None  # from here on nothing was wrong any more
    origin_s: float = 0.0  # wall time of the scenario's clock at its second 0

    @property
    def has_service(self) -> bool:
        """Whether anybody should get a table."""
        return any(job.job_id for job in self.jobs.values())

    def first_fault_s(self) -> float:
        """When the first fault was set; infinite before."""
        return self.faults[0].at_s if self.faults else float("inf")

    def placed(self, pod_key: str) -> PodLife | None:
        """The newest pod of that name that got a node."""
        return next((pod for pod in reversed(self.pods.values()) if pod.key == pod_key and pod.node), None)

    def node_was_under(self, pod_key: str) -> str:
        """The node of a pod at the first fault; empty where there was none."""
        at_s = self.first_fault_s()
        found = (pod.node for pod in self.pods.values() if pod.key == pod_key and pod.here_at(at_s))
        return next(found, "")

    def taint_history(self, node: str) -> list[NodeSeen]:
        """Every state of the node from the first fault on, the one in force at that moment included."""
        at_s = self.first_fault_s()
        states = [each for each in self.nodes if each.node == node]
        before = [each for each in states if each.at_s <= at_s]
        return [*before[-1:], *(each for each in states if each.at_s > at_s)]

    def count_events(self, reason: str, about: str = "") -> int:
        """How often we told a reason, repetitions included."""
        found = [each for each in self.events.values() if each.reason == reason]
        return sum(each.count for each in found if about in ("", each.about))

    def scenario_s(self, wall_s: float) -> float:
        """Wall time of the scenario's clock as seconds since it began."""
        return wall_s - self.origin_s

    def ledger_of(self, workload: str) -> LedgerSeen | None:
        """The newest ledger of a workload."""
        return next((each for each in reversed(self.ledgers) if each.workload == workload), None)

    def note_active(self, at_s: float, workload: str, pods: tuple[tuple[str, str], ...]) -> None:
        """The status shows this now; only a change is kept."""
        last = next((each for each in reversed(self.actives) if each.workload == workload), None)
        if pods != (last.pods if last is not None else ()):
            self.actives.append(ActiveSeen(at_s, workload, pods))

    def members(self, workload: str) -> list[PodLife]:
        """Pods of a workload that exist now, by name."""
        found = [pod for pod in self.pods.values() if pod.workload == workload and pod.deleted_s is None]
        return sorted(found, key=lambda pod: pod.name)

    def generation_of(self, digest: str) -> int | None:
        """The newest generation with that digest; None for a table that was never remembered."""
        return next((each.generation for each in reversed(self.tables) if each.digest == digest), None)

    def tables_since_fault(self) -> list[TableSeen]:
        """The table in force at the first fault and all later ones, each service for itself."""
        fault_s = self.first_fault_s()
        before: dict[str, TableSeen] = {}
        for each in self.tables:
            if each.at_s <= fault_s:
                before[each.service] = each
        return [*before.values(), *(each for each in self.tables if each.at_s > fault_s)]

    def groups_of(self, text: str) -> dict[str, tuple[str, frozenset[str]]]:
        """Instance -> (group id, UIDs of its pods in the table), found by the pods' own addresses."""
        by_ip = {pod.ip: pod for pod in self.pods.values() if pod.ip}
        found: dict[str, tuple[str, frozenset[str]]] = {}
        for group_id, addresses in server_groups(text):
            pods = [by_ip[address] for address in addresses if address in by_ip]
            for workload in {pod.workload for pod in pods}:
                found[workload] = group_id, frozenset(p.uid for p in pods if p.workload == workload)
        return found


def server_groups(text: str) -> Iterator[tuple[str, list[str]]]:
    """Group id and server addresses of every server instance in a table; nothing for what is no table."""
    try:
        groups = orjson.loads(text)["server_group_list"]
        for group in groups:
            if int(group["group_id"]) >= FIRST_INSTANCE_GROUP:
                yield group["group_id"], [server["server_ip"] for server in group["server_list"]]
    except (ValueError, KeyError, TypeError):
        return


__all__ = [
    "OUR_AGENT",
    "ActiveSeen",
    "Delivery",
    "EventSeen",
    "Harm",
    "Injected",
    "InstanceTableSeen",
    "IsolationSeen",
    "JobSeen",
    "LedgerSeen",
    "NodeSeen",
    "Observations",
    "PodLife",
    "TableSeen",
    "Write",
    "server_groups",
]
