"""The loop: keys in, looks out.

A few workers take keys from the queue; one key is never looked at by two at once. What a look leads to is
data (`Look`): at once again after progress, with back-off after a failure, at a wall time otherwise. A bug in
one scope is contained by the supervisor, counted, and retried like a failure: it cannot stop the others.
A scope that finds something to do with every look, for longer than any recovery takes, is slowed down:
whatever undoes our writes (a garbage collector that knows better, another controller) must not make us
flood the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from mindie_ha.engine.looks import Look
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.queues import KeyedQueue
from mindie_ha.kit.tasks import Supervisor
from mindie_ha.model.ids import ScopeKey

WORKERS = 8
MAX_TURNS = 200  # looks in a row that each changed something; one recovery needs about 20
TURN_HOLD_S = 0.5  # between two looks beyond that
MIN_WAKE_S = 0.01  # a time that is already over must not make a loop


class Looks(Protocol):
    """`engine.reconciling.Reconciler`."""

    async def reconcile(self, scope: ScopeKey) -> Look:
        """Look once."""
        ...


class Engine:
    """Owns the queue and the workers."""

    def __init__(
        self,
        *,
        reconciler: Looks,
        queue: KeyedQueue[ScopeKey],
        supervisor: Supervisor,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._reconciler = reconciler
        self._queue = queue
        self._supervisor = supervisor
        self._clock = clock
        self._metrics = metrics
        self._turns: dict[ScopeKey, int] = {}  # looks in a row that each changed something

    def touch(self, scopes: Iterable[ScopeKey], *, urgent: bool = False) -> None:
        """Something changed for these scopes: look soon; faults first."""
        for scope in scopes:
            self._queue.add(scope, urgent=urgent)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                group.create_task(self._work(), name=f"engine-worker-{number}")

    async def _work(self) -> None:
        while True:
            scope = await self._queue.get()
            began_s = self._clock.monotonic()
            try:
                ended = await self._supervisor.contain("look", self._reconciler.reconcile(scope))
                self._follow_up(scope, ended.value)
            finally:
                self._queue.done(scope)
            self._metrics.reconcile_s.labels(scope.kind).observe(self._clock.monotonic() - began_s)
            self._metrics.queue_depth.set(len(self._queue))

    def _follow_up(self, scope: ScopeKey, look: Look | None) -> None:
        if look is not None and look.progressed:
            self._turns[scope] = self._turns.get(scope, 0) + 1
            if self._turns[scope] >= MAX_TURNS:
                self._queue.hold(scope, TURN_HOLD_S)
        else:
            self._turns.pop(scope, None)
        if look is None or look.failed:
            self._queue.retry(scope)
        else:
            self._queue.forget(scope)
            if look.progressed:
                self._queue.add(scope, urgent=True)
        if look is not None and look.wake_at_s is not None:  # others of the scope may wait for a time
            delay_s = max(MIN_WAKE_S, look.wake_at_s - self._clock.wall())
            self._queue.add_at(scope, self._clock.monotonic() + delay_s)
