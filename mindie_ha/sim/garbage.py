"""What the garbage collector and the namespace controller of a real cluster do behind the API server.

Dependents of an owner that is gone are deleted in the background (their other owners keep them alive);
`orphan` cuts the references first; `foregroundDeletion` waits for the dependents that block. A Terminating
namespace is emptied, then removed. Work is found by looking at the objects that changed, never by
scanning everything; one pass a `PERIOD_S` on the injected clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from mindie_ha.sim import deletions
from mindie_ha.sim.audits import GARBAGE_COLLECTOR
from mindie_ha.sim.core import NAMESPACES, Core
from mindie_ha.sim.deletions import FOREGROUND, ORPHAN, DeleteOptions
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Object
from mindie_ha.sim.storage import Change, Key, Kind, Stored, key_of, kind_of

PERIOD_S = 0.05  # between a change and the look at what it left behind

Where = tuple[Kind, Key]


class GarbageCollector:
    """Follows the store; `run()` has to be owned by a task supervisor."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._live: dict[str, Where] = {}  # uid -> where it is
        self._dependents: dict[str, dict[Where, None]] = {}  # owner uid -> who names it
        self._suspects: dict[Where, None] = {}  # to look at in the next pass
        self._wake = asyncio.Event()
        core.store.listen(self._follow)

    def _follow(self, kind: Kind, change: Change) -> None:
        where = (kind, change.key)
        before = set(_owners(change.before.obj)) if change.before else set()
        now = set() if change.type == "DELETED" else set(_owners(change.now.obj))
        for uid in before - now:
            dependents = self._dependents.get(uid, {})
            dependents.pop(where, None)
            if not dependents:
                self._dependents.pop(uid, None)
        for uid in now - before:
            self._dependents.setdefault(uid, {})[where] = None
        meta = change.now.obj["metadata"]
        if change.type == "DELETED":
            self._live.pop(meta["uid"], None)
            self._suspect(self._dependents.get(meta["uid"], ()))
            self._suspect(self._blocked_by(change.now.obj))
            self._suspect([(kind_of(NAMESPACES), ("", change.key[0]))] if change.key[0] else [])
        else:
            self._live[meta["uid"]] = where
            if now or "deletionTimestamp" in meta:
                self._suspect([where])

    def _blocked_by(self, obj: Object) -> Iterator[Where]:
        for uid in _owners(obj):
            if uid in self._live:
                yield self._live[uid]

    def _suspect(self, places: Iterable[Where]) -> None:
        for where in places:
            self._suspects[where] = None
        if self._suspects:
            self._wake.set()

    async def run(self) -> None:
        """Collect for ever."""
        while True:
            await self._wake.wait()
            await self._core.clock.sleep(PERIOD_S)
            self.collect()

    def collect(self) -> None:
        """One pass over what changed since the last."""
        self._wake.clear()
        suspects, self._suspects = self._suspects, {}
        for where in suspects:
            found = self._find(where)
            if found is None:
                continue
            resource, stored = found
            if resource.kind == "Namespace":
                self._empty(stored)
            elif "deletionTimestamp" in stored.obj["metadata"]:
                self._finalize(resource, stored)
            if _owners(stored.obj):
                self._judge(resource, stored)

    def _find(self, where: Where) -> tuple[Resource, Stored] | None:
        (group, plural), (namespace, name) = where
        resource = self._core.kinds.find(group, plural)
        stored = resource and self._core.store.get(resource, namespace, name)
        return (resource, stored) if resource and stored else None

    def _judge(self, resource: Resource, stored: Stored) -> None:
        """Delete a dependent all of whose owners are gone; else drop the references to the gone ones."""
        owners = stored.obj["metadata"]["ownerReferences"]
        living = [owner for owner in owners if self._lives(owner)]
        if living and len(living) < len(owners):
            obj = stored.thaw()
            obj["metadata"]["ownerReferences"] = living
            self._core.store.put(resource, obj)
        elif not living and "deletionTimestamp" not in stored.obj["metadata"]:
            self._delete(resource, stored, DeleteOptions())

    def _lives(self, owner: Object) -> bool:
        """Whether an owner is there; one of a kind that is not served is left alone, as the real one does."""
        if owner.get("uid") in self._live:
            return True
        return self._core.kinds.by_kind(owner.get("apiVersion", ""), owner.get("kind", "")) is None

    def _finalize(self, resource: Resource, stored: Stored) -> None:
        finalizers = stored.obj["metadata"].get("finalizers") or []
        uid = stored.obj["metadata"]["uid"]
        dependents = [found for where in list(self._dependents.get(uid, ())) if (found := self._find(where))]
        if ORPHAN in finalizers:
            for dependent_resource, dependent in dependents:
                obj = dependent.thaw()
                kept = [each for each in obj["metadata"]["ownerReferences"] if each.get("uid") != uid]
                obj["metadata"]["ownerReferences"] = kept
                self._core.store.put(dependent_resource, obj)
            self._release(resource, stored, ORPHAN)
        elif FOREGROUND in finalizers:
            for dependent_resource, dependent in dependents:
                if "deletionTimestamp" not in dependent.obj["metadata"]:
                    self._delete(dependent_resource, dependent, DeleteOptions(policy="Foreground"))
            left = [found for where in list(self._dependents.get(uid, ())) if (found := self._find(where))]
            if not any(_blocks(dependent.obj, uid) for _, dependent in left):
                self._release(resource, stored, FOREGROUND)

    def _release(self, resource: Resource, stored: Stored, finalizer: str) -> None:
        obj = stored.thaw()
        meta = obj["metadata"]
        meta["finalizers"] = [each for each in meta["finalizers"] if each != finalizer]
        if meta["finalizers"] or meta.get("deletionGracePeriodSeconds"):
            self._core.store.put(resource, obj)
        else:
            self._core.store.remove(resource, *key_of(obj), final=obj)

    def _empty(self, namespace: Stored) -> None:
        name = namespace.obj["metadata"]["name"]
        if "deletionTimestamp" not in namespace.obj["metadata"]:
            return
        left = 0
        for resource in self._core.kinds.all():
            if not resource.namespaced:
                continue
            for _, stored in list(self._core.store.collection(kind_of(resource)).iterate(name)):
                left += 1
                if "deletionTimestamp" not in stored.obj["metadata"]:
                    self._delete(resource, stored, DeleteOptions())
                    left -= self._core.store.get(resource, *key_of(stored.obj)) is None
        if not left:
            self._core.store.remove(NAMESPACES, "", name)

    def _delete(self, resource: Resource, stored: Stored, options: DeleteOptions) -> None:
        namespace, name = key_of(stored.obj)
        last, _ = deletions.delete(self._core, Route(resource, namespace, name), options)
        self._core.record("delete", resource, last, user_agent=GARBAGE_COLLECTOR)


def _owners(obj: Object) -> list[str]:
    return [owner.get("uid", "") for owner in obj["metadata"].get("ownerReferences") or []]


def _blocks(dependent: Object, uid: str) -> bool:
    owners = dependent["metadata"].get("ownerReferences") or []
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)
