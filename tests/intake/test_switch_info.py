"""Switch reports: content vectors and hostile bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mindie_ha.intake import node_troubles, switch_info
from mindie_ha.intake.switch_info import parse, split_key
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Level
from mindie_ha.model.nodes import NodeTrouble

WHERE = "ConfigMap kube-system/mindx-dl-deviceinfo-n0[SwitchInfoCfg]"
LANES = "[0x00f1fef5,155914,npu,na]"
PORT_L2 = "[0x08520003,na,L2,na]"


def event(code: str, chip: int = 0, port: int = 0, **more: object) -> str:
    return json.dumps({"AssembledFaultCode": code, "SwitchChipId": chip, "SwitchPortId": port, **more})


def body(*events: object, status: str = "Healthy", level: str = "", times: object = None) -> str:
    return json.dumps(
        {
            "FaultCode": list(events),
            "FaultLevel": level,
            "UpdateTime": 1763544679,
            "NodeStatus": status,
            "FaultTimeAndLevelMap": {} if times is None else times,
        }
    )


def read(text: str, *, now_s: float = 10.0) -> NodeTrouble:
    trouble = parse("n0", text, where=WHERE, now_s=now_s)
    assert trouble is not None
    return trouble


def test_a_healthy_switch() -> None:
    """V39."""
    assert read(body()).faults == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            '{"FaultCode":null,"FaultLevel":"","UpdateTime":0,"NodeStatus":"","FaultTimeAndLevelMap":null}',
            id="V40",
        ),
        pytest.param("{}", id="nothing"),
    ],
)
def test_no_information_is_no_fault(text: str) -> None:
    assert parse("n0", text, where=WHERE, now_s=1.0) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(body("EventType", status="UnHealthy"), id="V41"),
        pytest.param('{"FaultCode":[000001c1],"FaultLevel":"NotHandle"}', id="V43"),
        pytest.param(body(event(LANES), 3, status="UnHealthy"), id="number"),
        pytest.param('{"NodeStatus": 3}', id="status-no-string"),
        pytest.param('{"NodeStatus": "UnHealthy", "FaultCode": {}}', id="no-array"),
        pytest.param(body(event(LANES, chip=-(2**70))), id="number-out-of-range"),
        pytest.param(body(*["{}"] * 2000), id="too-many"),
        pytest.param("[" * 10_000, id="too-deep"),
    ],
)
def test_one_bad_element_refuses_the_whole_update(text: str) -> None:
    with pytest.raises(InputError, match="SwitchInfoCfg"):
        parse("n0", text, where=WHERE, now_s=1.0)


def test_an_element_with_a_code_alone() -> None:
    """V42."""
    (fault,) = read(body('{"AssembledFaultCode":"code1"}')).faults
    assert (fault.codes, fault.acts) == (("code1",), False)
    assert [(fact.part, fact.told_at_s) for fact in fault.details] == [("chip 0 port 0", 0.0)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("[0x08520003,na,L2,na]_3_17", ("[0x08520003,na,L2,na]", "chip 3 port 17"), id="V44"),
        pytest.param("[0x08520003,na,L2,na]", ("[0x08520003,na,L2,na]", ""), id="old-form"),
        pytest.param("a_b_1_4294967295", ("a_b", "chip 1"), id="whole-chip"),
        pytest.param("a_1_" + "9" * 5000, ("a_1_" + "9" * 5000, ""), id="endless-number"),
    ],
)
def test_keys_of_the_time_map(key: str, expected: tuple[str, str]) -> None:
    assert split_key(key) == expected


def test_one_code_on_two_ports_is_two_facts_and_one_may_recover() -> None:
    """037."""
    times = {
        f"{LANES}_0_3": {"fault_time": 1763544000000, "fault_level": "RestartRequest"},
        f"{LANES}_1_7": {"fault_time": 1763544005000, "fault_level": "RestartRequest"},
    }
    both = read(body(event(LANES, 0, 3), event(LANES, 1, 7), status="UnHealthy", times=times))
    facts = both.faults[0].details
    assert [(fact.part, fact.told_at_s) for fact in facts] == [
        ("chip 0 port 3", 1763544000.0),
        ("chip 1 port 7", 1763544005.0),
    ]
    one = read(body(event(LANES, 1, 7), status="UnHealthy", times={LANES: times[f"{LANES}_1_7"]}), now_s=99.0)
    (left,) = node_troubles.continued(one, previous=both).faults[0].details
    assert (left.part, left.first_seen_s, left.told_at_s) == ("chip 1 port 7", 10.0, 1763544005.0)


@pytest.mark.parametrize(
    ("events", "status", "level", "acts", "shown"),
    [
        pytest.param(["[0x08520003,na,cpu,na]"], "UnHealthy", "Separate", True, "SeparateNPU", id="V33"),
        pytest.param(
            ["[0x00f10509,132333,npu,na]"], "SubHealthy", "SubHealthFault", False, "SubHealthFault", id="V34"
        ),
        pytest.param(
            ["[0x00f10509,132332,L2,na]"], "Healthy", "NotHandle", False, "NotHandleFault", id="V35"
        ),
        pytest.param([LANES], "UnHealthy", "RestartRequest", True, "RestartRequest", id="V38"),
        pytest.param([PORT_L2], "UnHealthy", "Separate", True, "", id="all-ports-to-l2-down"),
        pytest.param(["[0x1,na,na,na]"], "PreSeparate", "PreSeparate", False, "PreSeparateNPU", id="V51"),
        pytest.param(["[0x1,na,na,na]"], "SubHealthy", "Odd", False, "Unknown", id="047-unknown-level"),
        pytest.param(["[0x1,na,na,na]"], "UnHealthy", "Odd", True, "Unknown", id="unknown-level-but-listed"),
        pytest.param([], "UnHealthy", "", True, "", id="unhealthy-without-code"),
        pytest.param(
            ["[0x00f10509,132332,L2,na]", LANES],
            "UnHealthy",
            "RestartRequest",
            True,
            "RestartRequest",
            id="decided-per-code",
        ),
    ],
)
def test_what_a_switch_fault_means(
    events: list[str], status: str, level: str, acts: bool, shown: str
) -> None:
    texts: list[Any] = [event(code) for code in events]
    (fault,) = read(body(*texts, status=status, level=level)).faults
    assert (fault.acts, fault.level) == (acts, shown)
    assert switch_info.KEY in fault.evidence


def test_levels_of_the_time_map_win_over_the_table() -> None:
    times = {LANES: {"fault_time": 0, "fault_level": "NotHandle"}}
    (fault,) = read(body(event(LANES), times=times)).faults
    assert [fact.level for fact in fault.details] == [Level.NOT_HANDLE]
