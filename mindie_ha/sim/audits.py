"""Who wrote what, when, with which answer: what judges read to see who deleted which pod.

One entry an object: a deletecollection is recorded with one entry for each object that it deleted, and what
the garbage collector deletes is recorded under its name. Bounded; the oldest entries go first. Reads are not
recorded.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

ENTRIES = 50_000
GARBAGE_COLLECTOR = "system:garbage-collector"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One write as the server saw it.

    `time` is Unix time; `verb` create, update, patch, delete or deletecollection (`subresource` tells a
    binding, an eviction or a status write); `uid` is empty where there was no object; `code` is the HTTP one.
    """

    time: float
    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    uid: str
    user_agent: str
    code: int
    dry_run: bool = False


Audit = deque[AuditEntry]


def new_audit() -> Audit:
    """An empty audit log with its bound."""
    return deque(maxlen=ENTRIES)
