"""What people are told of a workload beside its faults, and of a node that flaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.intake.collect import Collected, collect
from mindie_ha.intake.silences import CODES
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.nodes import DeviceReport, Losses, Node
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.model.workloads import Role, Workload
from mindie_ha.policy import flaps

NOW_S = 10_000.0
SICK = Fault(
    FaultSource.DEVICE,
    Cause.CHIP_FAULT_LISTED,
    node="n0",
    device="Ascend910-0",
    details=(CodeFact("81A3880C", Level.SUB_HEALTH, Family.CHIP, first_seen_s=NOW_S),),
)
LINK = replace(SICK, details=(CodeFact("81078603", Level.SUB_HEALTH, Family.NETWORK, first_seen_s=NOW_S),))


def gather(
    *,
    strategy: str = "",
    faults: tuple[Fault, ...] = (),
    role: Role = Role.SERVER,
    annotations: dict[str, str] | None = None,
    view: NodeView | None = None,
) -> Collected:
    pod = Pod(
        key=ObjectKey("ns", "p-0"),
        uid=PodUID("u"),
        owner_uid="j",
        phase=PodPhase.RUNNING,
        node="n0",
        devices=("Ascend910-0",),
    )
    job = Workload(
        key=ObjectKey("ns", "p"),
        uid="j",
        kind="AscendJob",
        role=role,
        pd_role=PdRole.UNKNOWN,
        job_id="svc",
        replicas=1,
        labels={"subHealthyStrategy": strategy} if strategy else {},
        annotations=annotations or {},
    )
    return collect(
        workload=job,
        pods=(pod,),
        nodes={"n0": view or NodeView(Node("n0"))},
        device_faults={"n0": faults},
        ledger=WorkloadLedger(workload="AscendJob/ns/p", workload_uid="j"),
        settings=Settings(),
        now_s=NOW_S,
    )


@pytest.mark.parametrize(
    ("strategy", "role", "faults", "told", "acts"),
    [
        pytest.param("", Role.SERVER, (SICK,), [], False, id="none"),
        pytest.param("ignore", Role.SERVER, (SICK,), [], False, id="ignore"),
        pytest.param("forceExit", Role.SERVER, (SICK,), [], True, id="forceExit"),
        pytest.param("graceExit", Role.SERVER, (SICK,), [], True, id="graceExit-server"),
        pytest.param("graceExit", Role.TRAINING, (SICK,), [], True, id="graceExit-training"),
        pytest.param("graceExit", Role.SERVER, (), [], False, id="graceExit-nothing-sick"),
        pytest.param("hotSwitch", Role.SERVER, (SICK,), ["HotSwitchNotServed"], False, id="hotSwitch"),
        pytest.param("hotSwitch", Role.SERVER, (LINK,), [], False, id="hotSwitch-link"),
        pytest.param("perhaps", Role.SERVER, (SICK,), ["SubHealthStrategyUnknown"], False, id="unknown"),
        pytest.param("perhaps", Role.SERVER, (), ["SubHealthStrategyUnknown"], False, id="unknown-and-well"),
    ],
)
def test_141_strategies(
    strategy: str, role: Role, faults: tuple[Fault, ...], told: list[str], acts: bool
) -> None:
    found = gather(strategy=strategy, role=role, faults=faults)
    assert [notice.reason for notice in found.remarks] == told
    assert any(fault.acts for fault in found.faults) is acts


def test_049_a_window_that_cannot_be_read_is_told() -> None:
    (notice,) = gather(annotations={CODES: "80E01801:90000, 8C1F8608:30"}).remarks
    assert notice.reason == "SilenceWindowRefused"
    assert "'90000' is not 0-86400 whole seconds" in notice.message


@pytest.mark.parametrize(
    ("why", "exists", "told"), [("too old", True, 1), ("", True, 0), ("too old", False, 0)], ids=str
)
def test_a_node_whose_report_is_too_old_is_told(why: str, exists: bool, told: int) -> None:
    found = gather(view=NodeView(Node("n0", exists=exists), unreported=why))
    assert [notice.reason for notice in found.remarks] == ["NodeUnreported"] * told


def test_the_time_at_which_a_report_is_too_old_is_known() -> None:
    found = gather(view=NodeView(Node("n0"), report=DeviceReport("n0", updated_at_s=NOW_S - 100)))
    assert found.wake_at_s == pytest.approx(NOW_S + 500, abs=0.01)


def losses(*lost_at_s: float) -> Losses:
    node = Node("n0", uid="u")
    for at_s in lost_at_s:
        lost = replace(node, ready=False)
        node = replace(lost, losses=flaps.counted(node, lost, now_s=at_s))
        node = replace(
            node, losses=flaps.counted(node, replace(node, ready=True), now_s=at_s + 8), ready=True
        )
    return node.losses


@pytest.mark.parametrize(
    ("lost_at_s", "told"),
    [
        pytest.param((100.0, 128.0), 0, id="twice"),
        pytest.param((100.0, 128.0, 156.0), 1, id="073-three-times"),
        pytest.param((100.0, 128.0, 156.0, 184.0, 212.0), 1, id="073-five-times"),
        pytest.param((100.0, 128.0, 800.0), 0, id="with-a-long-pause"),
    ],
)
def test_a_node_that_flaps_is_told_once(lost_at_s: tuple[float, ...], told: int) -> None:
    node = Node("n0", uid="u", losses=losses(*lost_at_s))
    notices = flaps.notices(node, now_s=lost_at_s[-1] + 10)
    assert [notice.key for notice in notices] == ["flaps:n0:100"] * told
    assert flaps.notices(node, now_s=lost_at_s[-1] + 601) == ()


def test_another_node_of_the_same_name_counts_anew() -> None:
    old = Node("n0", uid="u", losses=losses(1.0, 2.0, 3.0))
    assert flaps.counted(old, Node("n0", uid="v", ready=False), now_s=4.0) == Losses()
