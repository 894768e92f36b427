"""Asking for the plan of a whole fleet holds nobody up."""

from __future__ import annotations

import asyncio

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.model.ids import ScopeKey
from mindie_ha.model.settings import Settings
from mindie_ha.policy.planner import plan
from mindie_ha.web.explanations import Explainer
from tests.cluster import facts

pytestmark = pytest.mark.looptime
NODES = 300


class Nobody:
    """No table is subscribed to."""

    def facts(self, scope: ScopeKey) -> tuple[int, bool]:
        del scope
        return 0, True


async def test_others_get_a_turn_after_each_node() -> None:
    store = facts.make_store()
    for number in range(NODES):
        store.apply(facts.node(f"n{number}"))
    explainer = Explainer(store=store, tables=Nobody(), planner=plan, settings=Settings(), clock=LoopClock())
    asked = asyncio.create_task(explainer.plan(None))
    turns = 0
    while not asked.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= NODES
    assert (await asked).nodes == ()
