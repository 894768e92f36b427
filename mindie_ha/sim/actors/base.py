"""What all actors have in common: one loop that turns cached objects into requests.

`reconcile` looks at the cache and at the clock and does what is missing; it returns after how many seconds
it wants to look again. It runs on every change of the kinds it follows, at the latest after its period.
A refused request costs that one object its turn: it is logged, and the loop looks again after a short
pause. A bug (any other exception) ends the world loudly.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable
from typing import ClassVar

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.caches import TRANSIENT, Cache
from mindie_ha.sim.actors.documents import key_of, name_of, namespace_of, stamp, uid_of
from mindie_ha.sim.client import ApiClient, ApiError, Object
from mindie_ha.sim.resources import by_kind

log = logging.getLogger(__name__)

RETRY_S = 0.3
LEAST_WAIT_S = 0.002
PARALLEL = 16  # requests of one actor at the same time


class Actor(ABC):
    """A part of the cluster that acts on its own."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    period_s: float = 30.0
    rest_s: float = 0.0

    def __init__(self, *, api: ApiClient, cache: Cache, clock: Clock, entropy: Entropy) -> None:
        self.api = api
        self.cache = cache
        self.clock = clock
        self.entropy = entropy.child(self.name)
        self.wakeup = cache.subscribe(self.kinds)
        self._failed = False

    @abstractmethod
    async def reconcile(self) -> float:
        """Do what is missing; the result is the longest wait in seconds before the next look."""

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self.cache.synced()
        while True:
            self._failed = False
            wait_s = await self.reconcile()
            if self._failed:
                wait_s = min(wait_s, RETRY_S)
            if self.rest_s:
                await self.clock.sleep(self.rest_s)
            # The floor keeps a rest of a microsecond from spinning, on virtual time for ever.
            await self.wakeup.wait(self.clock, max(LEAST_WAIT_S, min(wait_s, self.period_s)))

    def now(self) -> str:
        """The wall time as Kubernetes writes it."""
        return stamp(self.clock.wall())

    async def attempt(self, action: Awaitable[object], *, what: str) -> bool:
        """Await one object's action; a refusal is logged and leads to another look soon."""
        try:
            await action
        except TRANSIENT as error:
            log.debug("%s: %s: %s", self.name, what, error)
            self._failed = True
            return False
        return True

    async def attempt_all(self, actions: Iterable[tuple[str, Awaitable[object]]]) -> None:
        """Await many objects' actions, a bounded number of them at a time."""
        gate = asyncio.Semaphore(PARALLEL)

        async def one(what: str, action: Awaitable[object]) -> None:
            async with gate:
                await self.attempt(action, what=what)

        async with asyncio.TaskGroup() as group:
            for what, action in actions:
                group.create_task(one(what, action), name=f"sim-{self.name}-{what}")

    async def patch(
        self, kind: str, obj: Object, body: Object, *, subresource: str = "", checked: bool = False
    ) -> Object:
        """Merge patch and show the answer to the cache; `checked` refuses if the object changed since."""
        meta = {**body.get("metadata", {}), "uid": uid_of(obj)}
        if checked:
            meta["resourceVersion"] = obj["metadata"]["resourceVersion"]
        answer = await self.api.patch(
            kind, name_of(obj), namespace_of(obj), {**body, "metadata": meta}, subresource=subresource
        )
        self.cache.observe(kind, answer)
        return answer

    async def patch_status(self, kind: str, obj: Object, status: Object) -> Object:
        """Merge patch of the status subresource."""
        return await self.patch(kind, obj, {"status": status}, subresource="status")

    async def create(self, kind: str, body: Object) -> Object | None:
        """Create and show it to the cache; None where an object of the name exists."""
        try:
            answer = await self.api.create(kind, body)
        except ApiError as error:
            if error.status == 409:
                return None
            raise
        self.cache.observe(kind, answer)
        return answer

    async def event(self, kind: str, obj: Object, *, reason: str, message: str, warning: bool = True) -> None:
        """Tell people about an object with a Kubernetes Event."""
        namespace = namespace_of(obj) or "default"
        body: Object = {
            "metadata": {"name": f"{name_of(obj)}.{self.entropy.uuid()[:13]}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": by_kind(kind).api_version,
                "kind": kind, "namespace": namespace_of(obj), "name": name_of(obj), "uid": uid_of(obj)
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message,
            "source": {"component": self.name},
            "firstTimestamp": self.now(),
            "lastTimestamp": self.now(),
            "count": 1,
        }  # fmt: skip
        await self.attempt(self.api.create("Event", body), what=f"event for {key_of(obj)}")


__all__ = ["PARALLEL", "Actor"]
