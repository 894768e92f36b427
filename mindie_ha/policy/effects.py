"""One table: what each level does to those who run, and to those who want to be placed.

This is the whole truth about levels; verdicts, silence windows and `docs/faults.md` read it. A row names
the effect on an inference instance, on a pod of the MS (Controller, Coordinator) and on a training job, and
what becomes of the place. Two rules are visible in it: a fault of the link never deletes, and PreSeparate
never disturbs what runs. A level text that nobody defines keeps new work away and restarts nothing, unless
the writer itself lists the card or node as unhealthy.

Source: fault input contract §2.1, §4.4-4.8; rescheduling contract §2.2, §5.1-5.6; case 047.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.model.levels import Family, Level
from mindie_ha.model.workloads import Role

LABEL_STRATEGY = "subHealthyStrategy"
IGNORE, GRACE_EXIT, FORCE_EXIT, HOT_SWITCH = "ignore", "graceExit", "forceExit", "hotSwitch"


class Effect(StrEnum):
    """What a level does to a workload that is hit."""

    RECORD = "record"  # shown; what runs goes on
    STRATEGY = "by subHealthyStrategy"  # see `strategy_recovers`
    LISTED = "recover when listed"  # only if the writer lists the card or node as unhealthy
    WINDOW = "recover after its window"  # silent at first, by default
    ACT = "recover at once"  # unless the job's own annotation silences it

    @property
    def recovers(self) -> bool:
        """Whether it asks for a recovery by the level alone."""
        return self in (Effect.WINDOW, Effect.ACT)


class Placement(StrEnum):
    """What a level does to scheduling."""

    OPEN = "open"
    CARD_CLOSED = "card closed"
    CARD_CLOSED_IDLE = "card closed once idle"
    CARD_CLOSED_MANUAL = "card closed until a person releases it"
    LINK_CLOSED = "closed for distributed jobs"
    NODE_CLOSED = "node closed"
    NODE_CLOSED_IDLE = "node closed once idle"
    NODE_CLOSED_MANUAL = "node closed until a person releases it"


class Subject(StrEnum):
    """Who is hit."""

    INFERENCE = "inference instance"
    MS = "MS pod"
    TRAINING = "training job"


@dataclass(frozen=True, slots=True)
class Row:
    """One level of one family."""

    inference: Effect
    ms: Effect
    training: Effect
    placement: Placement
    note: str = ""

    def on(self, subject: Subject) -> Effect:
        """The effect on one subject."""
        match subject:
            case Subject.INFERENCE:
                return self.inference
            case Subject.MS:
                return self.ms
            case Subject.TRAINING:
                return self.training


def _all(effect: Effect, placement: Placement, note: str = "") -> Row:
    return Row(effect, effect, effect, placement, note)


def _cards(effect: Effect, placement: Placement, note: str = "") -> Row:
    """MS pods hold no card: a card's fault cannot hit them."""
    return Row(effect, Effect.RECORD, effect, placement, note)


_UNDEFINED = "a text that no writer defines: no new work, no restart, unless it is listed as unhealthy"

