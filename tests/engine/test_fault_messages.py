"""What consumers are told: levels, order, and whose faults. Source: fault input contract §4.7."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.channels.fault_signals import FaultSignal, SwitchCode
from mindie_ha.engine.fault_messages import node_faults
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.health import Health, health_of
from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod

FACT = CodeFact("80E18005", Level.SEPARATE, Family.CHIP, listed=True)
CHIP = Fault(FaultSource.DEVICE, Cause.CHIP_UNHEALTHY, "node-1", "Ascend910-3", details=(FACT,))
LOST = Fault(FaultSource.NODE, Cause.NODE_NOT_READY, "node-2")
ALL = [CHIP, LOST, CHIP, replace(CHIP, device="Ascend910-10"), replace(CHIP, node="node-0")]
NODES = {
    "node-1": Node("node-1", addresses=("host-1", "198.51.100.1"), serial="SN-1"),
    "node-2": Node("node-2", addresses=("198.51.100.2",)),
}

HEALTHY = ("NotHandle", "NotHandleFault", "", "whatever")
SUB_HEALTHY = ("SubHealthFault", "SubHealth", "PreSeparate", "PreSeparateFault", "PreSeparateNPU")
RESTARTS = ("RestartRequest", "RestartBusiness", "RestartNPU", "FreeRestartNPU")
SEPARATED = ("SeparateNPU", "SeparateFault", "Separate", "ManuallySeparateNPU")
LEVELS = [
    *[(name, Health.HEALTHY) for name in HEALTHY],
    *[(name, Health.SUB_HEALTHY) for name in SUB_HEALTHY],
    *[(name, Health.UNHEALTHY) for name in (*RESTARTS, *SEPARATED)],
]


@pytest.mark.parametrize(("level", "health"), LEVELS, ids=lambda value: str(value) or "empty")
def test_each_level_has_its_word(level: str, health: Health) -> None:
    assert health_of(level) is health


def test_a_card_is_told_by_its_number_and_its_node_by_address_and_serial() -> None:
    (node,) = node_faults([CHIP], nodes=NODES, pods=())

    assert (node.name, node.ip, node.serial, node.health) == ("node-1", "198.51.100.1", "SN-1", "UnHealthy")
    (device,) = node.devices
    assert (device.device_id, device.device_type) == ("3", "NPU")


def test_the_address_is_that_of_the_host_under_the_pod() -> None:
    pod = Pod(ObjectKey("mindie", "p"), PodUID("u"), "o", node="node-1", host_ip="198.51.100.77")

    assert node_faults([CHIP], nodes={}, pods=[pod])[0].ip == "198.51.100.77"


def test_a_lost_node_has_an_empty_code_and_the_number_minus_one() -> None:
    ((device,),) = [node.devices for node in node_faults([LOST], nodes=NODES, pods=())]

    assert (device.device_id, device.device_type) == ("-1", "Node")
    assert [(each.code, each.level) for each in device.codes] == [("", "SeparateNPU")]


def test_a_node_that_only_pauses_is_not_told() -> None:
    assert node_faults([replace(LOST, acts=False)], nodes=NODES, pods=()) == ()


def test_faults_of_pods_and_members_are_not_told() -> None:
    ours = [
        Fault(FaultSource.POD, Cause.POD_FAILED, "node-1", pod="p"),
        Fault(FaultSource.MEMBER, Cause.MEMBER_REPLACED, pod="p"),
    ]

    assert node_faults(ours, nodes=NODES, pods=()) == ()


def test_a_code_from_two_sources_stands_once_with_its_worst_level() -> None:
    facts = tuple(CodeFact(code, Level.SUB_HEALTH, Family.PUBLIC) for code in ("80E18005", "010001001"))
    public = replace(CHIP, source=FaultSource.PUBLIC, details=facts, acts=False)
    ((device,),) = [node.devices for node in node_faults([public, CHIP], nodes=NODES, pods=())]

    assert [(each.code, each.level) for each in device.codes] == [
        ("010001001", "SubHealthFault"),
        ("80E18005", "SeparateNPU"),
    ]


def test_a_card_that_is_listed_without_cause_is_unhealthy_with_an_empty_code() -> None:
    listed = replace(CHIP, details=(CodeFact("", Level.UNEXPLAINED, Family.CHIP, listed=True),))
    ((device,),) = [node.devices for node in node_faults([listed], nodes=NODES, pods=())]

    assert (device.health, [each.code for each in device.codes]) == (Health.UNHEALTHY, [""])


def test_a_switch_tells_where_and_when() -> None:
    fact = CodeFact("[0x08520003,na,L2,na]", Level.SUB_HEALTH, Family.SWITCH, "chip 1 port 17", told_at_s=1.0)
    switch = Fault(FaultSource.SWITCH, Cause.SWITCH_UNHEALTHY, "node-1", details=(fact,), acts=False)
    ((device,),) = [node.devices for node in node_faults([switch], nodes=NODES, pods=())]

    assert (device.device_id, device.device_type, device.health) == ("-1", "Switch", Health.SUB_HEALTHY)
    assert device.switch == (SwitchCode(fact.code, "1", "17", "1", "SubHealthFault"),)


def test_a_board_is_told_by_its_parts() -> None:
    facts = (
        CodeFact("0300000D", Level.NOT_HANDLE, Family.NODE, "PSU 4"),
        CodeFact("00000001", Level.SEPARATE, Family.NODE, "CPU 0"),
    )
    board = Fault(FaultSource.NODE_INFO, Cause.NODE_HARDWARE, "node-1", details=facts)
    ((cpu, psu),) = [node.devices for node in node_faults([board], nodes=NODES, pods=())]

    assert (cpu.device_type, cpu.device_id, cpu.health) == ("CPU", "0", Health.UNHEALTHY)
    assert (psu.device_type, psu.device_id, psu.health) == ("PSU", "4", Health.HEALTHY)


def test_a_code_that_is_still_borne_is_not_told() -> None:
    silent = replace(CHIP, details=(replace(FACT, level=Level.RESTART_REQUEST),), acts=False)

    assert node_faults([silent], nodes=NODES, pods=()) == ()


@given(st.permutations(ALL))
def test_the_message_does_not_depend_on_the_order_of_what_is_known(faults: list[Fault]) -> None:
    nodes = node_faults(faults, nodes=NODES, pods=())
    signal = FaultSignal(job_id="chat", nodes=nodes)

    assert [node.ip for node in nodes] == sorted(node.ip for node in nodes)
    assert [each.device_id for each in nodes[1].devices] == ["10", "3"]
    assert signal.digest == FaultSignal(job_id="chat", nodes=nodes, generation=9).digest
    assert signal.to_wire("a") != signal.to_wire("b")
