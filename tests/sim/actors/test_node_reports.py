"""Faults of switches and boards, and nodes that go and return: what the embedded cluster shows of them."""

from __future__ import annotations

import json

import pytest

from mindie_ha.sim.actors.documents import condition, load_json, mapping, text
from mindie_ha.sim.actors.faults import BoardFault, SwitchFault, parse_faults
from mindie_ha.sim.actors.machines import a3_nodes
from mindie_ha.sim.actors.nodeds import check_code, node_info
from mindie_ha.sim.actors.switchinfos import switch_info
from mindie_ha.sim.client import Object

from .conftest import Stage, stage

PORT_DOWN = {"switch": "[0x08520003,na,npu,na]", "level": "Separate", "chip": 3, "port": 17}
POWER = {"board": "PSU", "code": "0300000d", "level": "NotHandleFault", "id": 4}
LEAK = {"board": "Leakage Detection Card", "code": "2C000031", "level": "SeparateFault"}


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        pytest.param(
            {"FaultDevList": None, "NodeStatus": ""},
            "4c97cddcb947bd707778eb50b0986a69768afc2ef3e4f351db0b92e9d07d1fed",
            id="V05",
        ),
        pytest.param(
            {"FaultDevList": [], "NodeStatus": "Healthy"},
            "de38ed93b4fcbb7e7314695274a68ccf4aaece2c8fa2df361942d25731584886",
            id="V10",
        ),
    ],
)
def test_check_code_of_a_board_report(info: Object, expected: str) -> None:
    assert check_code(info) == expected


@pytest.mark.parametrize(
    ("levels", "summary", "status"),
    [
        pytest.param([], "", "Healthy", id="none"),
        pytest.param(["NotHandle"], "NotHandle", "Healthy", id="not-handle"),
        pytest.param(["NotHandle", "SubHealthFault"], "SubHealthFault", "SubHealthy", id="sub-health"),
        pytest.param(["RestartRequest", "PreSeparate"], "PreSeparate", "PreSeparate", id="pre-separate"),
        pytest.param(["RestartRequest"], "RestartRequest", "UnHealthy", id="V38"),
        pytest.param(["Separate", "NotHandle"], "Separate", "UnHealthy", id="V33"),
    ],
)
def test_the_gravest_level_of_a_switch_is_its_status(levels: list[str], summary: str, status: str) -> None:
    faults = [SwitchFault("[0x08520003,na,cpu,na]", level, 1, port) for port, level in enumerate(levels)]
    body = json.loads(switch_info(faults, seen=dict.fromkeys(faults, 5), update_time=7))

    assert (body["FaultLevel"], body["NodeStatus"], body["UpdateTime"]) == (summary, status, 7)
    assert len(body["FaultTimeAndLevelMap"]) == len(body["FaultCode"]) == len(levels)
    for element in body["FaultCode"]:
        event = json.loads(element)
        key = f"{event['AssembledFaultCode']}_{event['SwitchChipId']}_{event['SwitchPortId']}"
        assert (event["EventType"], event["PeerPortDevice"], event["AlarmRaisedTime"]) == (0x08520003, 0, 5)
        assert body["FaultTimeAndLevelMap"][key]["fault_level"] in levels


