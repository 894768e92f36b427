"""A recovery: one open attempt for one workload, as the ledger remembers it.

Kubernetes rungs and process rounds use the same record. What a rung needs in addition (reports of
training agents, the outbox of signals to them) has its place here and stays empty where it is not used.
Everything is frozen: a step returns a new recovery.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import PodUID

RUNG_POD, RUNG_JOB = "pod", "job"  # rungs that rules outside of ladders speak of


class Frozen(BaseModel):
    """Base of everything that is written to a ledger: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class IntentKind(StrEnum):
    """Why a recovery exists."""

    FAULT = "fault"
    REQUEST = "request"
    CONDITION = "condition"


class Outcome(StrEnum):
    """How a recovery ended, or why it goes on."""

    RECOVERED = "recovered"
    RECOVERED_UNVERIFIED = "recovered-unverified"
    DEGRADED = "degraded"
    WAITING = "waiting"
    PARKED = "parked"
    HELD = "held"


class Phase(StrEnum):
    """Phases of the Kubernetes rungs, in order; then those of the process round."""

    ISOLATE = "isolate"
    STOP = "stop"
    GONE = "gone"
    RECREATE = "recreate"
    PLACE = "place"
    TABLE = "table"
    REJOIN = "rejoin"
    ANNOUNCE = "announce"
    SETTLE = "settle"
    BACKOFF = "backoff"  # waits for the next attempt of the same rung


class Intent(Frozen):
    """The reason of a recovery in the words of its trigger."""

    kind: IntentKind
    cause: Cause
    node: str = ""
    device: str = ""
    codes: tuple[str, ...] = ()
    pod: str = ""
    at_s: float  # when the trigger was first seen
    software: bool = False  # paid from fault-retry-times
    summary: str


class Target(Frozen):
    """A pod this recovery may delete, as recorded before the deletion."""

    name: str
    uid: PodUID
    node: str = ""
    rank: int | None = None


class Replacement(Frozen):
    """A pod that stands where a target stood."""

    name: str
    uid: PodUID
    node: str = ""
    devices: tuple[str, ...] = ()


class PhaseRecord(Frozen):
    """One phase gone through. `end_s` is None while it lasts; `exit` says why it ended."""

    rung: str
    phase: Phase
    start_s: float
    end_s: float | None = None
    exit: str = ""


class Obligation(Frozen):
    """An external mark we set, recorded with its undo before it is set.

    `mark` names what (`node-taint`), `ref` where (node and entry id of the isolation ledger).
    """

    mark: str
    ref: str
    undo: str
    since_s: float


class Report(Frozen):
    """An edge (a training agent's report, a person's request), recorded before it is answered."""

    epoch: int
    session: str
    kind: str
    code: int = 0
    ranks: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    at_s: float


class SignalState(StrEnum):
    """Life of one outgoing signal."""

    QUEUED = "queued"
    WRITTEN = "written"
    ANSWERED = "answered"
    SUPERSEDED = "superseded"


class Signal(Frozen):
    """One order to a training agent, kept until answered."""

    seq: int
    round_uuid: str
    digest: str
    state: SignalState


class Recovery(Frozen):
    """One open recovery. `deadline_s` is wall time; None where a named `condition` waits instead."""

    epoch: int
    intent: Intent
    rung: str
    phase: Phase
    phase_since_s: float
    deadline_s: float | None = None
    opened_at_s: float
    not_before_s: float = 0.0  # back-off: no deletion before
    targets: tuple[Target, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    attempts: dict[str, int] = Field(default_factory=dict)  # per rung, including the running one
    closed_rungs: tuple[str, ...] = ()
    obligations: tuple[Obligation, ...] = ()
    reports: tuple[Report, ...] = ()
    outbox: tuple[Signal, ...] = ()
    history: tuple[PhaseRecord, ...] = ()
    condition: str = ""  # for example WaitingForCapacity
    condition_message: str = ""
    quiet_since_s: float | None = None  # settle: since when every check passes without a break
    no_active_since_s: float | None = None  # settle: since when certainly no pod of an MS role is active
    rejoin: int | None = None  # RetryTime with which the survivors are asked to join the replaced pods
    guarded_since_s: float | None = None  # somebody else may delete first: since then without a deletion
    guarded_left: int = 0  # targets that stood then
    verified: bool = False  # settle: something better than Running confirmed it


class ClosedRecovery(Frozen):
    """What is kept of a recovery that ended."""

    epoch: int
    intent: Intent
    outcome: Outcome
    rungs: tuple[str, ...]
    opened_at_s: float
    closed_at_s: float
    targets: tuple[Target, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    history: tuple[PhaseRecord, ...] = ()
    summary: str = ""
