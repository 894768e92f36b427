"""The lists that ClusterD fuses, as input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindie_ha.intake import cluster_infos
from mindie_ha.intake.code_tables import defaults
from mindie_ha.model.errors import InputError

SAMPLES = Path(__file__).parent.parent / "data" / "faults"
RESOURCE = "huawei.com/Ascend910"


def devices(text: str) -> cluster_infos.Entries[cluster_infos.DeviceInfo]:
    return cluster_infos.devices(text, where="shard", now_s=1.0, tables=defaults())


def public(name: str, code: str) -> dict[str, object]:
    return {
        "fault_type": "PublicFault",
        "npu_name": name,
        "fault_level": "SeparateNPU",
        "fault_code": code,
        "fault_time_and_level_map": {code: {"fault_time": 1739866717, "fault_level": "SeparateNPU"}},
    }


def chip(name: str) -> dict[str, object]:
    return {
        "fault_type": "CardUnhealthy",
        "npu_name": name,
        "fault_level": "PreSeparateNPU",
        "fault_code": "4C1F8608",
        "fault_time_and_level_map": {"4C1F8608": {"fault_time": 1, "fault_level": "PreSeparateNPU"}},
    }


def one(faults: list[dict[str, object]], unhealthy: str) -> str:
    listed = {f"{RESOURCE}-Fault": json.dumps(faults), f"{RESOURCE}-Unhealthy": unhealthy}
    return json.dumps({"mindx-dl-deviceinfo-n1": {"DeviceList": listed, "UpdateTime": 7}})


def test_the_sample() -> None:
    found = devices((SAMPLES / "cluster_info_device_two_nodes.json").read_text())
    assert set(found.nodes) == {"kwok-node-0", "kwok-node-1001"}
    assert not found.refused
    assert not found.findings
    assert all(not info.faults for info in found.nodes.values())


@pytest.mark.parametrize(
    ("numbers", "unhealthy", "facts"),
    [
        pytest.param([0, 1], "0,1,5", {0: 1, 1: 1, 5: 1}, id="V68-147"),
        pytest.param([5, 0], "0,5", {0: 1, 5: 2}, id="V69-147"),
    ],
)
def test_public_faults_are_merged_with_those_of_the_chips(
    numbers: list[int], unhealthy: str, facts: dict[int, int]
) -> None:
    faults = [chip("Ascend910-5"), *(public(f"Ascend910-{number}", "010001001") for number in numbers)]
    names = ",".join(f"Ascend910-{number}" for number in unhealthy.split(","))
    info = devices(one(faults, names)).nodes["n1"]
    assert info.report.unhealthy == set(names.split(","))
    assert {fault.device: len(fault.details) for fault in info.faults} == {
        f"Ascend910-{number}": count for number, count in facts.items()
    }
    times = {fact.told_at_s for fault in info.faults for fact in fault.details if fact.family == "public"}
    assert times == {1739866717.0}


def test_manual_isolation_shows_as_a_fault_without_code() -> None:
    """V82, 147."""
    manual = {"fault_type": "CardUnhealthy", "npu_name": "Ascend910-0", "fault_code": ""}
    manual["fault_level"] = "ManuallySeparateNPU"
    (fault,) = devices(one([{**manual}], "Ascend910-0")).nodes["n1"].faults
    assert (fault.acts, fault.level, fault.codes) == (True, "ManuallySeparateNPU", ("ManuallySeparateNPU",))


def test_an_empty_value_is_no_data_and_no_error() -> None:
    for read in (cluster_infos.devices, cluster_infos.switches, cluster_infos.boards):
        found = read("", where="shard", now_s=1.0, tables=defaults())
        assert not found.nodes
        assert not found.refused


def test_a_bad_entry_hurts_only_itself() -> None:
    text = json.dumps(
        {
            "mindx-dl-deviceinfo-n1": {"DeviceList": {f"{RESOURCE}-Unhealthy": "Ascend910-1"}},
            "mindx-dl-deviceinfo-n2": {"DeviceList": {f"{RESOURCE}-Unhealthy": "not a name"}},
            "mindx-dl-deviceinfo-n3": {"DeviceList": {}},
            "mindx-dl-deviceinfo-": {"DeviceList": {RESOURCE: ""}},
            "mindx-dl-nodeinfo-n4": {"FaultDevList": []},
            "mindx-dl-deviceinfo-n5": 7,
        }
    )
    found = devices(text)
    assert set(found.nodes) == {"n1"}
    assert len(found.refused) == 5


def test_the_outer_key_counts_and_a_disagreement_is_named() -> None:
    """039."""
    text = json.dumps(
        {
            "mindx-dl-nodeinfo-n1": {
                "FaultDevList": [
                    {
                        "DeviceType": "PSU",
                        "DeviceId": 4,
                        "FaultCode": ["0300000D"],
                        "FaultLevel": "NotHandleFault",
                    }
                ],
                "NodeStatus": "Healthy",
                "CmName": "mindx-dl-nodeinfo-n2",
            },
            "mindx-dl-deviceinfo-n3": {"NodeStatus": "UnHealthy", "CmName": "mindx-dl-nodeinfo-n3"},
        }
    )
    found = cluster_infos.boards(text, where="cluster-info-node-cm", now_s=1.0, tables=defaults())
    assert [(node, trouble.faults[0].acts) for node, trouble in found.nodes.items()] == [("n1", False)]
    assert len(found.findings) == len(found.refused) == 1


def test_a_filtered_switch_may_carry_the_spelling_of_chips() -> None:
    text = json.dumps(
        {
            "mindx-dl-switchinfo-n1": {
                "FaultCode": [],
                "FaultLevel": "NotHandleFault",
                "NodeStatus": "Healthy",
            },
            "mindx-dl-switchinfo-n2": {"FaultCode": None, "NodeStatus": ""},
        }
    )
    found = cluster_infos.switches(text, where="shard", now_s=1.0, tables=defaults())
    assert found.nodes["n1"] is not None
    assert not found.nodes["n1"].faults
    assert found.nodes["n2"] is None


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(InputError):
        devices("[]")
