"""What people paused: kept in one ledger for the whole cluster.

A scope is a text that people can read and type: `cluster`, `namespace/<ns>` or `service/<ns>/<jobID>` (for a
job without service the name of its AscendJob).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from mindie_ha.model.recoveries import Frozen

MAX_PAUSES = 1000
MAX_RESUMED = 50
CLUSTER = "cluster"


class Pause(Frozen):
    """Deletions of one scope are held. Times are wall time in seconds."""

    scope: str
    text: str
    person: str  # "person:<name>"
    since_s: float
    ends_at_s: float | None = None  # None: until it is resumed


class Resumed(Frozen):
    """Who ended a pause before its time."""

    pause: Pause
    person: str
    at_s: float


class PauseLedger(Frozen):
    """All pauses; those whose time is over no longer count and go with the next change. The last ones that a
    person ended are kept, oldest first."""

    schema_version: Literal[2] = 2  # 2: with `resumed`
    pauses: tuple[Pause, ...] = Field((), max_length=MAX_PAUSES)
    resumed: tuple[Resumed, ...] = Field((), max_length=MAX_RESUMED)


@dataclass(frozen=True, slots=True)
class Pauses:
    """The ledger as it stands. `error`: it cannot be read, and everything counts as paused."""

    ledger: PauseLedger = field(default_factory=PauseLedger)
    version: str = ""
    error: str = ""
