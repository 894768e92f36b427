"""What faults mean on a whole cluster: one cause shown twice, silence windows, links, flaps, late reports."""

from __future__ import annotations

import json

import pytest

from mindie_ha.intake.silences import CODES
from mindie_ha.model.settings import FaultSettings
from tools.soak.judges import TAINT

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, cluster, quick, small_service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
MASTER, WORKER = f"{P0}-master-0", f"{P0}-worker-0"
REQUEST = {"device": "Ascend910-2", "code": "80C98009", "level": "RestartRequest"}
LINK = {"device": "Ascend910-2", "code": "81078603", "level": "PreSeparateNPU", "network": True}
TRIGGER = {"device": "Ascend910-2", "code": "8C1F860B", "level": "NotHandleFault"}
SICK = {"device": "Ascend910-2", "code": "81A3880C", "level": "SubHealthFault"}


def spent(c: Cluster) -> int:
    return int(c.ledger(P0).get("software_retries_spent", 0))


async def test_a_lost_node_and_its_card_are_one_recovery() -> None:
    async with cluster(settings=quick()) as c:
        node = c.node_of(MASTER)
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: c.ledger(P0)["recovery"], "a recovery")
        await c.world.set_faults(node, [CHIP, NOT_READY])
        closed = await c.recovered(P0)
        await c.clock.sleep(60)
        assert closed["intent"]["cause"] == "ChipUnhealthy"
        assert c.ledger(P0)["epoch"] == 1
        assert spent(c) == 0


async def test_a_marked_node_and_its_card_are_one_recovery() -> None:
    async with cluster(settings=quick()) as c:
        node = c.node_of(MASTER)
        body = {"metadata": {"annotations": {"NodeHealthyStatus": "UnHealthy"}}}
        await c.api.patch("Node", node, "", body)
        await c.world.set_faults(node, [CHIP])
        await c.recovered(P0)
        await c.clock.sleep(60)
        assert c.ledger(P0)["epoch"] == 1


async def test_a_fault_that_heals_in_its_window_deletes_nothing() -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids()
        node = c.node_of(MASTER)
        await c.world.set_faults(node, [REQUEST])
        await c.clock.sleep(50)
        await c.world.heal(node)
        await c.clock.sleep(120)
        assert c.uids() == before


async def test_a_fault_that_outlives_its_window_acts_when_it_ends() -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids(P0)
        set_s = c.clock.wall()
        await c.world.set_faults(c.node_of(MASTER), [REQUEST])
        await c.clock.sleep(55)
        assert c.uids(P0) == before
        closed = await c.recovered(P0)
        assert 60 <= closed["opened_at_s"] - set_s < 66
        assert not set(before.values()) & set(c.uids(P0).values())


async def test_a_link_alone_never_deletes_and_with_its_trigger_it_does() -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids()
        node = c.node_of(MASTER)
        await c.world.set_faults(node, [LINK])
        await c.clock.sleep(60)
        assert c.uids() == before
        await c.world.set_faults(node, [LINK, TRIGGER])
        closed = await c.recovered(P0)
        assert closed["intent"]["cause"] == "CorrelatedFaults"
        await c.clock.sleep(400)
        assert c.ledger(P0)["epoch"] == 1, "what met before the new pods stood does not hit them"


@pytest.mark.parametrize("strategy", ["ignore", "hotSwitch", "nonsense", "forceExit"])
async def test_sub_health_follows_the_label(strategy: str) -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids()
        await c.label_job(P0, subHealthyStrategy=strategy)
        await c.world.set_faults(c.node_of(MASTER), [SICK])
        if strategy == "forceExit":
            await c.recovered(P0)
            return
        await c.clock.sleep(60)
        assert c.uids() == before
        told = [
            event["reason"]
            for event in c.events()
            if "Strategy" in event["reason"] or "Hot" in event["reason"]
        ]
        expected = {
            "ignore": [],
            "hotSwitch": ["HotSwitchNotServed"],
            "nonsense": ["SubHealthStrategyUnknown"],
        }
        assert told == expected[strategy]


async def test_a_fault_while_the_pods_are_pending_keeps_them_off_the_card() -> None:
    async with cluster(start=False, service=()) as c:
        await c.start(quick())
        await c.world.set_faults("node-0", [CHIP])
        await c.clock.sleep(10)
        await c.apply(small_service())
        await c.serving()
        assert not c.judge.deleted
        held = {
            (pod["spec"]["nodeName"], card)
            for pod in c.pods().values()
            for card in pod["metadata"]["annotations"].get("huawei.com/AscendReal", "").split(",")
        }
        assert ("node-0", "Ascend910-2") not in held


