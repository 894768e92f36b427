"""Small indexes of the store: a key to a set of members, and versions that never go back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from mindie_ha.cluster.slim import SlimObject

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)
TOMBSTONES = 20_000


class Index(Generic[K, V]):
    """Key -> members. Empty keys vanish; order is insertion order."""

    def __init__(self) -> None:
        self._members: dict[K, dict[V, None]] = {}

    def add(self, key: K, member: V) -> None:
        """Add; twice is once."""
        self._members.setdefault(key, {})[member] = None

    def discard(self, key: K, member: V) -> None:
        """Remove if there."""
        members = self._members.get(key)
        if members is None:
            return
        members.pop(member, None)
        if not members:
            del self._members[key]

    def of(self, key: K) -> tuple[V, ...]:
        """The members of a key."""
        return tuple(self._members.get(key, ()))

    def __iter__(self) -> Iterator[K]:
        """The keys that have members."""
        return iter(self._members)

    def __len__(self) -> int:
        """How many keys have members."""
        return len(self._members)


class Versions(Generic[K]):
    """Lets the newest state of each object pass, whoever brings it.

    Watch events and the answers to our own writes race: an answer may be older than an event, and may even
    come after the object was deleted. Deletions are remembered by UID (bounded), so that nothing rises again.
    A version that is no number is taken from watches and ignored from answers.
    """

    def __init__(self) -> None:
        self._current: dict[K, tuple[str, int]] = {}
        self._deleted: OrderedDict[str, int] = OrderedDict()

    def knows(self, key: K, uid: str) -> bool:
        """Whether the object known by `key` is the one with this UID."""
        known = self._current.get(key)
        return known is not None and known[0] == uid

    def admit(self, key: K, item: SlimObject, *, from_watch: bool) -> bool:
        """Whether `item` is news; remembers it if so."""
        uid, version = item.metadata.uid, item.version
        if not from_watch and (version == 0 or uid in self._deleted):
            return False
        if 0 < version <= self._deleted.get(uid, -1):
            return False
        known = self._current.get(key)
        if known is not None and known[0] == uid and 0 < version <= known[1]:
            return False
        if known is not None and known[0] != uid and 0 < version < known[1]:
            return False  # an object of this name that lived before the known one
        self._current[key] = (uid, version)
        return True

    def rewind(self) -> None:
        """The server's history went back: no version known so far says what is older any more."""
        self._current = {key: (uid, 0) for key, (uid, _) in self._current.items()}
        self._deleted.clear()

    def end(self, key: K, uid: str, version: int) -> bool:
        """The object was deleted. False where another object of this name is known already."""
        known = self._current.get(key)
        last = max(version, known[1] if known is not None and known[0] == uid else 0)
        self._deleted[uid] = max(last, self._deleted.pop(uid, 0))
        while len(self._deleted) > TOMBSTONES:
            self._deleted.popitem(last=False)
        if known is None or known[0] != uid:
            return False
        del self._current[key]
        return True


__all__ = ["Index", "Versions"]
