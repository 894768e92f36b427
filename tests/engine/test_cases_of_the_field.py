"""Failures that the field has seen, by their number, where they need a whole cluster to show."""

from __future__ import annotations

import asyncio

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.model.settings import FaultSettings
from mindie_ha.sim.ms.receivers import PushReceiver
from tools.soak.judges import TAINT

from .clusters import CHIP, Cluster, Object, cluster, listening, quick

P0 = "mindie-server-p0"
MASTER = f"{P0}-master-0"


def cards(c: Cluster, node: str) -> Object:
    """The device report of a node."""
    found = c.get("ConfigMap", f"mindx-dl-deviceinfo-{node}", "kube-system")
    assert found is not None
    return found


@pytest.mark.looptime
async def test_053_a_flood_of_device_reports_restarts_an_instance_once() -> None:
    """200 updates in 10 s, healthy and unhealthy in turn: few looks, one restart, the last state wins."""
    async with cluster(settings=quick()) as c:
        node = c.node_of(MASTER)
        well = cards(c, node)["data"]["DeviceInfoCfg"]
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: cards(c, node)["data"]["DeviceInfoCfg"] != well, "reported")
        sick = cards(c, node)["data"]["DeviceInfoCfg"]
        before = len(c.records)
        for turn in range(200):
            body = {"data": {"DeviceInfoCfg": well if turn % 2 else sick}}
            await c.api.patch("ConfigMap", f"mindx-dl-deviceinfo-{node}", "kube-system", body)
            await c.clock.sleep(0.05)
        await c.world.heal(node)
        await c.recovered(P0)
        await c.clock.sleep(60)
        ledger = c.ledger(P0)
        assert (ledger["epoch"], len(ledger["closed"])) == (1, 1)
        assert len(ledger["closed"][0]["targets"]) == 2
        assert len(c.records) - before < 60


@pytest.mark.looptime
async def test_085_a_card_that_fails_again_and_again_is_avoided_and_burns_no_retry() -> None:
    """It heals after each restart; the third time its node stays isolated until a person says otherwise."""
    settings = quick().model_copy(update={"faults": FaultSettings(manual_threshold=3)})
    async with cluster(settings=settings, nodes=4, lag_s=(4.0, 4.0)) as c:  # no room but the old one
        node = c.node_of(MASTER)
        for closed in (1, 2):
            await fail_and_heal(c, node)
            await c.recovered(P0, closed=closed)
            assert c.node_of(MASTER) == node
        await fail_and_heal(c, node)
        await c.until(lambda: c.events("IsolationManual"), "manual")
        await c.clock.sleep(600)
        assert TAINT in c.taints(node)
        assert c.state(P0) == "waiting"
        await c.app.isolations.release(node, f"Repeated:{CHIP['device']}", person="ann")
        await c.recovered(P0, closed=3)
        assert c.ledger(P0)["software_retries_spent"] == 0


async def fail_and_heal(c: Cluster, node: str) -> None:
    """The card fails, the instance is stopped and finds no room, the card is well again."""
    await c.world.set_faults(node, [CHIP])
    await c.until(lambda: c.state(P0) == "waiting", "waits for room", deadline_s=60.0)
    await c.world.heal(node)


@pytest.mark.looptime
async def test_149_a_gang_that_waited_for_an_hour_is_placed_when_a_node_returns() -> None:
    async with cluster(settings=quick(), nodes=4) as c:
        node = c.node_of(MASTER)
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: c.state(P0) == "waiting", "waits for capacity", deadline_s=60.0)
        uids = c.uids(P0)
        await c.clock.sleep(3600)
        assert c.uids(P0) == uids  # waiting deletes nothing
        assert c.ledger(P0)["recovery"]["condition"] == "WaitingForCapacity"
        await c.world.heal(node)
        await c.recovered(P0)
        assert c.uids(P0) == uids


async def test_101_a_table_that_could_not_be_told_is_told_after_our_restart() -> None:
    """The push fails, we restart before the retry: the receiver ends with the right table all the same."""
    async with PushReceiver(clock=LoopClock(speed=20.0)) as receiver:
        receiver.fail_next(1000)
        settings = listening(push_targets=(receiver.url,))
        async with cluster(settings=settings, speed=20.0, serve=True) as c:
            await c.until(lambda: receiver.pushes, "tried")
            await c.kill()
            assert receiver.received == []
            receiver.fail_next(0)
            await c.start(settings)
            async with asyncio.timeout(10):
                await receiver.wait_for(1)
            assert receiver.received[-1].body.decode() == c.table()["text"]
