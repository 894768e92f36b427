"""From an AscendJob to a running instance, through loss and back, all actors together."""

from __future__ import annotations

import pytest

from mindie_ha.sim.actors.documents import annotations_of, condition, labels_of, text
from mindie_ha.sim.actors.machines import a3_nodes

from .conftest import NAMESPACE, Stage, stage

pytestmark = pytest.mark.looptime

CHIP = {"device": "Ascend910-3", "code": "80E18005", "level": "SeparateNPU"}


async def test_a_job_becomes_running_pods_with_a_completed_table() -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        assert set(s.pods("p0")) == {"p0-master-0", "p0-worker-0"}
        assert s.state("p0") == "Running"
        table = s.table("p0")
        assert (table["version"], table["server_count"]) == ("1.0", "2")
        ranks = [d["rank_id"] for server in table["server_list"] for d in server["device"]]
        assert ranks == [str(rank) for rank in range(16)]
        for server, pod in zip(table["server_list"], s.pods("p0").values(), strict=True):
            assert server["container_ip"] == pod["status"]["podIP"]
            assert server["server_id"] == server["host_ip"] == pod["status"]["hostIP"]
            assert server["container_ip"] not in ("127.0.0.1", server["host_ip"])


async def test_pods_carry_rank_round_group_and_devices() -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        worker = s.pods("p0")["p0-worker-0"]
        notes, found = annotations_of(worker), labels_of(worker)
        assert (notes["hccl/rankIndex"], found["version"]) == ("1", "0")
        group = s.world.cache.get("PodGroup", notes["scheduling.k8s.io/group-name"], NAMESPACE)
        assert group is not None
        assert (group["status"]["phase"], group["spec"]["minMember"]) == ("Running", 2)
        assert notes["huawei.com/AscendReal"].count("Ascend910-") == 8
        assert notes["distributed-job"] == "true"


async def test_recreated_pods_avoid_the_card_once_the_list_shows_it() -> None:
    async with stage(lag_s=2) as s:
        await s.start("p0", cards=8)
        bad_node = s.cards("p0")["p0-master-0"][0]
        await s.world.set_faults(bad_node, [CHIP])
        await s.wait(lambda: '-Unhealthy":"Ascend910-3"' in _list(s), "list shows the card")
        old = await s.kill("p0", grace_s=0)
        await s.wait(lambda: s.is_running("p0", 1) and not s.uids("p0") & old, "new pods")
        assert s.cards("p0")["p0-master-0"][0] != bad_node
        await s.wait(lambda: s.table("p0")["status"] == "completed", "new table")
        assert labels_of(s.pods("p0")["p0-master-0"])["version"] == "1"


async def test_a_pod_recreated_before_the_list_shows_the_card_lands_on_it_again() -> None:
    async with stage(lag_s=5) as s:
        await s.start("p0", cards=8)
        bad_node = s.cards("p0")["p0-master-0"][0]
        await s.world.set_faults(bad_node, [CHIP])
        old = await s.kill("p0", grace_s=0)
        await s.wait(lambda: s.is_running("p0", 1) and not s.uids("p0") & old, "new pods")
        node, cards = s.cards("p0")["p0-master-0"]
        assert node == bad_node
        assert "Ascend910-3" in cards


async def test_losing_pods_makes_the_table_initializing_with_the_old_servers_inside() -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        old = s.table("p0")["server_list"]
        await s.kill("p0")
        await s.wait(lambda: s.table("p0")["status"] == "initializing", "table falls back")
        assert s.table("p0")["server_list"] == old
        await s.wait(lambda: s.table("p0")["status"] == "completed", "table completes")
        assert s.table("p0")["server_list"] != old


async def test_nothing_is_placed_while_a_pod_of_the_job_terminates() -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        node = s.cards("p0")["p0-worker-0"][0]
        await s.world.set_faults(node, [{"node": "NotReady"}])
        old = await s.kill("p0")
        await s.wait(
            lambda: "p0-master-0" in s.pods("p0") and not _same(s, "p0-master-0", old), "master again"
        )
        await s.clock.sleep(120)
        assert s.pods("p0")["p0-worker-0"]["metadata"].get("deletionTimestamp"), "nobody confirmed"
        assert not text(s.pods("p0")["p0-master-0"], "spec", "nodeName")
        assert "not ready" in text(condition(s.pods("p0")["p0-master-0"], "PodScheduled"), "message")
        await s.api.delete("Pod", "p0-worker-0", NAMESPACE, grace_s=0)
        await s.wait(lambda: s.is_running("p0", 2), "all pods elsewhere")
        assert node not in {placed for placed, _ in s.cards("p0").values()}


async def test_a_lost_node_gets_its_taints_and_loses_them_when_it_heals() -> None:
    async with stage() as s:
        await s.world.set_faults("node-1", [{"node": "NotReady"}])
        await s.wait(lambda: _ready(s, "node-1") == "Unknown" and len(_taints(s, "node-1")) == 2, "lost")
        assert {t["effect"] for t in _taints(s, "node-1")} == {"NoSchedule", "NoExecute"}
        await s.world.heal("node-1")
        await s.wait(lambda: _ready(s, "node-1") == "True" and not _taints(s, "node-1"), "healed")


async def test_pods_are_evicted_after_300_s_and_stay_terminating() -> None:
    async with stage() as s:
        await s.start("p0")
        node = s.cards("p0")["p0-master-0"][0]
        await s.world.set_faults(node, [{"node": "NotReady"}])
        await s.clock.sleep(290)
        assert "deletionTimestamp" not in s.pods("p0")["p0-master-0"]["metadata"]
        await s.wait(lambda: "deletionTimestamp" in s.pods("p0")["p0-master-0"]["metadata"], "evicted")
        await s.clock.sleep(600)
        assert "deletionTimestamp" in s.pods("p0")["p0-master-0"]["metadata"]
        await s.world.heal(node)
        await s.wait(lambda: s.is_running("p0", 1), "confirmed and created again")


async def test_a3_instance_stays_in_one_super_pod() -> None:
    async with stage(nodes=a3_nodes(4, nodes_per_super_pod=2)) as s:
        await s.start(
            "d0", workers=1, cards=16, accelerator="module-a3-16-super-pod", annotations={"sp-block": "32"}
        )
        table = s.table("d0")
        assert table["version"] == "1.2"
        [super_pod] = table["super_pod_list"]
        assert len(super_pod["server_list"]) == 2
        devices = [d["super_device_id"] for server in table["server_list"] for d in server["device"]]
        assert len(set(devices)) == 32
        nodes = {node for node, _ in s.cards("d0").values()}
        assert nodes in ({"node-0", "node-1"}, {"node-2", "node-3"})


def _list(s: Stage) -> str:
    config = s.world.cache.get("ConfigMap", "cluster-info-device-0", "mindx-dl") or {}
    return text(config, "data", "cluster-info-device-0")


def _same(s: Stage, pod: str, uids: set[str]) -> bool:
    return s.pods("p0")[pod]["metadata"]["uid"] in uids


def _ready(s: Stage, node: str) -> str:
    return text(condition(s.world.cache.get("Node", node) or {}, "Ready"), "status")


def _taints(s: Stage, node: str) -> list[dict[str, str]]:
    return (s.world.cache.get("Node", node) or {}).get("spec", {}).get("taints") or []
