"""Faults on a node become lists: annotation, Device Plugin, ClusterD."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.sim.actors.deviceinfos import (
    check_code,
    device_info_data,
    device_list,
    read_cluster_devices,
    read_device_info,
    shards,
)
from mindie_ha.sim.actors.documents import load_json, text
from mindie_ha.sim.actors.faults import ChipFault, parse_faults
from mindie_ha.sim.actors.machines import RESOURCE, a2_nodes, a3_nodes
from mindie_ha.sim.actors.switchinfos import switch_info

from .conftest import Stage, stage

CARDS = tuple(f"Ascend910-{index}" for index in range(8))
ALL = ",".join(CARDS)
EMPTY = {f"{RESOURCE}-NetworkUnhealthy": "", f"{RESOURCE}-Unhealthy": ""}


@pytest.mark.parametrize(
    ("listed", "updated", "expected"),
    [
        pytest.param(None, 0, "aaa60c794e2dbec298a2f3c18ea64dea9a1fd2ccdb0cc577b8dfe2c3c5966965", id="V01"),
        pytest.param(
            {RESOURCE: ALL, f"{RESOURCE}-Fault": "[]", **EMPTY},
            1718702470,
            "4f00cf1d220da26a8fdbeb5ba163a751d4b264c48b81d22149257e272ae3b413",
            id="V02",
        ),
        pytest.param(
            {RESOURCE: ALL, **EMPTY},
            1657527526,
            "6b8de396fd9945be231d24720ca66ed950baf0a5972717f335aad7571cb6457a",
            id="V04",
        ),
    ],
)
def test_check_code(listed: dict[str, str] | None, updated: int, expected: str) -> None:
    assert check_code(listed, updated) == expected


@pytest.mark.parametrize(
    ("level", "network", "used", "unhealthy", "unlinked"),
    [
        pytest.param("SeparateNPU", False, True, True, False, id="separate"),
        pytest.param("RestartRequest", False, True, True, False, id="restart-request"),
        pytest.param("NotHandleFault", False, False, False, False, id="not-handle"),
        pytest.param("SubHealthFault", False, False, False, False, id="sub-health"),
        pytest.param("PreSeparateNPU", False, True, False, False, id="pre-separate-in-use"),
        pytest.param("PreSeparateNPU", False, False, True, False, id="pre-separate-free"),
        pytest.param("SeparateNPU", True, False, False, True, id="network"),
        pytest.param("SubHealthFault", True, False, False, True, id="network-sub-health"),
        pytest.param("NotHandleFault", True, False, False, False, id="network-not-handle"),
    ],
)
def test_level_decides_the_list(
    level: str, network: bool, used: bool, unhealthy: bool, unlinked: bool
) -> None:
    fault = ChipFault("Ascend910-3", "80E18005", level, network)
    held = frozenset({"Ascend910-3"} if used else ())
    listed = device_list(CARDS, [fault], used=held, seen={fault: 5})
    assert (listed[f"{RESOURCE}-Unhealthy"] == "Ascend910-3") is unhealthy
    assert (listed[f"{RESOURCE}-NetworkUnhealthy"] == "Ascend910-3") is unlinked
    assert ("Ascend910-3" in listed[RESOURCE].split(",")) is not (used or unhealthy)
    [entry] = json.loads(listed[f"{RESOURCE}-Fault"])
    assert entry["fault_type"] == ("CardNetworkUnhealthy" if network else "CardUnhealthy")
    assert entry["fault_handling"] == entry["fault_level"] == entry["large_model_fault_level"] == level
    assert entry["fault_time_and_level_map"] == {"80E18005": {"fault_time": 5, "fault_level": level}}


def test_codes_of_one_card_are_one_object_with_the_gravest_level() -> None:
    faults = [
        ChipFault("Ascend910-0", "80E18005", "RestartNPU"),
        ChipFault("Ascend910-0", "A8028801", "SeparateNPU"),
    ]
    [entry] = json.loads(device_list(CARDS, faults, used=frozenset(), seen={})[f"{RESOURCE}-Fault"])
    assert (entry["fault_code"], entry["fault_level"]) == ("80E18005,A8028801", "SeparateNPU")
    assert entry["fault_time_and_level_map"]["80E18005"]["fault_level"] == "RestartNPU"


@pytest.mark.parametrize("model", [a2_nodes(1)[0], a3_nodes(1)[0]], ids=["A2", "A3"])
def test_what_the_plugin_writes_is_what_clusterd_reads(model: Any) -> None:
    listed = device_list(model.card_names, [], used=frozenset(), seen={})
    switch = switch_info((), seen={}, update_time=7) if model.is_super_pod else ""
    data = device_info_data(model, listed, update_time=7, switch=switch)
    info = read_device_info(data)
    assert info is not None
    assert (info["DeviceList"], info["SuperPodID"]) == (listed, model.super_pod)
    assert ("SwitchInfoCfg" in data) is model.is_super_pod
    broken = {"DeviceInfoCfg": data["DeviceInfoCfg"].replace("Ascend910-1", "Ascend910-9", 1)}
    assert read_device_info(broken) is None


@pytest.mark.parametrize(
    ("raw", "chips", "not_ready", "problems"),
    [
        pytest.param("", 0, False, 0, id="absent"),
        pytest.param("[]", 0, False, 0, id="empty"),
        pytest.param(
            '[{"device": "Ascend910-3", "code": "80e18005", "level": "SeparateNPU"}]', 1, False, 0, id="chip"
        ),
        pytest.param('[{"node": "NotReady"}]', 0, True, 0, id="node"),
        pytest.param("{", 0, False, 1, id="broken-json"),
        pytest.param('{"node": "NotReady"}', 0, False, 1, id="not-a-list"),
        pytest.param('[null, {"node": "NotReady"}]', 0, True, 1, id="null-among-good-ones"),
        pytest.param('[{"device": 3, "code": 1, "level": null}]', 0, False, 1, id="wrong-types"),
        pytest.param(
            '[{"device": "Ascend910-3", "code": "80E18005", "level": "Bad"}]', 0, False, 1, id="level"
        ),
    ],
)
def test_fault_annotation(raw: str, chips: int, not_ready: bool, problems: int) -> None:
    found = parse_faults(raw)
    assert (len(found.chips), found.not_ready, len(found.problems)) == (chips, not_ready, problems)


@given(
    st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=60), max_size=40), st.integers(90, 400)
)
def test_shards_hold_everything_once_and_respect_the_limit(entries: dict[str, str], limit: int) -> None:
    parts = shards({key: {"v": value} for key, value in entries.items()}, limit=limit)
    found: dict[str, str] = {}
    for part in parts:
        decoded = json.loads(part)
        assert len(part.encode()) <= limit or len(decoded) == 1
        assert not found.keys() & decoded.keys()
        found |= {key: entry["v"] for key, entry in decoded.items()}
    assert found == entries


def test_an_emptied_shard_reads_as_nothing() -> None:
    assert read_cluster_devices(["", '{"mindx-dl-deviceinfo-n": {"DeviceList": {"a": "b"}}}']) == {
        "n": {"a": "b"}
    }


def shown(s: Stage, kind: str) -> str:
    config = s.world.cache.get("ConfigMap", "cluster-info-device-0", "mindx-dl") or {}
    decoded = load_json(text(config, "data", "cluster-info-device-0"))
    return text(decoded, "mindx-dl-deviceinfo-node-1", "DeviceList", f"{RESOURCE}-{kind}")


@pytest.mark.looptime
async def test_the_list_lags_behind_the_plugin_and_heals_again() -> None:
    async with stage(lag_s=4) as s:
        fault = {"device": "Ascend910-3", "code": "80E18005", "level": "SeparateNPU"}
        await s.world.set_faults("node-1", [fault])
        await s.wait(lambda: "80E18005" in _plugin(s), "plugin")
        reported = s.clock.monotonic()
        assert shown(s, "Unhealthy") == ""
        await s.wait(lambda: shown(s, "Unhealthy") == "Ascend910-3", "list")
        assert 3.5 <= s.clock.monotonic() - reported <= 4.5
        await s.world.heal("node-1")
        await s.wait(lambda: shown(s, "Unhealthy") == "", "healed")


@pytest.mark.looptime
async def test_a_malformed_annotation_is_told_once_and_ignored() -> None:
    async with stage() as s:
        await s.api.patch(
            "Node", "node-1", "", {"metadata": {"annotations": {"sim.mindie-ha.io/faults": "[7"}}}
        )
        await s.clock.sleep(60)
        events, _ = await s.api.list("Event")
        told = [event for event in events if event["reason"] == "InvalidFaultAnnotation"]
        assert [event["involvedObject"]["name"] for event in told] == ["node-1"]
        assert shown(s, "Unhealthy") == ""


def _plugin(s: Stage) -> str:
    return text(
        s.world.cache.get("ConfigMap", "mindx-dl-deviceinfo-node-1", "kube-system") or {},
        "data",
        "DeviceInfoCfg",
    )
