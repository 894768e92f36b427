"""Isolations on a whole cluster: asked for, kept over crashes, taken back, counted."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from mindie_ha.model.errors import Conflict, NotFound
from mindie_ha.model.settings import ChipIsolation, FaultSettings, Settings
from tools.soak.judges import TAINT

from .clusters import Cluster, Object, cluster, quick

pytestmark = pytest.mark.looptime
P0 = "mindie-server-p0"
NODE = "node-5"


def entries(c: Cluster, node: str = NODE) -> list[Object]:
    """The node's isolations as stored."""
    stored = c.get("ConfigMap", f"mindie-ha-node-{node}", "mindx-dl")
    found: list[Object] = json.loads(stored["data"]["ledger.json"])["isolations"] if stored else []
    return found


async def isolate(c: Cluster, *, device: str = "", for_s: float | None = None) -> None:
    await c.app.isolations.isolate(NODE, device=device, text="fan", person="ann", for_s=for_s)


async def release(c: Cluster, name: str, *, node: str = NODE) -> None:
    await c.app.isolations.release(node, name, person="ann")


async def cut_off(work: asyncio.Future[None]) -> None:
    """Let something run into a shut door."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, timeout=5.0)


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize("arrives", [False, True], ids=["before", "after"])
async def test_killed_while_isolating(cut: int, arrives: bool) -> None:
    async with cluster(settings=quick()) as c:
        await c.quiet(within_s=40.0, for_s=1.0)
        await c.kill()
        await c.start(quick(), cut_before=0 if arrives else cut, cut_after=cut if arrives else 0)
        await cut_off(asyncio.ensure_future(isolate(c)))
        await c.clock.sleep(1.0)
        await c.kill()
        promised = bool(entries(c))
        assert promised == ((cut, arrives) != (1, False))
        await c.start(quick())
        if not promised:
            assert not c.taints(NODE)
            await isolate(c)
        await c.until(lambda: TAINT in c.taints(NODE), "tainted")
        assert [one["wanted_by"] for one in entries(c)] == [["person:ann"]]
        await c.quiet(within_s=5.0, for_s=30.0)


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize("arrives", [False, True], ids=["before", "after"])
async def test_killed_while_releasing(cut: int, arrives: bool) -> None:
    async with cluster(settings=quick()) as c:
        await isolate(c)
        await c.until(lambda: TAINT in c.taints(NODE), "tainted")
        await c.quiet(within_s=40.0, for_s=1.0)
        await c.kill()
        await c.start(quick(), cut_before=0 if arrives else cut, cut_after=cut if arrives else 0)
        await cut_off(asyncio.ensure_future(release(c, "Person:-")))
        await c.clock.sleep(1.0)
        await c.kill()
        promised = not entries(c) or entries(c)[0]["overruled_at_s"] is not None
        assert promised == ((cut, arrives) != (1, False))
        await c.start(quick())
        if not promised:
            await c.clock.sleep(5.0)
            assert TAINT in c.taints(NODE)
            await release(c, "Person:-")
        await c.until(lambda: TAINT not in c.taints(NODE), "lifted")
        await c.until(lambda: not entries(c), "forgotten")
        await c.quiet(within_s=5.0, for_s=30.0)


async def test_an_isolation_with_an_end_ends() -> None:
    async with cluster(settings=quick()) as c:
        await isolate(c, for_s=60.0)
        await c.until(lambda: TAINT in c.taints(NODE), "tainted")
        await c.clock.sleep(55.0)
        assert TAINT in c.taints(NODE)
        await c.until(lambda: TAINT not in c.taints(NODE), "its time is over", deadline_s=10.0)
        await c.quiet(within_s=5.0, for_s=30.0)


async def test_two_entries_hold_one_taint_until_both_are_released() -> None:
    async with cluster(settings=quick()) as c:
        await isolate(c)
        await isolate(c, device="Ascend910-3")
        await c.until(lambda: TAINT in c.taints(NODE), "tainted")
        await release(c, "Person:-")
        await c.until(lambda: len(entries(c)) == 1, "one is forgotten")
        assert TAINT in c.taints(NODE)
        await release(c, "Person:Ascend910-3")
        await c.until(lambda: TAINT not in c.taints(NODE), "lifted")


async def test_a_taint_removed_by_hand_stays_away_and_is_told() -> None:
    async with cluster(settings=quick()) as c:
        await isolate(c)
        await c.until(lambda: TAINT in c.taints(NODE), "tainted")
        await c.until(lambda: entries(c)[0]["taint_seen"], "seen")
        await c.untaint(NODE)
        await c.until(lambda: not entries(c), "ended")
        await c.until(lambda: c.events("IsolationOverruled"), "told")
        await c.quiet(within_s=40.0, for_s=60.0)
        assert TAINT not in c.taints(NODE)


async def test_foreign_cordons_and_taints_are_left_alone() -> None:
    async with cluster(settings=quick()) as c:
        foreign = {"key": "their/taint", "effect": "NoSchedule"}
        await c.api.patch("Node", NODE, "", {"spec": {"unschedulable": True, "taints": [foreign]}})
        await isolate(c)
        await c.until(lambda: TAINT in c.taints(NODE), "tainted")
        await release(c, "Person:-")
        await c.until(lambda: TAINT not in c.taints(NODE), "lifted")
        node = c.get("Node", NODE, "")
        assert node is not None
        assert (node["spec"]["unschedulable"], c.taints(NODE)) == (True, {"their/taint"})


@pytest.mark.parametrize("cut", range(1, 5))
async def test_clusterd_is_told_of_a_card_and_told_again_when_it_is_released(cut: int) -> None:
    settings = quick().model_copy(update={"faults": FaultSettings(chip_isolation=ChipIsolation.PUBLIC_FAULT)})
    async with cluster(settings=settings) as c:
        await c.quiet(within_s=40.0, for_s=1.0)
        await c.kill()
        await c.start(settings, cut_after=cut)
        await cut_off(asyncio.ensure_future(isolate(c, device="Ascend910-3")))
        await c.clock.sleep(1.0)
        await c.kill()
        await c.start(settings)
        await c.until(lambda: told(c) == ["occur"], "told")
        await c.quiet(within_s=5.0, for_s=30.0)
        assert TAINT not in c.taints(NODE)
        assert (await c.app.core.fleet.faults()).faults == ()  # our own word is no report
        await release(c, "Person:Ascend910-3")
        await c.until(lambda: told(c) == ["recover"], "told again")
        await c.until(lambda: not entries(c), "forgotten")
        await c.quiet(within_s=5.0, for_s=30.0)


def told(c: Cluster) -> list[str]:
    """What the public fault of the node says, fault by fault."""
    found = c.get("ConfigMap", f"mindie-ha-mark-{NODE}", "mindx-dl")
    message = json.loads(found["data"]["PublicFault"]) if found else {"faults": []}
    assert found is None or found["metadata"]["labels"]["mc-consumer-publicfault"] == "true"
    return [fault["assertion"] for fault in message["faults"]]


async def test_a_dry_run_records_nothing() -> None:
    async with cluster(start=False) as c:
        await c.start(Settings(dry_run=True))
        with pytest.raises(Conflict, match="dry-run"):
            await isolate(c)
        assert not entries(c)


async def test_nodes_and_entries_that_are_not_there_are_named() -> None:
    async with cluster(settings=quick()) as c:
        with pytest.raises(NotFound, match="there is no node nowhere"):
            await c.app.isolations.isolate("nowhere", device="", text="x", person="ann", for_s=None)
        with pytest.raises(NotFound, match="there is no node nowhere"):
            await release(c, "Person:-", node="nowhere")
        with pytest.raises(NotFound, match="has no isolation Person:-"):
            await release(c, "Person:-")


async def test_a_node_that_fails_again_and_again_stays_isolated_until_released() -> None:
    settings = quick().model_copy(update={"faults": FaultSettings(manual_threshold=2, release_after_s=5.0)})
    async with cluster(settings=settings, nodes=8) as c:
        victim = await fail_under(c, closed=1)
        await c.until(lambda: not entries(c, victim), "released")
        await cordon_idle(c, but=victim)
        await fail_under(c, closed=2)
        assert victim in nodes_of(c)  # the only one left
        assert await fail_under(c, closed=3, node=victim) == victim
        await c.until(lambda: c.events("IsolationManual"), "manual")
        await c.clock.sleep(600.0)
        assert [one["id"] for one in entries(c, victim)] == ["Repeated:-"]
        assert TAINT in c.taints(victim)
        await release(c, "Repeated:-", node=victim)
        await c.until(lambda: TAINT not in c.taints(victim), "lifted")
        await c.quiet(within_s=5.0, for_s=60.0)


async def fail_under(c: Cluster, *, closed: int, node: str = "") -> str:
    """Let a node under the instance be lost until the instance is elsewhere, then come back; the node."""
    node = node or c.node_of(f"{P0}-master-0")
    await c.world.set_faults(node, [{"node": "NotReady"}])
    await c.until(lambda: entries(c, node), "isolated", deadline_s=60.0)
    if closed == 3:
        await uncordon_all(c)
    await c.until(lambda: node not in nodes_of(c) and len(nodes_of(c)) == 2, "elsewhere", deadline_s=200.0)
    await c.world.heal(node)
    await c.recovered(P0, closed=closed)
    return node


def nodes_of(c: Cluster) -> set[str]:
    """Where the instance's pods are."""
    return {pod["spec"]["nodeName"] for pod in c.pods(P0).values() if pod["spec"].get("nodeName")}


async def cordon_idle(c: Cluster, *, but: str) -> None:
    """Leave the scheduler one free node."""
    used = {pod["spec"].get("nodeName") for name, pod in c.pods().items() if "-server-" in name}
    for node in c.all("Node", ""):
        name = node["metadata"]["name"]
        if name not in used and name != but:
            await c.api.patch("Node", name, "", {"spec": {"unschedulable": True}})


async def uncordon_all(c: Cluster) -> None:
    """Give everything back."""
    for node in c.all("Node", ""):
        await c.api.patch("Node", node["metadata"]["name"], "", {"spec": {"unschedulable": None}})
