"""Deletions that were sent and never answered.

Whether such a one took effect is asked before another is sent, also by a later write: a watch may be silent
for longer than all retries of the first take. A new leader needs no such memory, since it lists first.
"""

from __future__ import annotations

MAX_UIDS = 10_000  # the oldest is forgotten; a deletion by UID that is repeated does no harm


class Unanswered:
    """UIDs of pods, oldest first."""

    def __init__(self) -> None:
        self._uids: dict[str, None] = {}

    def __contains__(self, uid: str) -> bool:
        """Whether it may have been deleted."""
        return uid in self._uids

    def add(self, uid: str) -> None:
        """A deletion was sent, and nothing came back."""
        self._uids[uid] = None
        if len(self._uids) > MAX_UIDS:
            del self._uids[next(iter(self._uids))]

    def settle(self, uid: str) -> None:
        """What became of it is known."""
        self._uids.pop(uid, None)


__all__ = ["Unanswered"]
