"""Many nodes lost at once: nothing is deleted because of it, and the brake lifts again."""

from __future__ import annotations

import pytest

from .clusters import CHIP, NOT_READY, cluster, quick

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"


async def test_most_nodes_lost_deletes_nothing_and_says_so() -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        before = c.uids()
        for number in range(6):
            await c.world.set_faults(f"node-{number}", [NOT_READY])
        await c.until(lambda: c.events("HeldByBrake"), "people are told")
        assert c.state(P0) == "held"
        await c.clock.sleep(60)
        assert c.uids() == before
        assert not c.judge.deleted
        for number in range(6):
            await c.world.heal(f"node-{number}")
        await c.clock.sleep(60)
        assert c.uids() == before
        assert not c.judge.deleted


async def test_the_brake_lifts_when_enough_nodes_are_back() -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        stays = c.node_of(f"{P0}-worker-0")
        lost = [stays, *[f"node-{n}" for n in range(10) if f"node-{n}" != stays][:5]]
        for node in lost:
            await c.world.set_faults(node, [NOT_READY])
        await c.until(lambda: c.events("HeldByBrake"), "held")
        for node in lost[1:]:
            await c.world.heal(node)
        await c.recovered(P0)


async def test_a_chip_fault_is_answered_under_the_brake() -> None:
    async with cluster(nodes=12, settings=quick()) as c:
        used = {c.node_of(name) for name in c.pods()}
        spare = [f"node-{n}" for n in range(12) if f"node-{n}" not in used]
        for node in spare[:5]:
            await c.world.set_faults(node, [NOT_READY])
        await c.clock.sleep(20)
        await c.world.set_faults(c.node_of(f"{D0}-master-0"), [CHIP])
        await c.recovered(D0)
