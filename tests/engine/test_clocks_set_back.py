"""A clock that is set back between two lives of the controller makes nobody wait for it."""

from __future__ import annotations

import pytest

from .clusters import CHIP, NOT_READY, Cluster, cluster, quick
from .doors import Ours

pytestmark = pytest.mark.looptime
P0 = "mindie-server-p0"


def phase(c: Cluster) -> str:
    recovery = (c.ledger(P0) or {}).get("recovery")
    return str(recovery["phase"]) if recovery else ""


@pytest.mark.parametrize("at", ["place", "table", "settle"])
@pytest.mark.parametrize("back_s", [3600.0, 30.0])
async def test_a_recovery_goes_on_with_what_was_left_of_its_time(at: str, back_s: float) -> None:
    async with cluster(settings=quick()) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: phase(c) == at, at, every_s=0.01)
        await c.kill()
        await c.start(quick(), behind_s=back_s)
        record = await c.recovered(P0, deadline_s=120.0)
        assert record["outcome"] == "recovered"
        assert record["closed_at_s"] - record["opened_at_s"] < 120.0
        await c.until(lambda: not c.taints(node), "released", deadline_s=60.0)


async def test_what_was_closed_before_costs_no_back_off_for_an_hour() -> None:
    async with cluster(settings=quick()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.recovered(P0)
        await c.clock.sleep(60.0)
        await c.kill()
        await c.start(quick(), behind_s=3600.0)
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.recovered(P0, closed=2, deadline_s=120.0)


async def test_a_deletion_that_was_refused_for_long_is_sent_soon() -> None:
    async with cluster(settings=quick(), nodes=8) as c:
        c.server.disturbances.add(Ours("DELETE", "pods", code=403, times=None))
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.clock.sleep(7200.0)
        await c.kill()
        c.server.disturbances.clear()
        await c.start(quick(), behind_s=3600.0)
        await c.recovered(P0, deadline_s=700.0)


async def test_a_node_that_healed_just_before_is_released_in_time() -> None:
    async with cluster(settings=quick(), nodes=8) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.recovered(P0)
        await c.clock.sleep(7200.0)
        await c.world.heal(node)
        await c.clock.sleep(10.0)
        await c.kill()
        await c.start(quick(), behind_s=3600.0)
        await c.until(lambda: not c.taints(node), "released", deadline_s=400.0, every_s=5.0)


async def test_an_adoption_that_never_left_is_ordered_again() -> None:
    async with cluster(start=False, settings=quick()) as c:
        await c.start(quick(), cut_before=2)
        await c.clock.sleep(5.0)
        await c.kill()
        await c.start(quick(), behind_s=3600.0)
        await c.clock.sleep(120.0)
        notes = [one["metadata"].get("annotations") or {} for one in c.all("PodGroup")]
        assert all("ProcessRecoverStrategy" in each for each in notes)
