"""What must survive our own restart, one record per workload, service and node.

`schema_version` guards each: a newer one makes the object observe-only (never "start from zero"), an older
one is brought up by `cluster/migrations.py`. Whoever adds, removes or changes a field raises it.
Bounds are part of the record, so that a ledger cannot outgrow its ConfigMap.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mindie_ha.model.ids import PodUID
from mindie_ha.model.recoveries import ClosedRecovery, Frozen, Recovery

MAX_CLOSED = 5
MAX_PODS_CLOSED = 256  # pods named in the newest closed recovery; older ones name none
MAX_ATTEMPTS_KEPT = 20
MAX_PHASES_KEPT = 60
MAX_PAST = 100
MAX_RECURRING = 64


class Member(Frozen):
    """A pod that belonged to the workload when it was last complete."""

    name: str
    uid: PodUID
    leads: bool = False  # the leader of a training job


class Attempt(Frozen):
    """One try of a rung, recorded before it acted."""

    epoch: int
    rung: str
    at_s: float


class Park(Frozen):
    """Why we stopped; only a person re-arms it."""

    reason: str  # LadderSpent, OwnerGaveUp, …
    message: str
    at_s: float


class Rearm(Frozen):
    """A person's word that ended a park. `told`: its Event was handed out."""

    person: str
    text: str = ""
    reason: str  # of the park that it ended
    at_s: float
    told: bool = False


class Request(Frozen):
    """A person's word that asks for a recovery; it ends with the recovery that answers it."""

    person: str
    text: str
    pods: tuple[PodUID, ...]
    after_epoch: int  # of the newest recovery when it was asked
    at_s: float
    told: bool = False


class WorkloadLedger(Frozen):
    """Memory of one workload. A fresh one (`epoch` 0) says nothing was ever done."""

    schema_version: Literal[3] = 3  # 3: with `request`
    workload: str  # "<kind>/<namespace>/<name>"
    workload_uid: str
    epoch: int = 0  # of the newest recovery, open or closed
    recovery: Recovery | None = None
    members: tuple[Member, ...] = ()
    software_retries_spent: int = 0
    attempts: tuple[Attempt, ...] = ()  # since the last stable stretch
    closed: tuple[ClosedRecovery, ...] = ()  # newest last
    parked: Park | None = None
    rearmed: Rearm | None = None  # the newest
    request: Request | None = None  # what a person asked for and is not answered yet
    adopted_podgroup_uid: str = ""
    adopted_at_s: float = 0.0  # when the adoption was last ordered
    subscribed_uid: PodUID = PodUID("")  # Controller: the pod that was last seen to hold a table stream
    proven_epoch: int = 0  # Controller: its newest recovery after which a Coordinator was seen to serve
    retry_times_written: bool = False  # our entry in remain-retry-times stands
    retry_times_written_at_s: float = 0.0  # when it was last ordered

    @property
    def state(self) -> str:
        """What it alone says: `parked`, `waiting`, `recovering`, or "" where nothing goes on."""
        if self.parked is not None:
            return "parked"
        if self.recovery is None:
            return ""
        return "waiting" if self.recovery.condition else "recovering"

    @property
    def stable_since_s(self) -> float | None:
        """When the newest recovery closed; None while one is open or none ever was."""
        if self.recovery is not None or not self.closed:
            return None
        return self.closed[-1].closed_at_s

    @property
    def recoveries_closed(self) -> int:
        """How many were ever closed; `closed` keeps only the newest few."""
        return self.epoch - (self.recovery is not None)


class ServiceLedger(Frozen):
    """Memory of one service's table: ids for life, and the last table itself, to be replayed."""

    schema_version: Literal[1] = 1
    namespace: str
    job_id: str
    generation: int = 0  # 0: no table was ever published
    digest: str = ""
    text: str = ""  # canonical JSON of the published table
    published_at_s: float = 0.0
    ids: dict[str, int] = Field(default_factory=dict)  # AscendJob name -> group id
    complete_since_s: dict[str, float] = Field(default_factory=dict)  # AscendJob name -> first complete
    empty_since_s: dict[str, float] = Field(
        default_factory=dict
    )  # MS group id -> since when no pod is usable


class Isolation(Frozen):
    """One reason to keep work off a node, and everybody who wants it."""

    id: str  # stable: "<reason>:<device or ->"
    device: str = ""
    reason: str
    codes: tuple[str, ...] = ()
    wanted_by: tuple[str, ...]  # "recovery:<ns>/<name>#<epoch>", "person:<name>" or "rule:frequency"
    until: Literal["listed", "healed", "released", "time"]
    ends_at_s: float | None = None  # for until "time"
    since_s: float
    undo: str  # how to take it back by hand
    healed_since_s: float | None = None
    taint_seen: bool = False  # the taint was seen on the node: if it is gone, somebody took it away
    overruled_at_s: float | None = None  # a person took it back; the taint is not set again
    overruled_by: str = ""  # who released it; empty: somebody removed the taint itself
    text: str = ""  # a person's own words
    counted: bool = True  # whether the frequency rule counts it
    means: Literal["node-taint", "public-fault"] = "node-taint"
    marked: bool | None = None  # means public-fault: whether ClusterD was told; None: not confirmed

    @property
    def in_force(self) -> bool:
        """Whether it is to be kept up: nobody took it back."""
        return self.overruled_at_s is None

    @property
    def taints(self) -> bool:
        """Whether it asks for our taint on the node."""
        return self.in_force and self.means == "node-taint"

    @property
    def epochs(self) -> dict[str, int]:
        """Epoch by workload (`<ns>/<name>`) of the recoveries that want it."""
        names = (who.removeprefix("recovery:").rpartition("#") for who in self.wanted_by if "#" in who)
        return {workload: int(epoch) for workload, _, epoch in names if epoch.isdecimal()}


class PastIsolation(Frozen):
    """One isolation for a fault, kept for the frequency rule when the isolation itself is over."""

    id: str  # of the isolation
    device: str = ""
    codes: tuple[str, ...] = ()
    by: str  # the recovery that asked first; one recovery counts once
    at_s: float
    counted: bool = True  # False: the program was at fault, not the card


class Recurrence(Frozen):
    """How often a code that a cluster's own rule names came on a card, and the level that the rule gave."""

    device: str
    code: str
    at_s: tuple[float, ...] = Field((), max_length=MAX_PAST)  # newest last, no more than the rule needs
    ended_at_s: float | None = None  # None: it is there now
    level: str = ""  # not empty: raised
    raised_at_s: float = 0.0


class NodeLedger(Frozen):
    """Memory of what we isolated on one node."""

    schema_version: Literal[1] = 1
    node: str
    node_uid: str = ""
    isolations: tuple[Isolation, ...] = ()
    past: tuple[PastIsolation, ...] = Field((), max_length=MAX_PAST)  # newest last
    recurring: tuple[Recurrence, ...] = Field((), max_length=MAX_RECURRING)
