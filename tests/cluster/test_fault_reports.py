"""Fault sources in the store: whom a change touches, what a refused report keeps, what ends a fault."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from mindie_ha.cluster.slim import SlimConfigMap, SlimObject
from mindie_ha.cluster.sources import CHIP_CONFIG, LISTED, NODE_CONFIG, REPORTS, SOURCE_OF_FAMILY, family_of
from mindie_ha.cluster.store import Store
from mindie_ha.intake import device_info, node_info
from mindie_ha.intake.node_info import BoardDevice
from mindie_ha.model.faults import Cause, Fault
from mindie_ha.model.ids import node_key, service_key
from mindie_ha.model.settings import FaultFeed, FaultSettings, Settings
from tests.cluster import facts
from tests.cluster.facts import Told, make_store

pytestmark = pytest.mark.looptime

SERVICE = service_key("mindie", "svc")
NOW_S = 1_700_000_000.0
CIM = {"labels": {"mx-consumer-cim": "true"}}
VOLCANO = {"labels": {"mx-consumer-volcano": "true"}}
CLUSTERD = Settings(faults=FaultSettings(source=FaultFeed.CLUSTERD))
BAD_SWITCH = {"FaultCode": [], "FaultLevel": "Separate", "NodeStatus": "UnHealthy", "UpdateTime": 1}


def report(
    node: str = "n1",
    *,
    version: int = 1,
    unhealthy: str = "",
    faults: list[dict[str, Any]] | None = None,
    at: int = 1_700_000_000,
    code: str | None = None,
    **more: str,
) -> SlimObject:
    devices = {
        "huawei.com/Ascend910": "Ascend910-0",
        "huawei.com/Ascend910-Unhealthy": unhealthy,
        "huawei.com/Ascend910-Fault": json.dumps(faults or []),
    }
    body = {
        "DeviceInfo": {"DeviceList": devices, "UpdateTime": at},
        "CheckCode": device_info.check_code(devices, at) if code is None else code,
    }
    name = f"mindx-dl-deviceinfo-{node}"
    data = {"DeviceInfoCfg": json.dumps(body), **more}
    return facts.config_map(name, data, namespace="kube-system", version=version, metadata=CIM)


def board(level: str, *, node: str = "n1", version: int = 1, namespace: str = "mindx-dl") -> SlimObject:
    devices = [BoardDevice("CPU", 1, ("2C000031",), level)]
    listed = [{"DeviceType": "CPU", "DeviceId": 1, "FaultCode": ["2C000031"], "FaultLevel": level}]
    body = {
        "NodeInfo": {"FaultDevList": listed, "NodeStatus": "UnHealthy"},
        "CheckCode": node_info.check_code(devices, "UnHealthy"),
    }
    name = f"mindx-dl-nodeinfo-{node}"
    data = {"NodeInfo": json.dumps(body)}
    return facts.config_map(name, data, namespace=namespace, version=version, metadata=CIM)


def fused(name: str, body: object, *, version: int = 1) -> SlimObject:
    text = body if isinstance(body, str) else json.dumps(body)
    return facts.config_map(name, {name: text}, namespace="mindx-dl", version=version, metadata=VOLCANO)


def filled(*items: SlimObject, settings: Settings | None = None, told: Told | None = None) -> Store:
    store = make_store(settings=settings, listener=told)
    for each in (facts.node("n1"), facts.node("n2"), facts.job("p0"), facts.pod("a", "p0"), *items):
        store.apply(each)
    return store


def faults(store: Store, *, now_s: float = NOW_S) -> list[Fault]:
    view = store.view(SERVICE, now_s=now_s)
    assert view is not None
    return list(view.workloads[0].faults)


def causes(store: Store) -> list[tuple[Cause, bool]]:
    return [(fault.cause, fault.acts) for fault in faults(store)]


def entry(level: str, code: str = "80E18005") -> dict[str, Any]:
    return {
        "fault_type": "CardUnhealthy",
        "npu_name": "Ascend910-0",
        "fault_level": level,
        "fault_code": code,
        "fault_time_and_level_map": {code: {"fault_time": 1, "fault_level": level}},
    }


async def test_a_board_fault_touches_the_workloads_of_its_node_and_its_absence_heals() -> None:
    """V49."""
    told = Told()
    store = filled(told=told)
    told.calls.clear()
    assert store.apply(board("SeparateFault", node="n2")) == {node_key("n2")}
    assert store.apply(board("SeparateFault")) == {SERVICE, node_key("n1")}
    assert told.calls[-1][1], "a fault that acts is urgent"
    assert causes(store) == [(Cause.NODE_HARDWARE, True)]
    assert store.remove(board("SeparateFault")) == {SERVICE, node_key("n1")}
    assert causes(store) == []


async def test_a_report_under_the_right_name_in_another_namespace_says_nothing() -> None:
    store = filled()
    assert store.apply(board("SeparateFault", namespace="mindie")) == frozenset()
    assert causes(store) == []


async def test_a_switch_fault_comes_with_the_device_report_and_goes_with_it() -> None:
    store = filled(report(SwitchInfoCfg=json.dumps(BAD_SWITCH)))
    assert causes(store) == [(Cause.SWITCH_UNHEALTHY, True)]
    store.apply(report(version=2, SwitchInfoCfg="not json"))
    assert causes(store) == [(Cause.SWITCH_UNHEALTHY, True)], "a refused update keeps the last good state"
    assert any("SwitchInfoCfg" in text for text in store.problems().values())
    store.apply(report(version=3, SwitchInfoCfg=json.dumps({**BAD_SWITCH, "NodeStatus": ""})))
    assert causes(store) == []


async def test_a_refused_report_keeps_the_last_good_one_and_is_counted() -> None:
    """029, 031: nothing is restarted because of it; the key outside the checksum closes the card."""
    counted: list[str] = []
    store = Store(
        clock=facts.LoopClock(wall_origin_s=NOW_S),
        settings=Settings(),
        listener=Told(),
        refused=counted.append,
    )
    for each in (facts.node("n1"), facts.job("p0"), facts.pod("a", "p0"), report()):
        store.apply(each)
    store.apply(report(version=2, unhealthy="Ascend910-0", code="0" * 64, ManuallySeparateNPU="Ascend910-0"))
    assert causes(store) == [(Cause.CHIP_SEPARATED, False)]
    assert counted == ["device-info"]
    view = store.node_view("n1", now_s=NOW_S + 700)
    assert "700 s old; newer ones are refused" in view.unreported
    assert view.report is not None
    assert not view.report.unhealthy


async def test_a_report_that_only_got_newer_touches_nobody() -> None:
    store = filled(report())
    assert store.apply(report(version=2, at=1_700_000_060)) == frozenset()
    assert store.node_view("n1", now_s=NOW_S + 100).unreported == ""


async def test_another_code_on_a_card_that_is_already_unhealthy_is_news() -> None:
    store = filled(report(unhealthy="Ascend910-0", faults=[entry("RestartNPU")]))
    assert store.apply(report(version=2, unhealthy="Ascend910-0", faults=[entry("SeparateNPU", "80E18402")]))
    assert [fault.codes for fault in faults(store)] == [("80E18402",)]


async def test_a_silenced_fault_acts_when_its_window_ends() -> None:
    """049."""
    store = filled(report(unhealthy="Ascend910-0", faults=[entry("RestartRequest")]))
    view = store.view(SERVICE, now_s=NOW_S + 1)
    assert view is not None
    assert view.wake_at_s == pytest.approx(NOW_S + 60, abs=0.1)
    assert [fault.acts for fault in faults(store, now_s=NOW_S + 61)] == [True]
    store.apply(report(version=2))
    assert faults(store, now_s=NOW_S + 61) == [], "recovered inside the window: nothing is left"


async def test_a_marked_node_is_a_fault_of_its_pods() -> None:
    store = filled()
    marked = facts.node("n1", version=2, metadata={"annotations": {"NodeHealthyStatus": "UnHealthy"}})
    assert store.apply(marked) == {SERVICE, node_key("n1")}
    assert causes(store) == [(Cause.NODE_MARKED, True)]


async def test_a_clusters_own_table_counts_for_the_reports_that_follow() -> None:
    own = facts.config_map(
        "mindx-dl-fault-config",
        {"faultCode.json": json.dumps({"SeparateNPUCodes": ["ABCD"]})},
        namespace="kube-system",
    )
    without_level = {**entry("", "ABCD"), "fault_time_and_level_map": {}}
    store = filled(report(faults=[without_level]))
    assert causes(store) == [(Cause.CHIP_FAULT_LISTED, False)]
    store.apply(own)
    store.apply(report(version=2, faults=[without_level]))
    assert causes(store) == [(Cause.CHIP_UNHEALTHY, True)]
    bad = {"faultCode.json": "x"}
    store.apply(facts.config_map("mindx-dl-fault-config", bad, namespace="kube-system", version=2))
    assert any("mindx-dl-fault-config[faultCode.json]" in text for text in store.problems().values())
    store.apply(report(version=3, at=5, faults=[without_level]))
    assert causes(store) == [(Cause.CHIP_UNHEALTHY, True)], "the last good table stays"


@pytest.mark.parametrize(
    ("item", "source"),
    [
        (report(), REPORTS),
        (board("SeparateFault"), REPORTS),
        (fused("cluster-info-switch-0", ""), LISTED),
        (fused("cluster-info-node-cm", ""), LISTED),
        (facts.config_map("mindx-dl-fault-config", {}, namespace="kube-system"), CHIP_CONFIG),
        (facts.config_map("mindx-dl-node-fault-config", {}, namespace="mindx-dl"), NODE_CONFIG),
    ],
    ids=["device", "board", "switch-list", "board-list", "chip-config", "node-config"],
)
async def test_every_fault_config_map_has_a_watch(item: SlimObject, source: object) -> None:
    assert isinstance(item, SlimConfigMap)
    assert SOURCE_OF_FAMILY[family_of(item)] is source


def listed(unhealthy: str, *, at: int = 1) -> dict[str, Any]:
    return {"DeviceList": {"huawei.com/Ascend910-Unhealthy": unhealthy}, "UpdateTime": at}


async def test_with_clusterd_as_the_feed_its_lists_stand_for_the_reports() -> None:
    store = filled(report(unhealthy="Ascend910-0"), board("SeparateFault"), settings=CLUSTERD)
    assert causes(store) == []
    store.apply(fused("cluster-info-device-0", {"mindx-dl-deviceinfo-n1": listed("Ascend910-1")}))
    assert [(fault.device, fault.acts) for fault in faults(store)] == [("Ascend910-1", True)]
    store.apply(fused("cluster-info-switch-0", {"mindx-dl-switchinfo-n1": BAD_SWITCH}))
    body = {"FaultDevList": None, "NodeStatus": "UnHealthy"}
    store.apply(fused("cluster-info-node-cm", {"mindx-dl-nodeinfo-n1": body}))
    assert {cause for cause, _ in causes(store)} == {
        Cause.CHIP_UNHEALTHY,
        Cause.NODE_HARDWARE,
        Cause.SWITCH_UNHEALTHY,
    }
    store.apply(fused("cluster-info-node-cm", "", version=2))
    assert Cause.NODE_HARDWARE not in {cause for cause, _ in causes(store)}


async def test_a_node_that_moves_between_shards_is_never_lost() -> None:
    """123."""
    store = filled(settings=CLUSTERD)
    store.apply(fused("cluster-info-device-0", {"mindx-dl-deviceinfo-n1": listed("Ascend910-1", at=1)}))
    store.apply(fused("cluster-info-device-0", {}, version=2))
    assert causes(store) == [(Cause.CHIP_UNHEALTHY, True)]
    report_ = store.node_view("n1", now_s=NOW_S).report
    assert report_ is not None
    assert "no cluster-info-device" in report_.stale_reason
    store.apply(fused("cluster-info-device-1", {"mindx-dl-deviceinfo-n1": listed("", at=2)}))
    assert causes(store) == []


async def test_device_reports_are_the_feed_by_default() -> None:
    store = filled(fused("cluster-info-device-0", {"mindx-dl-deviceinfo-n1": listed("Ascend910-1")}))
    assert causes(store) == []


async def test_one_changed_report_costs_less_than_a_millisecond() -> None:
    names = [f"Ascend910-{number}" for number in range(16)]
    store = filled()
    entries = [{**entry("SeparateNPU"), "npu_name": name} for name in names[:4]]
    changes = [
        report(version=n + 1, unhealthy=",".join(names[: n % 5]), faults=entries[: n % 5]) for n in range(200)
    ]
    costs = []
    for change in changes:
        began = time.thread_time()
        store.apply(change)
        costs.append(time.thread_time() - began)
    assert sorted(costs)[len(costs) // 2] < 0.001


async def test_a_changed_table_judges_the_reports_that_stand_anew_at_once() -> None:
    silent = {**entry("", code="80E18005"), "fault_time_and_level_map": {}}
    told = Told()
    store = filled(report(faults=[silent]), told=told)
    assert [fault.acts for fault in faults(store)] == [True]
    told.calls.clear()
    table = {"faultCode.json": json.dumps({"NotHandleFaultCodes": ["80E18005"]})}
    own = facts.config_map("mindx-dl-fault-config", table, namespace="kube-system", version=7)
    assert store.apply(own) == {SERVICE, node_key("n1")}
    assert [(fault.acts, fault.level) for fault in faults(store)] == [(False, "NotHandleFault")]
    store.remove(own)
    assert [fault.acts for fault in faults(store)] == [True]


async def test_changed_relation_rules_count_at_once() -> None:
    link = {**entry("PreSeparateNPU", code="81078603"), "fault_type": "CardNetworkUnhealthy"}
    store = filled(report(faults=[link, entry("NotHandleFault", code="8C1F860B")]))
    assert (Cause.CORRELATED, True) in causes(store)
    none = {"relationFaultCustomization.json": "[]"}
    store.apply(facts.config_map("mindx-dl-fault-config", none, namespace="kube-system", version=7))
    assert Cause.CORRELATED not in dict(causes(store))
    bad = {"relationFaultCustomization.json": "{"}
    store.apply(facts.config_map("mindx-dl-fault-config", bad, namespace="kube-system", version=8))
    assert Cause.CORRELATED not in dict(causes(store)), "a bad file keeps the last good one"