async def test_073_a_node_that_flaps_deletes_nothing_and_is_told_once() -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids()
        node = c.node_of(MASTER)
        for _ in range(5):
            await c.world.set_faults(node, [NOT_READY])
            await c.clock.sleep(8)
            await c.world.heal(node)
            await c.clock.sleep(20)
        assert c.uids() == before
        (event,) = c.events("NodeFlaps")
        assert node in str(event)
        assert event.get("count", 1) == 1


async def test_055_a_late_report_about_a_node_that_the_pod_left_hits_nobody() -> None:
    async with cluster(settings=quick()) as c:
        left = c.node_of(MASTER)
        await c.world.set_faults(left, [CHIP])
        await c.recovered(P0)
        await c.until(lambda: left not in {c.node_of(name) for name in c.pods(P0)}, "p0 elsewhere")
        running = c.uids()
        await c.world.set_faults(left, [CHIP, {**CHIP, "code": "80C98000"}])
        await c.clock.sleep(60)
        assert c.uids() == running
        assert c.ledger(P0)["epoch"] == 1


async def test_a_node_whose_report_is_too_old_is_a_condition_and_no_fault() -> None:
    settings = quick().model_copy(update={"faults": FaultSettings(report_stale_s=100.0)})
    async with cluster(settings=settings) as c:  # an unchanged report is written every 300 s
        before = c.uids()
        node = c.node_of(MASTER)
        await c.until(lambda: c.events("NodeUnreported"), "told", deadline_s=200, every_s=5.0)
        assert c.uids() == before
        shown = [text for report in c.app.reports() for one in report.workloads for text in one.notices]
        assert any(f"node {node} is unreported" in text for text in shown)


async def test_049_a_bad_silence_annotation_is_told() -> None:
    async with cluster(settings=quick()) as c:
        body = {"metadata": {"annotations": {CODES: "80E01801:90000"}}}
        await c.api.patch("AscendJob", P0, NAMESPACE, body)
        await c.until(lambda: c.events("SilenceWindowRefused"), "told")
        assert not c.judge.deleted


async def test_085_a_card_that_a_clusters_own_rule_names_stays_isolated_over_a_restart() -> None:
    rule = {"EventId": ["80C98000"], "TimeWindow": 86400, "Times": 2, "FaultHandling": "ManuallySeparateNPU"}
    text = json.dumps({"FaultFrequency": [rule]})
    often = {"device": "Ascend910-2", "code": "80C98000", "level": "NotHandleFault"}
    async with cluster(settings=quick()) as c:
        meta = {"name": "mindx-dl-fault-config", "namespace": "kube-system"}
        await c.apply(
            [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": meta,
                    "data": {"faultCustomization.json": text},
                }
            ]
        )
        before = c.uids()
        node = c.node_of(MASTER)
        await c.world.set_faults(node, [often])
        await c.clock.sleep(60)
        await c.world.heal(node)
        await c.clock.sleep(60)
        assert c.uids() == before
        await c.kill()
        await c.start(quick())
        await c.world.set_faults(node, [often])
        await c.recovered(P0)
        await c.until(lambda: c.events("IsolationManual"), "people are told")
        await c.world.heal(node)
        await c.clock.sleep(900)
        assert TAINT in c.taints(node), "only a person takes it back"


async def test_a_card_whose_code_a_rule_raised_is_kept_free_while_the_code_is_there() -> None:
    rule = {"EventId": ["80C98000"], "FaultTimeout": 20, "RecoverTimeout": 60, "FaultHandling": "SeparateNPU"}
    lasts = {"device": "Ascend910-2", "code": "80C98000", "level": "NotHandleFault"}
    meta = {"name": "mindx-dl-fault-config", "namespace": "kube-system"}
    data = {"faultCustomization.json": json.dumps({"FaultDuration": [rule]})}
    async with cluster(settings=quick()) as c:
        await c.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}])
        node = c.node_of(MASTER)
        set_s = c.clock.wall()
        await c.world.set_faults(node, [lasts])
        closed = await c.recovered(P0)
        assert 20 < closed["opened_at_s"] - set_s < 25
        await c.clock.sleep(900)
        assert TAINT in c.taints(node)
        assert c.ledger(P0)["epoch"] == 1
        await c.world.heal(node)
        await c.until(lambda: TAINT not in c.taints(node), "released", deadline_s=400)
