"""The informer cache that the actors of one world share.

One list+watch per kind keeps decoded objects in memory; actors read them and are woken, coalesced, when a
kind they follow changes. The cache is level-triggered: a lost or cut watch, a 410 or any other refusal
leads to a relist, and actors see the same objects as if they had seen every event.

Own writes are shown to the cache at once (`observe`), so that the next decision of an actor does not rest
on a state from before its last write. A tombstone keeps a late answer from bringing a deleted object back.
Objects are shared: readers must not change them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import aclosing

import aiohttp

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.actors.documents import Key, key_of, number, text, uid_of
from mindie_ha.sim.client import ApiClient, ApiError, Object

log = logging.getLogger(__name__)

RETRY_S = 0.5  # pause before a relist after a refusal
ENDED_S = 0.02  # pause after a clean end of a watch, so that a server that ends all at once is not flooded
TOMBSTONES = 4096
TRANSIENT = (ApiError, OSError, TimeoutError, aiohttp.ClientError, json.JSONDecodeError)
"""What a request to an API server may raise; everything else is a bug and stops the world."""

KINDS = (
    *("Node", "Pod", "ConfigMap", "Service", "AscendJob", "Job", "PodGroup", "Queue"),
    *("InferServiceSet", "InstanceSet", "StatefulSet", "Deployment", "ReplicaSet"),
)


class Wakeup:
    """A coalescing signal: any number of changes between two waits is one wake-up."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake the waiter."""
        self._event.set()

    async def wait(self, clock: Clock, timeout_s: float) -> None:
        """Return when woken or after `timeout_s`; clears the signal."""
        try:
            async with clock.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()


class Cache:
    """The current objects of some kinds."""

    def __init__(self, *, api: ApiClient, clock: Clock, kinds: Sequence[str] = KINDS) -> None:
        self._api = api
        self._clock = clock
        self._objects: dict[str, dict[Key, Object]] = {kind: {} for kind in kinds}
        self._listed: dict[str, asyncio.Event] = {kind: asyncio.Event() for kind in kinds}
        self._wakeups: list[tuple[frozenset[str], Wakeup]] = []
        self._gone: OrderedDict[str, None] = OrderedDict()

    def subscribe(self, kinds: Iterable[str]) -> Wakeup:
        """A signal that fires when an object of one of `kinds` changes."""
        wakeup = Wakeup()
        self._wakeups.append((frozenset(kinds), wakeup))
        return wakeup

    def unsubscribe(self, wakeup: Wakeup) -> None:
        """Forget a signal."""
        self._wakeups = [entry for entry in self._wakeups if entry[1] is not wakeup]

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, or None."""
        return self._objects[kind].get((namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """The objects of a kind, ordered by namespace and name."""
        found = self._objects[kind]
        return [found[key] for key in sorted(found) if namespace is None or key[0] == namespace]

    def observe(self, kind: str, obj: Object) -> None:
        """Take in an object from an answer or a watch, unless a newer state is known."""
        known = self._objects[kind].get(key_of(obj))
        if uid_of(obj) in self._gone or (known is not None and _version(known) >= _version(obj)):
            return
        self._objects[kind][key_of(obj)] = obj
        self._wake(kind)

    def forget(self, kind: str, obj: Object) -> None:
        """Take out a deleted object; a successor of the same name stays."""
        self._bury(uid_of(obj))
        known = self._objects[kind].get(key_of(obj))
        if known is not None and uid_of(known) == uid_of(obj):
            del self._objects[kind][key_of(obj)]
        self._wake(kind)

    async def synced(self) -> None:
        """Wait until every kind has been listed once."""
        for listed in self._listed.values():
            await listed.wait()

    async def run(self) -> None:
        """Follow all kinds until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind in self._objects:
                group.create_task(self._follow(kind), name=f"sim-watch-{kind}")

    async def _follow(self, kind: str) -> None:
        while True:
            try:
                await self._list_and_watch(kind)
            except TRANSIENT as error:
                log.debug("watch of %s: %s; listing again", kind, error)
                await self._clock.sleep(RETRY_S)
            else:
                await self._clock.sleep(ENDED_S)

    async def _list_and_watch(self, kind: str) -> None:
        found, version = await self._api.list(kind)
        self._replace(kind, found)
        async with aclosing(self._api.watch(kind, version)) as events:
            async for event, obj in events:
                if event == "ERROR":
                    raise ApiError(
                        number(obj, "code", default=500), text(obj, "reason"), text(obj, "message")
                    )
                if event == "DELETED":
                    self.forget(kind, obj)
                elif event != "BOOKMARK":
                    self.observe(kind, obj)

    def _replace(self, kind: str, found: list[Object]) -> None:
        fresh = {key_of(obj): obj for obj in found}
        kept = {uid_of(obj) for obj in found}
        for obj in self._objects[kind].values():
            if uid_of(obj) not in kept:
                self._bury(uid_of(obj))
        self._objects[kind] = fresh
        self._listed[kind].set()
        self._wake(kind)

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        while len(self._gone) > TOMBSTONES:
            self._gone.popitem(last=False)

    def _wake(self, kind: str) -> None:
        for kinds, wakeup in self._wakeups:
            if kind in kinds:
                wakeup.set()


def _version(obj: Object) -> int:
    # Resource versions are opaque by contract, but every server in use counts; not a number = always newer.
    return number(obj, "metadata", "resourceVersion", default=-1)


__all__ = ["KINDS", "TRANSIENT", "Cache", "Wakeup"]
