"""Objects in memory, one cluster-wide version, and a bounded history to watch and page from.

Promises: every change raises `version` by one and is told to every listener before the next change;
a stored object is never mutated (writers take `thaw()`), so snapshots are free; a list of one namespace
touches only that namespace. A consistent snapshot of an earlier version is the present with the history
undone, which works back to the collection's `floor`: older is Expired, as after etcd's compaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from mindie_ha.sim.resources import Resource

Object = dict[str, Any]  # one Kubernetes object as decoded JSON
Kind = tuple[str, str]  # group and plural: what shares one collection
Key = tuple[str, str]  # namespace ("" where there is none) and name
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

HISTORY = 3_000  # changes kept per collection; a real watch cache keeps some minutes' worth


class Stored:
    """One version of one object with its encodings made once, when first needed."""

    __slots__ = ("_full", "_item", "obj", "version")

    def __init__(self, obj: Object, version: int) -> None:
        self.obj = obj
        self.version = version
        self._item: bytes | None = None
        self._full: bytes | None = None

    def item(self) -> bytes:
        """JSON without kind and apiVersion, as items of a typed list stand."""
        if self._item is None:
            self._item = orjson.dumps({k: v for k, v in self.obj.items() if k not in ("kind", "apiVersion")})
        return self._item

    def full(self) -> bytes:
        """JSON with kind and apiVersion in front."""
        if self._full is None:
            self._full = encode(self.obj, item=self.item())
        return self._full

    def thaw(self) -> Object:
        """A copy that the caller may change."""
        copy: Object = orjson.loads(self.full())
        return copy


def encode(obj: Object, *, item: bytes | None = None) -> bytes:
    """JSON of an object, kind and apiVersion first."""
    head = orjson.dumps({"kind": obj.get("kind", ""), "apiVersion": obj.get("apiVersion", "")})
    if item is None:
        item = orjson.dumps({k: v for k, v in obj.items() if k not in ("kind", "apiVersion")})
    return head if item == b"{}" else head[:-1] + b"," + item[1:]


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a collection; `now` of a DELETED is the last state at the version of the deletion."""

    version: int
    type: ChangeType
    key: Key
    now: Stored
    before: Stored | None


@dataclass(slots=True)
class Collection:
    """All objects of one kind. Changes above `floor` are still in `history`."""

    objects: dict[str, dict[str, Stored]] = field(default_factory=dict)
    history: deque[Change] = field(default_factory=deque)
    floor: int = 0

    def iterate(self, namespace: str) -> Iterator[tuple[Key, Stored]]:
        """Objects of one namespace, or of all ("")."""
        spaces = (namespace,) if namespace else tuple(self.objects)
        for space in spaces:
            for name, stored in self.objects.get(space, {}).items():
                yield (space, name), stored


Listener = Callable[[Kind, Change], None]


class Store:
    """Every collection and the one version."""

    def __init__(self, *, history: int = HISTORY) -> None:
        self.version = 1
        self._history = history
        self._collections: dict[Kind, Collection] = {}
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` synchronously after every change, in order."""
        self._listeners.append(listener)

    def kinds(self) -> tuple[Kind, ...]:
        """Kinds that ever held an object."""
        return tuple(self._collections)

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """The present version of one object."""
        return self.collection(kind_of(resource)).objects.get(namespace, {}).get(name)

    def collection(self, kind: Kind) -> Collection:
        """The collection of a kind, made when first asked for."""
        found = self._collections.get(kind)
        if found is None:
            found = self._collections[kind] = Collection()
        return found

    def put(self, resource: Resource, obj: Object) -> Stored:
        """Store a new object or a new version; stamps resourceVersion. The caller gives `obj` away."""
        key = key_of(obj)
        space = self.collection(kind_of(resource)).objects.setdefault(key[0], {})
        before = space.get(key[1])
        stored = self._stamp(obj)
        space[key[1]] = stored
        self._record(resource, "MODIFIED" if before else "ADDED", key, stored, before)
        return stored

    def remove(self, resource: Resource, namespace: str, name: str, *, final: Object | None = None) -> Stored:
        """Drop an object; returns its last state (or `final`), stamped with the version of the deletion."""
        space = self.collection(kind_of(resource)).objects[namespace]
        before = space.pop(name)
        last = self._stamp(final or before.thaw())
        self._record(resource, "DELETED", (namespace, name), last, before)
        return last

    def snapshot(self, kind: Kind, namespace: str, version: int | None = None) -> list[tuple[Key, Stored]]:
        """Objects in key order, as they were at `version` (None: now). The caller has checked the floor."""
        collection = self.collection(kind)
        present = dict(collection.iterate(namespace))
        if version is not None:
            for change in reversed(collection.history):
                if change.version <= version:
                    break
                if namespace and change.key[0] != namespace:
                    continue
                if change.before is None:
                    present.pop(change.key, None)
                else:
                    present[change.key] = change.before
        return sorted(present.items(), key=lambda entry: entry[0])

    def changes_after(self, kind: Kind, version: int) -> list[Change]:
        """History above `version`, oldest first. The caller has checked the floor."""
        found: list[Change] = []
        for change in reversed(self.collection(kind).history):
            if change.version <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def compact(self) -> None:
        """Forget all history: versions before the present one are Expired from now on."""
        for collection in self._collections.values():
            collection.history.clear()
            collection.floor = self.version

    def _stamp(self, obj: Object) -> Stored:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        return Stored(obj, self.version)

    def _record(
        self, resource: Resource, type_: ChangeType, key: Key, now: Stored, before: Stored | None
    ) -> None:
        kind = kind_of(resource)
        collection = self.collection(kind)
        change = Change(self.version, type_, key, now, before)
        collection.history.append(change)
        if len(collection.history) > self._history:
            collection.floor = collection.history.popleft().version
        for listener in self._listeners:
            listener(kind, change)


def kind_of(resource: Resource) -> Kind:
    """The collection that a resource lives in."""
    return resource.group, resource.plural


def key_of(obj: Object) -> Key:
    """Namespace and name of an object."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]
