"""Who wrote what, when, with which answer: what judges read to see who deleted which pod.

Bounded; the oldest entries go first. Reads are not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

ENTRIES = 50_000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One write as the server saw it; `time` is Unix time, `uid` is empty where the object was not found."""

    time: float
    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    uid: str
    user_agent: str
    code: int
