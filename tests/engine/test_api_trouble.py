"""The API server refuses, forgets, loses answers and cuts streams: recoveries end all the same."""

from __future__ import annotations

import pytest

from mindie_ha.sim.disturbances import Rule
from tools.soak.judges import TAINT

from .clusters import CHIP, NOT_READY, Cluster, cluster, quick
from .doors import Ours

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"

OURS = [
    ("PUT", "configmaps"),
    ("POST", "configmaps"),
    ("PATCH", "configmaps"),
    ("PATCH", "nodes"),
    ("GET", "nodes"),
    ("DELETE", "pods"),
    ("POST", "events"),
    ("GET", "configmaps"),
    ("WATCH", "pods"),
    ("WATCH", "configmaps"),
]


def trouble(method: str, resource: str) -> list[Rule]:
    """Everything that can happen to one kind of request, one after the other."""
    found: list[Rule] = [Ours(method, resource, code=code) for code in (409, 429, 503)]
    found.append(Ours(method, resource, reset=True))
    if method not in ("GET", "WATCH"):
        found.append(Ours(method, resource, code=504, applied=True))
        found.append(Ours(method, resource, reset=True, applied=True))
    return found


async def chip_fault_recovers(c: Cluster) -> None:
    old, other, node = c.uids(P0), c.uids(D0), c.node_of(f"{P0}-master-0")
    await c.world.set_faults(node, [CHIP])
    await c.recovered(P0, deadline_s=400)
    assert not set(c.uids(P0).values()) & set(old.values())
    assert c.uids(D0) == other
    await c.until(lambda: c.published() == {P0, D0}, "published")
    await c.until(lambda: TAINT not in c.taints(node), "released")


@pytest.mark.parametrize("first", [0, 4], ids=["refused-first", "applied-first"])
@pytest.mark.parametrize(("method", "resource"), OURS)
async def test_a_recovery_gets_through(method: str, resource: str, first: int) -> None:
    async with cluster(settings=quick()) as c:
        rules = trouble(method, resource)
        for rule in rules[first:] + rules[:first]:
            c.server.disturbances.add(rule)
        c.server.disturbances.cut_watches()
        await chip_fault_recovers(c)
        assert sum(rule.hits for rule in rules) >= 1
        await c.quiet(within_s=45, for_s=10)


async def test_adoption_gets_through() -> None:
    async with cluster(start=False) as c:
        for rule in trouble("PATCH", "podgroups"):
            c.server.disturbances.add(rule)
        await c.start(quick())
        await c.serving()
        await c.until(lambda: all("mindie-ha" in str(group) for group in c.all("PodGroup")), "adopted")
        await chip_fault_recovers(c)


@pytest.mark.parametrize("seed", range(4))
async def test_a_recovery_gets_through_a_bad_day(seed: int) -> None:
    async with cluster(settings=quick(), seed=seed) as c:
        for code in (409, 429, 500):
            c.server.disturbances.add(Ours(code=code, times=None, share=0.05))
        c.server.disturbances.add(Ours(reset=True, applied=True, times=None, share=0.05))
        await chip_fault_recovers(c)
        c.server.disturbances.clear()
        await c.quiet(within_s=120, for_s=10)


@pytest.mark.parametrize("how", ["cut", "cut-mid-line", "expired", "silent"])
async def test_streams_break_while_it_recovers(how: str) -> None:
    async with cluster(settings=quick()) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        for _ in range(20):
            if how == "expired":
                c.server.disturbances.expire_history()
            if how == "silent":
                c.server.disturbances.silence_watches(for_s=2.0)
            else:
                c.server.disturbances.cut_watches(mid_line=how == "cut-mid-line")
            await c.clock.sleep(0.4)
        await c.recovered(P0)
        assert c.published() == {P0, D0}
        assert len(c.ledger(P0)["attempts"]) == 1


async def test_an_api_that_is_away_for_a_minute_delays_and_nothing_more() -> None:
    async with cluster(settings=quick()) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.clock.sleep(5)
        c.server.disturbances.add(Ours(reset=True, times=None))
        c.server.disturbances.cut_watches(mid_line=True)
        await c.clock.sleep(60)
        c.server.disturbances.clear()
        await c.recovered(P0)
        assert len(c.judge.deleted) == 2


async def test_without_permission_to_delete_it_says_so_and_keeps_trying() -> None:
    async with cluster(settings=quick()) as c:
        c.server.disturbances.add(Ours("DELETE", "pods", code=403, times=None))
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.events("DeletionNotAccepted"), "people are told")
        assert "403" in c.log()
        c.server.disturbances.clear()
        await c.recovered(P0)
        deletions = [write for write in c.judge.writes if write.method == "DELETE"]
        assert len(deletions) < 30


async def test_events_that_cannot_be_written_stop_nothing() -> None:
    async with cluster(settings=quick()) as c:
        c.server.disturbances.add(Ours("POST", "events", code=500, times=None))
        await chip_fault_recovers(c)