_CHIP: dict[Level, Row] = {
    Level.UNKNOWN: _cards(Effect.LISTED, Placement.CARD_CLOSED, _UNDEFINED),
    Level.UNEXPLAINED: _cards(Effect.ACT, Placement.CARD_CLOSED, "listed as unhealthy, cause unknown"),
    Level.NORMAL: _cards(Effect.LISTED, Placement.CARD_CLOSED, "listed because of its neighbour (300I Duo)"),
    Level.NOT_HANDLE: _cards(Effect.RECORD, Placement.OPEN),
    Level.SUB_HEALTH: _cards(Effect.STRATEGY, Placement.OPEN),
    Level.RESTART_REQUEST: Row(
        Effect.WINDOW,
        Effect.RECORD,
        Effect.ACT,
        Placement.CARD_CLOSED,
        "servers: silent for 60 s, the service repeats the request itself",
    ),
    Level.RESTART_BUSINESS: _cards(Effect.ACT, Placement.CARD_CLOSED),
    Level.FREE_RESTART: _cards(Effect.LISTED, Placement.CARD_CLOSED, "reset by the device plugin when idle"),
    Level.RESTART_NPU: _cards(Effect.ACT, Placement.CARD_CLOSED, "reset by the device plugin when idle"),
    Level.PRE_SEPARATE: _cards(Effect.RECORD, Placement.CARD_CLOSED_IDLE, "what runs goes on"),
    Level.SEPARATE: _cards(Effect.ACT, Placement.CARD_CLOSED),
    Level.MANUALLY_SEPARATE: _cards(Effect.ACT, Placement.CARD_CLOSED_MANUAL),
}
_LINK = "a fault of the link alone never deletes"
_NETWORK: dict[Level, Row] = {
    level: _cards(Effect.RECORD, Placement.LINK_CLOSED, _LINK) for level in _CHIP
} | {Level.NOT_HANDLE: _cards(Effect.RECORD, Placement.OPEN)}
_SWITCH: dict[Level, Row] = {
    Level.UNKNOWN: _all(Effect.LISTED, Placement.NODE_CLOSED, _UNDEFINED),
    Level.UNEXPLAINED: _all(Effect.ACT, Placement.NODE_CLOSED, "NodeStatus UnHealthy, e.g. all L1-L2 ports"),
    Level.NORMAL: _all(Effect.RECORD, Placement.OPEN),
    Level.NOT_HANDLE: _all(Effect.RECORD, Placement.OPEN),
    Level.SUB_HEALTH: _all(Effect.STRATEGY, Placement.OPEN),
    Level.RESTART_REQUEST: Row(
        Effect.WINDOW, Effect.ACT, Effect.ACT, Placement.NODE_CLOSED, "servers: silent for 60 s"
    ),
    Level.PRE_SEPARATE: _all(Effect.RECORD, Placement.NODE_CLOSED_IDLE, "what runs goes on"),
    Level.SEPARATE: _all(Effect.ACT, Placement.NODE_CLOSED),
}
_NODE: dict[Level, Row] = {
    Level.UNKNOWN: _all(Effect.LISTED, Placement.NODE_CLOSED, _UNDEFINED),
    Level.UNEXPLAINED: _all(Effect.ACT, Placement.NODE_CLOSED, "NodeStatus UnHealthy, no device says why"),
    Level.NOT_HANDLE: _all(Effect.RECORD, Placement.OPEN),
    Level.PRE_SEPARATE: _all(Effect.RECORD, Placement.NODE_CLOSED_IDLE, "what runs goes on"),
    Level.SEPARATE: _all(Effect.ACT, Placement.NODE_CLOSED),
}
_POD_LABEL: dict[Level, Row] = {
    Level.UNKNOWN: _all(Effect.RECORD, Placement.OPEN, "a text that no writer defines"),
    Level.SUB_HEALTH: _all(Effect.STRATEGY, Placement.OPEN, "correlated faults"),
    Level.SEPARATE: _all(Effect.ACT, Placement.OPEN, "correlated faults; the cards have faults of their own"),
    Level.SOFTWARE: _all(Effect.RECORD, Placement.OPEN, "the process layer answers it"),
    Level.RETRY: _all(Effect.RECORD, Placement.OPEN, "the process retries the step"),
}
_RELATION: dict[Level, Row] = {
    Level.UNKNOWN: _all(Effect.RECORD, Placement.OPEN, "a strategy that nobody defines"),
    Level.SUB_HEALTH: _all(Effect.STRATEGY, Placement.OPEN, "correlated faults"),
    Level.SEPARATE: _all(Effect.ACT, Placement.OPEN, "correlated faults; the link has a fault of its own"),
}
_POD_STATUS: dict[Level, Row] = {
    Level.UNKNOWN: _all(
        Effect.RECORD,
        Placement.OPEN,
        "Volcano's conclusion from what is read here too; to answer it would evade windows and brakes",
    ),
}
_NODE_MARK: dict[Level, Row] = {
    Level.UNEXPLAINED: _all(Effect.ACT, Placement.NODE_CLOSED_MANUAL, "left by an online stress test"),
}

EFFECTS: dict[Family, dict[Level, Row]] = {
    Family.CHIP: _CHIP,
    Family.NETWORK: _NETWORK,
    Family.PUBLIC: _CHIP,
    Family.SWITCH: _SWITCH,
    Family.NODE: _NODE,
    Family.POD_LABEL: _POD_LABEL,
    Family.POD_STATUS: _POD_STATUS,
    Family.RELATION: _RELATION,
    Family.NODE_MARK: _NODE_MARK,
}


def row_of(family: Family, level: Level) -> Row:
    """The row of a level; a level that its family does not know counts as undefined there."""
    rows = EFFECTS[family]
    return rows.get(level) or rows.get(Level.UNKNOWN) or rows[Level.UNEXPLAINED]


def subject_of(role: Role) -> Subject:
    """Which column a workload reads."""
    match role:
        case Role.SERVER:
            return Subject.INFERENCE
        case Role.CONTROLLER | Role.COORDINATOR:
            return Subject.MS
        case _:
            return Subject.TRAINING


def strategy_recovers(strategy: str) -> bool:
    """Whether a sub-health strategy asks for a recovery.

    `hotSwitch` acts as `ignore`. How the pods are then deleted, `policy/manners.py` says.
    """
    return strategy in (FORCE_EXIT, GRACE_EXIT)
