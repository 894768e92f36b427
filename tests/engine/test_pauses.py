"""Pauses on a whole cluster: what is held, what goes on, and that a restart forgets none."""

from __future__ import annotations

import json

import pytest

from mindie_ha.model.errors import LedgerUnreadable, NotFound
from mindie_ha.model.settings import MaintenanceSettings, Window
from tools.soak.judges import TAINT

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, Object, cluster, quick

pytestmark = pytest.mark.looptime
P0 = "mindie-server-p0"
MAP = "mindie-ha-pauses"
SERVICE = f"service/{NAMESPACE}/mindie-ms"


async def pause(c: Cluster, scope: str = "cluster", *, for_s: float | None = None) -> None:
    done = await c.app.pauses.pause(scope, text="switch work", person="ann", for_s=for_s)
    assert done.changed


async def break_card(c: Cluster) -> str:
    node = c.node_of(f"{P0}-master-0")
    await c.world.set_faults(node, [CHIP])
    return node


def stopped_s(closed: Object) -> float:
    """When the deletions of a recovery began."""
    return float(next(one["start_s"] for one in closed["history"] if one["phase"] == "stop"))


@pytest.mark.parametrize("scope", ["cluster", f"namespace/{NAMESPACE}", SERVICE])
async def test_a_paused_fault_is_isolated_and_deletes_nothing_until_it_is_resumed(scope: str) -> None:
    async with cluster(settings=quick(), lag_s=(20.0, 20.0)) as c:
        before, table = c.uids(), c.table()
        await pause(c, scope)
        node = await break_card(c)
        await c.until(lambda: c.state(P0) == "held", "held")
        assert TAINT in c.taints(node)
        await c.clock.sleep(300)
        assert c.uids() == before
        assert c.table() == table, "who still runs stays in the table"
        recovery = c.ledger(P0)["recovery"]
        assert (recovery["phase"], recovery["condition"]) == ("backoff", "HeldByPause")
        (event,) = c.events("HeldByPause")
        assert f"paused ({scope} by ann: switch work)" in str(event)
        assert (await c.app.pauses.resume(scope, person="bob")).changed
        await c.recovered(P0)
        (event,) = c.events("Resumed")
        assert f"bob resumed {scope}, which ann had paused: switch work" in event["message"]
        kept = json.loads(c.get("ConfigMap", MAP, "mindx-dl")["data"]["ledger.json"])["resumed"]  # type: ignore[index]
        assert [(one["person"], one["pause"]["scope"]) for one in kept] == [("person:bob", scope)]


async def test_another_service_is_not_held() -> None:
    async with cluster(settings=quick()) as c:
        await pause(c, "namespace/elsewhere")
        await break_card(c)
        await c.recovered(P0)


async def test_a_pause_ends_by_time() -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids(P0)
        await pause(c, for_s=100)
        began_s = c.clock.wall()
        await break_card(c)
        await c.clock.sleep(90)
        assert c.uids(P0) == before
        closed = await c.recovered(P0)
        assert 99 < stopped_s(closed) - began_s < 102
        assert "time of the pause is over" in str(c.events("Resumed"))


async def test_a_restart_keeps_a_pause_and_its_end() -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids(P0)
        await pause(c, for_s=200)
        began_s = c.clock.wall()
        await c.kill()
        await break_card(c)
        await c.start(quick())
        await c.clock.sleep(120)
        assert c.uids(P0) == before
        assert c.state(P0) == "held"
        closed = await c.recovered(P0)
        assert 199 < stopped_s(closed) - began_s < 202


async def test_an_open_recovery_finishes_what_deletes_nothing_more() -> None:
    async with cluster(settings=quick()) as c:
        await break_card(c)
        await c.until(lambda: (c.ledger(P0).get("recovery") or {}).get("phase") == "table", "placed")
        await pause(c)
        await c.recovered(P0)
        assert c.published() >= {P0}


async def test_a_replacement_that_is_hit_waits_before_its_deletion_and_its_node_is_isolated() -> None:
    async with cluster(settings=quick()) as c:
        await break_card(c)
        await c.until(lambda: (c.ledger(P0).get("recovery") or {}).get("phase") == "settle", "settling")
        await pause(c)
        uids, node = c.uids(P0), c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.until(lambda: c.state(P0) == "held", "held")
        await c.clock.sleep(120)
        recovery = c.ledger(P0)["recovery"]
        assert (recovery["phase"], recovery["condition"]) == ("backoff", "HeldByPause")
        assert c.uids(P0) == uids
        assert TAINT in c.taints(node), "isolations are never held"
        await c.world.heal(node)
        await c.app.pauses.resume("cluster", person="ann")
        await c.recovered(P0)


async def test_tables_are_published_while_paused() -> None:
    async with cluster(settings=quick()) as c:
        await pause(c)
        generation = c.table()["generation"]
        await c.delete_pod(f"{P0}-worker-0")
        await c.until(lambda: P0 not in c.published(), "the table says who is left")
        assert c.table()["generation"] > generation


async def test_a_fault_in_a_maintenance_window_is_answered_when_it_ends() -> None:
    window = Window(cron="0 8 * * *", duration_s=100)  # the test's day begins at 08:00
    settings = quick().model_copy(update={"maintenance": MaintenanceSettings(windows=(window,))})
    async with cluster(settings=settings) as c:
        before = c.uids(P0)
        await break_card(c)
        await c.until(lambda: c.state(P0) == "held", "held")
        assert c.events("HeldByMaintenance")
        await c.clock.sleep(60)
        assert c.uids(P0) == before
        closed = await c.recovered(P0)
        assert 1_800_000_100 <= stopped_s(closed) < 1_800_000_102


@pytest.mark.parametrize("broken", ["digest", "version"])
async def test_an_unreadable_record_holds_everything_until_it_is_deleted(broken: str) -> None:
    async with cluster(settings=quick()) as c:
        await pause(c, for_s=1)
        await c.clock.sleep(5)
        text = '{"schema_version":3,"pauses":[]}' if broken == "version" else "{}"
        await c.api.patch("ConfigMap", MAP, "mindx-dl", {"data": {"ledger.json": text}})
        before = c.uids()
        await break_card(c)
        await c.until(lambda: c.state(P0) == "held", "held")
        await c.clock.sleep(60)
        assert c.uids() == before
        assert "the record of pauses is unreadable" in str(c.events("HeldByPause"))
        with pytest.raises(LedgerUnreadable):
            await c.app.pauses.resume("cluster", person="ann")
        await c.api.delete("ConfigMap", MAP, "mindx-dl")
        await c.recovered(P0)


async def test_twice_is_once_and_a_slip_of_the_pen_is_told() -> None:
    async with cluster(settings=quick()) as c:
        await pause(c, SERVICE)
        writes = len(c.judge.writes)
        again = await c.app.pauses.pause(SERVICE, text="switch work", person="ann", for_s=None)
        assert (again.changed, len(c.judge.writes)) == (False, writes)
        with pytest.raises(NotFound):
            await pause(c, f"service/{NAMESPACE}/nothing")
        assert not (await c.app.pauses.resume("cluster", person="ann")).changed
