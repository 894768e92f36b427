"""The objects of one source as last heard, and the difference to whatever is heard next.

Repetitions and older states say nothing. An object of another UID under a known name means that a deletion
was missed: it is told first. A full list tells deletions before additions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Protocol

from mindie_ha.cluster.slim import SlimObject
from mindie_ha.cluster.sources import Source
from mindie_ha.model.ids import ObjectKey

SLICE = 25  # some 2 ms


class OnChange(Protocol):
    """Told of every change, in order, synchronously: must be cheap and never raise."""

    def __call__(
        self, source: Source, key: ObjectKey, old: SlimObject | None, new: SlimObject | None, /
    ) -> None:
        """`old` None: added; `new` None: gone."""
        ...


class Cache:
    """See the module."""

    def __init__(self, source: Source, *, on_change: OnChange) -> None:
        self._source = source
        self._on_change = on_change
        self._objects: dict[ObjectKey, SlimObject] = {}

    @property
    def objects(self) -> Mapping[ObjectKey, SlimObject]:
        """What is known now; a live read-only view."""
        return MappingProxyType(self._objects)

    def put(self, new: SlimObject, *, rewound: bool = False) -> None:
        """An object as it was at its version; `rewound`: an older version counts too."""
        key = new.key
        old = self._objects.get(key)
        if old is not None:
            other = new.metadata.uid != old.metadata.uid
            same = new.metadata.resource_version == old.metadata.resource_version
            if (same and not (rewound and other)) or (not rewound and 0 < new.version < old.version):
                return
            if other:
                self.drop(key)
                old = None
        self._objects[key] = new
        self._on_change(self._source, key, old, new)

    def drop(self, key: ObjectKey, *, uid: str = "") -> None:
        """An object is gone; one that is not known, or has another UID by now, is no news."""
        old = self._objects.get(key)
        if old is not None and uid in ("", old.metadata.uid):
            del self._objects[key]
            self._on_change(self._source, key, old, None)

    def replacing(
        self,
        found: Mapping[ObjectKey, SlimObject],
        *,
        kept: Set[ObjectKey] = frozenset(),
        rewound: bool = False,
    ) -> Iterator[None]:
        """Take a full list; objects of `kept` are there but malformed, and keep their past.

        Pauses after each `SLICE` changes, so that a long list need not stop everything else.
        """
        gone = [key for key in self._objects if key not in found and key not in kept]
        for number, key in enumerate(gone, start=1):
            self.drop(key)
            if number % SLICE == 0:
                yield
        for number, item in enumerate(found.values(), start=1):
            self.put(item, rewound=rewound)
            if number % SLICE == 0:
                yield


__all__ = ["Cache", "OnChange"]