def test_alarms_of_one_part_are_one_device() -> None:
    body = json.loads(
        node_info(
            [
                BoardFault("CPU", "00000011", "PreSeparateFault", 1),
                BoardFault("CPU", "00000001", "SeparateFault", 1),
                BoardFault("PSU", "0300000D", "NotHandleFault", 4),
            ]
        )
    )

    info = body["NodeInfo"]
    found = [(part["DeviceType"], part["FaultCode"], part["FaultLevel"]) for part in info["FaultDevList"]]
    assert found == [
        ("CPU", ["00000001", "00000011"], "SeparateFault"),
        ("PSU", ["0300000D"], "NotHandleFault"),
    ]
    assert info["NodeStatus"] == "UnHealthy"
    assert body["CheckCode"] == check_code(info)
    assert node_info([]) == ""


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        pytest.param({"switch": "0x08520003", "level": "Separate"}, "with a code such as", id="switch-code"),
        pytest.param({**PORT_DOWN, "level": "SeparateNPU"}, "one of NotHandle, SubHealth", id="chip-level"),
        pytest.param({**PORT_DOWN, "port": -1}, '"chip" and "port" between', id="port"),
        pytest.param({**POWER, "board": ""}, 'or "board"', id="no-board"),
        pytest.param({**POWER, "code": "3"}, "8 letters and digits", id="board-code"),
        pytest.param({**POWER, "level": "Separate"}, "SeparateFault", id="switch-level"),
    ],
)
def test_an_entry_with_a_wrong_word_is_reported(entry: Object, problem: str) -> None:
    found = parse_faults(json.dumps([entry, PORT_DOWN, POWER]))

    assert problem in found.problems[0]
    assert found.switches == (SwitchFault("[0x08520003,na,npu,na]", "Separate", 3, 17),)
    assert found.boards == (BoardFault("PSU", "0300000D", "NotHandleFault", 4),)


@pytest.mark.looptime
async def test_a_switch_fault_shows_in_the_report_and_in_the_list_and_goes_again() -> None:
    async with stage(nodes=a3_nodes(2)) as s:
        await s.world.set_faults("node-1", [PORT_DOWN])
        await s.wait(lambda: switch_of(s) == "UnHealthy", "listed")
        assert s.world.cache.get("ConfigMap", "mindx-dl-nodeinfo-node-1", "mindx-dl") is None
        await s.world.heal("node-1")
        await s.wait(lambda: switch_of(s) == "Healthy", "healed")


@pytest.mark.looptime
async def test_a_server_without_a_switch_says_so() -> None:
    async with stage() as s:
        await s.world.set_faults("node-1", [PORT_DOWN])
        await s.clock.sleep(20)
        events, _ = await s.api.list("Event")
        assert [event["message"] for event in events] == ["node-1 has no switch: it is no A3 server"]


@pytest.mark.looptime
async def test_a_board_report_exists_while_there_are_alarms() -> None:
    async with stage() as s:
        await s.world.set_faults("node-1", [POWER])
        await s.wait(lambda: board_of(s) == "Healthy", "a mild alarm")
        await s.world.set_faults("node-1", [POWER, LEAK])
        await s.wait(lambda: board_of(s) == "UnHealthy", "a grave alarm")
        await s.world.set_faults("node-1", [{"node": "NotReady"}])
        await s.clock.sleep(20)
        assert board_of(s) == "UnHealthy"  # a lost node cannot take its report back
        await s.world.heal("node-1")
        await s.wait(lambda: board_of(s) == "", "no alarm")


@pytest.mark.looptime
async def test_a_node_that_was_deleted_returns_and_takes_pods_again() -> None:
    async with stage() as s:
        await s.start("p0")
        [(node, _)] = s.cards("p0").values()
        await s.world.delete_node(node)
        await s.wait(lambda: not s.pods("p0") or not s.is_running("p0", 1), "the pod is gone with its node")
        await s.world.return_node(node)
        await s.wait(lambda: is_ready(s, node), "ready again")
        await s.world.return_node(node)  # there already: nothing happens


def switch_of(s: Stage) -> str:
    config = s.world.cache.get("ConfigMap", "cluster-info-switch-0", "mindx-dl") or {}
    body = mapping(load_json(text(config, "data", "cluster-info-switch-0")))
    return text(body, "mindx-dl-switchinfo-node-1", "NodeStatus")


def board_of(s: Stage) -> str:
    config = s.world.cache.get("ConfigMap", "mindx-dl-nodeinfo-node-1", "mindx-dl") or {}
    return text(load_json(text(config, "data", "NodeInfo")), "NodeInfo", "NodeStatus")


def is_ready(s: Stage, node: str) -> bool:
    return text(condition(s.world.cache.get("Node", node) or {}, "Ready"), "status") == "True"
