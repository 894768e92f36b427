"""A scope that never comes to rest is slowed down; others are not."""

from __future__ import annotations

import asyncio

import pytest

from mindie_ha.engine.looks import Look
from mindie_ha.engine.workers import MAX_TURNS, TURN_HOLD_S, Engine
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.queues import KeyedQueue
from mindie_ha.kit.tasks import Supervisor
from mindie_ha.model.ids import ScopeKey, service_key

pytestmark = pytest.mark.looptime
RESTLESS, CALM = service_key("ns", "restless"), service_key("ns", "calm")


class Undone:
    """Looks at one scope whose every write somebody undoes at once, and at one that is well."""

    def __init__(self) -> None:
        self.looks: dict[ScopeKey, int] = {RESTLESS: 0, CALM: 0}
        self.queue: KeyedQueue[ScopeKey] | None = None

    async def reconcile(self, scope: ScopeKey) -> Look:
        self.looks[scope] += 1
        if scope == CALM:
            return Look()
        assert self.queue is not None
        asyncio.get_running_loop().call_later(0.001, self.queue.add, scope)  # the event of what was undone
        return Look(progressed=True)


async def test_what_never_comes_to_rest_is_slowed_down_and_holds_nobody_else_back() -> None:
    clock, entropy, metrics = LoopClock(wall_origin_s=0.0), Entropy(1), Metrics()
    queue: KeyedQueue[ScopeKey] = KeyedQueue(clock=clock, entropy=entropy)
    undone = Undone()
    undone.queue = queue
    supervisor = Supervisor(clock=clock, entropy=entropy, log=silent_log(), metrics=metrics)
    engine = Engine(reconciler=undone, queue=queue, supervisor=supervisor, clock=clock, metrics=metrics)
    task = asyncio.create_task(engine.run())
    engine.touch([RESTLESS])
    await clock.sleep(1)
    assert undone.looks[RESTLESS] >= MAX_TURNS
    before = undone.looks[RESTLESS]
    await clock.sleep(60)
    assert undone.looks[RESTLESS] - before <= 60 / TURN_HOLD_S + 1
    engine.touch([CALM], urgent=True)
    await asyncio.sleep(0.01)
    assert undone.looks[CALM] == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
