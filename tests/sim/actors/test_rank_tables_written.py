"""The operator's `hccl.json`, byte for byte and by rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mindie_ha.sim.actors.ascendjobs import read_job
from mindie_ha.sim.actors.hccl_tables import build, initializing, version_of
from mindie_ha.sim.actors.machines import NodeModel, a2_nodes, a3_nodes, node_object
from mindie_ha.sim.actors.schedulers import configuration
from mindie_ha.sim.client import Object

from .conftest import instance

A2, A3 = a2_nodes(2), a3_nodes(4, nodes_per_super_pod=2)


def job(*, training: bool = False, **more: Any) -> Any:
    body = instance("p0", workers=1, **more)[1][1]
    body["metadata"]["uid"] = "job-uid"
    if training:
        del body["metadata"]["labels"]["jobID"]
    return read_job(body)


def member(rank: int, model: NodeModel, cards: tuple[str, ...], **notes: str) -> Object:
    node = node_object(model)
    node["status"] = {"addresses": [{"type": "InternalIP", "address": f"127.1.0.{model.number}"}]}
    pod: Object = {
        "metadata": {"name": f"p{rank}", "uid": f"uid-{rank}"},
        "spec": {
            "nodeName": model.name,
            "containers": [{"resources": {"requests": {"huawei.com/Ascend910": len(cards)}}}],
        },
        "status": {"podIP": f"127.9.0.{rank}"},
    }
    found = configuration(pod, node, cards)
    pod["metadata"]["annotations"] = {
        "hccl/rankIndex": str(rank),
        "ascend.kubectl.kubernetes.io/ascend-910-configuration": found,
        **notes,
    }
    return pod


def test_one_pod_per_node_is_written_in_the_operators_key_order() -> None:
    pods = [member(1, A2[1], ("Ascend910-0",)), member(0, A2[0], ("Ascend910-0", "Ascend910-1")[:1])]
    assert build(job(), pods, version="1.0") == (
        '{"status":"completed","server_list":['
        '{"device":[{"device_id":"0","device_ip":"29.0.0.1","rank_id":"0"}],"server_id":"127.1.0.0",'
        '"host_ip":"127.1.0.0","container_ip":"127.9.0.0"},'
        '{"device":[{"device_id":"0","device_ip":"29.0.1.1","rank_id":"1"}],"server_id":"127.1.0.1",'
        '"host_ip":"127.1.0.1","container_ip":"127.9.0.1"}],"server_count":"2","version":"1.0"}'
    )


def test_pods_that_share_a_node_are_told_apart_by_uid() -> None:
    pods = [
        member(0, A2[0], ("Ascend910-0", "Ascend910-1")),
        member(1, A2[0], ("Ascend910-2", "Ascend910-10")),
    ]
    table = json.loads(build(job(), pods, version="1.0") or "")
    assert [server["server_id"] for server in table["server_list"]] == ["uid-0", "uid-1"]
    assert [d["device_id"] for d in table["server_list"][1]["device"]] == ["2", "10"]
    assert [d["rank_id"] for s in table["server_list"] for d in s["device"]] == ["0", "1", "2", "3"]


def test_hardware_type_is_copied_for_mindie_jobs_only() -> None:
    pods = [member(0, A2[0], ("Ascend910-0",), **{"mind-cluster/hardware-type": "800I-A2"})]
    [server] = json.loads(build(job(), pods, version="1.0") or "")["server_list"]
    assert server["hardware_type"] == "800I-A2"
    [server] = json.loads(build(job(training=True), pods, version="1.0") or "")["server_list"]
    assert "hardware_type" not in server


def test_an_unusable_annotation_builds_nothing() -> None:
    pod = member(0, A2[0], ("Ascend910-0",))
    pod["metadata"]["annotations"]["ascend.kubectl.kubernetes.io/ascend-910-configuration"] = (
        '{"devices": null}'
    )
    assert build(job(), [pod], version="1.0") is None


def test_the_old_servers_stay_inside_a_table_that_fell_back() -> None:
    old = '{"status":"completed","server_list":[{"device":[]}],"server_count":"1","version":"1.0"}'
    assert initializing(old, version="1.0") == old.replace("completed", "initializing")


@pytest.mark.parametrize(
    ("annotations", "accelerator", "expected"),
    [
        pytest.param({}, "module-910b-8", "1.0", id="A2"),
        pytest.param({}, "module-a3-16-super-pod", "1.2", id="A3-by-selector"),
        pytest.param({"sp-block": "16"}, "module-910b-8", "1.2", id="sp-block"),
        pytest.param(
            {"huawei.com/schedule_policy": "chip2-node16", "sp-block": "16"}, "x", "1.0", id="policy-first"
        ),
        pytest.param({"huawei.com/schedule_policy": "chip2-node16-sp"}, "x", "1.2", id="policy-sp"),
    ],
)
def test_version(annotations: dict[str, str], accelerator: str, expected: str) -> None:
    assert version_of(job(annotations=annotations, accelerator=accelerator)) == expected


def groups(found: Any, pods: list[Object]) -> list[tuple[str, int]]:
    table = json.loads(build(found, pods, version="1.2") or "")
    return [(entry["super_pod_id"], len(entry["server_list"])) for entry in table["super_pod_list"]]


def test_super_pods_of_a_mindie_job_are_the_physical_ones() -> None:
    pods = [member(i, A3[i], ("Ascend910-0",), **{"super-pod-id": str(A3[i].super_pod)}) for i in (3, 0, 1)]
    assert groups(job(), pods) == [("0", 2), ("1", 1)]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        pytest.param("0", [("0", 4)], id="0"),
        pytest.param("2", [("0", 1), ("1", 1), ("2", 1), ("3", 1)], id="2"),
        pytest.param("4", [("0", 2), ("1", 2)], id="4"),
        pytest.param("6", [("0", 3), ("1", 1)], id="6"),
        pytest.param("8", [("0", 4)], id="8"),
    ],
)
def test_super_pods_of_a_training_job_are_logical(block: str, expected: list[tuple[str, int]]) -> None:
    pods = [member(i, A3[i], ("Ascend910-0", "Ascend910-1")) for i in range(4)]
    assert groups(job(training=True, annotations={"sp-block": block}), pods) == expected


def test_super_device_ids_are_strings_and_only_in_v12() -> None:
    pods = [member(0, A3[1], ("Ascend910-3",))]
    [server] = json.loads(build(job(), pods, version="1.2") or "")["server_list"]
    assert server["device"][0]["super_device_id"] == str(16 + 3)
    [server] = json.loads(build(job(), pods, version="1.0") or "")["server_list"]
    assert "super_device_id" not in server["device"][0]
