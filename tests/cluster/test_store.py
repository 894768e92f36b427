"""The store: what touches whom, what a view holds, and that no order of news leaves it wrong."""

from __future__ import annotations

import json

import orjson
import pytest

from mindie_ha.cluster.slim import SlimObject
from mindie_ha.cluster.sources import LISTED, PODS, REPORTS
from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import LoopClock
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import ObjectKey, ScopeKey, job_key, node_key, service_key
from mindie_ha.model.ranktables import PdRole
from tests.cluster import facts
from tests.cluster.facts import Told, make_store

pytestmark = pytest.mark.looptime

SERVICE = service_key("mindie", "svc")
NOW_S = 1_700_000_000.0
OTHER = {"jobID": "x", "app": "mindie-ms-server"}


def filled(*items: SlimObject, told: Told | None = None) -> Store:
    store = make_store(listener=told)
    for each in items:
        store.apply(each)
    return store


async def test_a_view_holds_workloads_pods_and_the_nodes_under_them() -> None:
    store = filled(
        facts.node("n1"),
        facts.node("unused"),
        facts.job("p0", role="p"),
        facts.job("d0", role="decode"),
        facts.pod("p0-master-0", "p0"),
        facts.rings("p0"),
    )
    view = store.view(SERVICE, now_s=NOW_S, subscribers=2, handed_to_all=False)
    assert view is not None
    assert [one.workload.key.name for one in view.workloads] == ["d0", "p0"]
    assert [one.workload.pd_role for one in view.workloads] == [PdRole.DECODE, PdRole.PREFILL]
    assert [pod.devices for pod in view.workloads[1].pods] == [("Ascend910-0", "Ascend910-1")]
    assert view.workloads[1].rings is not None
    assert set(view.nodes) == {"n1"}
    assert view.fleet.nodes == 2
    assert view.table is not None
    assert (view.table.subscribers, view.table.handed_to_all) == (2, False)


async def test_an_unknown_scope_has_no_view() -> None:
    assert make_store().view(SERVICE, now_s=NOW_S) is None


async def test_a_training_job_and_a_server_without_job_id_are_their_own_scopes() -> None:
    store = filled(facts.job("t", labels={}), facts.job("s", labels={"app": "mindie-ms-server"}))
    keys = {job_key(ObjectKey("mindie", "t")), job_key(ObjectKey("mindie", "s"))}
    assert store.scopes() == keys


@pytest.mark.parametrize(
    ("change", "touched"),
    [
        (facts.pod("p0-master-0", "p0", version=2, ip="10.0.0.9"), {SERVICE}),
        (facts.node("n1", ready=False, version=2), {SERVICE, node_key("n1")}),
        (facts.device_info("n1", "Ascend910-0"), {SERVICE, node_key("n1")}),
        (facts.shard(0, n1=("Ascend910-0", 5)), {SERVICE, node_key("n1")}),
        (facts.rings("p0"), {SERVICE}),
        (facts.job("other", labels=OTHER, table="t2"), {service_key("mindie", "x")}),
        (facts.node("unused", ready=False, version=2), {node_key("unused")}),
        (facts.node("n1", version=2), set()),
        (facts.pod("p0-master-0", "p0", version=2), set()),
    ],
    ids=[
        "pod", "node-lost", "device-report", "scheduler-list", "rings", "other-service", "node-without-pods",
        "heartbeat", "pod-without-news",
    ],
)  # fmt: skip
async def test_a_change_touches_exactly_whom_it_concerns(change: SlimObject, touched: set[ScopeKey]) -> None:
    store = filled(facts.node("n1"), facts.node("unused"), facts.job("p0"), facts.pod("p0-master-0", "p0"))
    assert store.apply(change) == touched


async def test_faults_are_urgent_and_heartbeats_are_silent() -> None:
    told = Told()
    store = filled(facts.node("n1"), facts.job("p0"), facts.pod("a", "p0"), told=told)
    told.calls.clear()
    store.apply(facts.node("n1", version=2))
    assert told.calls == []
    store.apply(facts.device_info("n1", "Ascend910-0"))
    store.apply(facts.pod("a", "p0", version=2, status={"phase": "Failed"}))
    assert [urgent for _, urgent in told.calls] == [True, True]


async def test_an_unhealthy_card_is_a_fault_of_the_pod_that_holds_it() -> None:
    store = filled(
        facts.node("n1"), facts.job("p0"), facts.pod("a", "p0"), facts.device_info("n1", "Ascend910-1")
    )
    view = store.view(SERVICE, now_s=NOW_S)
    assert view is not None
    assert [(fault.cause, fault.pod) for fault in view.workloads[0].faults] == [(Cause.CHIP_UNHEALTHY, "a")]


async def test_a_lost_node_is_recorded_first_and_the_view_says_when_it_will_act() -> None:
    store = filled(facts.node("n1"), facts.job("p0"), facts.pod("a", "p0"))
    store.apply(facts.node("n1", ready=False, version=2))
    view = store.view(SERVICE, now_s=NOW_S + 1)
    assert view is not None
    assert [fault.acts for fault in view.workloads[0].faults] == [False]
    assert view.wake_at_s == pytest.approx(NOW_S + 15, abs=0.1)


async def test_a_node_that_vanished_still_has_a_view_that_says_so() -> None:
    store = filled(facts.node("n1"), facts.job("p0"), facts.pod("a", "p0"))
    store.remove(facts.node("n1"))
    view = store.node_view("n1", now_s=NOW_S)
    assert not view.node.exists
    assert not view.node.ready


async def test_a_refused_report_keeps_the_last_good_one_and_says_why() -> None:
    store = filled(facts.device_info("n1", "Ascend910-1"))
    bad = facts.config_map(
        "mindx-dl-deviceinfo-n1", {"DeviceInfoCfg": "{"}, namespace="kube-system", version=9
    )
    store.apply(bad)
    report = store.node_view("n1", now_s=NOW_S).report
    assert report is not None
    assert report.unhealthy == {"Ascend910-1"}
    assert report.stale_reason
    assert "ConfigMap kube-system/mindx-dl-deviceinfo-n1" in store.problems()


async def test_a_device_report_in_a_strange_namespace_is_nobodys_word() -> None:
    forged = facts.config_map("mindx-dl-deviceinfo-n1", {"DeviceInfoCfg": "{}"}, namespace="mindie")
    store = filled(forged)
    assert store.node_view("n1", now_s=NOW_S).report is None


async def test_case_113_a_new_pod_of_the_same_name_takes_the_place_of_the_old() -> None:
    store = filled(facts.job("p0"), facts.pod("a", "p0", version=5))
    store.remove(facts.pod("a", "p0", version=5))
    store.apply(facts.pod("a", "p0", uid="second", version=9))
    late = facts.pod("a", "p0", version=7)
    assert store.apply(late, from_watch=False) == frozenset(), "an answer about the old pod comes too late"
    found = store.pod(ObjectKey("mindie", "a"))
    assert found is not None
    assert found.uid == "second"


async def test_case_059_a_late_deletion_of_the_old_job_does_not_remove_the_new_one() -> None:
    old, new = facts.job("p0", uid="one", version=5), facts.job("p0", uid="two", version=9)
    store = filled(old, new)
    store.remove(old)
    found = store.workload(ObjectKey("mindie", "p0"))
    assert found is not None
    assert found.uid == "two"


async def test_of_two_kinds_with_one_name_the_second_follows_when_the_first_goes() -> None:
    first = facts.job("it", labels={})
    tasks = [{"name": "worker", "replicas": 1}]
    second = facts.item("Job", "it", metadata={"uid": "vcjob"}, spec={"tasks": tasks})
    key = ObjectKey("mindie", "it")
    store = filled(first, second)
    assert "known by the same name" in str(store.problems())
    assert job_key(key) in store.remove(first)
    found = store.workload(key)
    assert found is not None
    assert (found.kind, found.uid, store.problems()) == ("Job", "vcjob", {})
    store.remove(second)
    assert store.workload(key) is None


async def test_who_waited_for_a_name_and_went_does_not_come_back() -> None:
    first = facts.job("it", labels={})
    second = facts.item("Job", "it", metadata={"uid": "vcjob"}, spec={})
    store = filled(first, second)
    store.remove(second)
    store.remove(first)
    assert store.workload(ObjectKey("mindie", "it")) is None


async def test_an_answer_to_a_write_counts_at_once_unless_something_newer_is_known() -> None:
    store = filled(facts.node("n1", version=5))

    def answer(version: int, *, taint: str) -> bytes:
        meta = {"name": "n1", "uid": "uid-n1", "resourceVersion": str(version)}
        spec = {"taints": [{"key": taint, "effect": "NoSchedule"}]}
        return orjson.dumps({"kind": "Node", "metadata": meta, "spec": spec})

    assert store.apply_response(answer(4, taint="old")) == frozenset()
    assert store.apply_response(answer(6, taint="ours")) == {node_key("n1")}
    assert [taint.key for taint in store.node_view("n1", now_s=NOW_S).node.taints] == ["ours"]
    store.remove(facts.node("n1", version=6))
    store.apply_response(answer(7, taint="ghost"))
    assert not store.node_view("n1", now_s=NOW_S).node.exists


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"kind":"Status"}', b'{"kind":"Pod","metadata":3}'])
async def test_a_strange_answer_is_ignored(body: bytes) -> None:
    assert make_store().apply_response(body) == frozenset()


async def test_rings_without_their_job_are_orphans_of_their_service() -> None:
    store = filled(facts.rings("gone"), facts.job("p0"), facts.rings("p0"))
    view = store.view(SERVICE, now_s=NOW_S)
    assert view is not None
    assert [rings.key.name for rings in view.orphan_rings] == ["rings-config-gone"]


async def test_when_a_table_text_changed_is_remembered_over_other_changes() -> None:
    store = filled(facts.job("p0"), facts.rings("p0", version=1))
    first = store.view(SERVICE, now_s=NOW_S)
    assert first is not None
    assert first.workloads[0].rings is not None
    store.apply(facts.rings("p0", version=2, job_id="svc"))
    again = store.view(SERVICE, now_s=NOW_S)
    assert again is not None
    assert again.workloads[0].rings == first.workloads[0].rings


async def test_one_job_id_in_two_namespaces_is_two_services_told_apart_by_pod_address() -> None:
    other = facts.job("q0", metadata={"namespace": "team"})
    pod = facts.pod("q0-0", "q0", ip="10.0.0.7", metadata={"namespace": "team"})
    store = filled(facts.job("p0"), facts.pod("p0-0", "p0"), other, pod)
    assert store.services_named("svc") == (SERVICE, service_key("team", "svc"))
    assert store.namespace_of_ip("10.0.0.7") == "team"
    assert store.namespace_of_ip("10.9.9.9") is None
    store.apply(facts.pod("host", "p0", ip="10.0.0.7"))
    assert store.namespace_of_ip("10.0.0.7") is None, "a host network address has no one answer"


async def test_two_services_with_one_table_map_know_of_each_other() -> None:
    store = filled(facts.job("p0"))
    labels = {"app": "mindie-ms-server", "jobID": "other"}
    touched = store.apply(facts.job("x0", labels=labels))
    assert touched == {SERVICE, service_key("mindie", "other")}
    view = store.view(SERVICE, now_s=NOW_S)
    assert view is not None
    assert view.table is not None
    assert view.table.shared_with == ("service:mindie/other",)


UID = "12345678-1234-1234-1234-123456789012"


def retries(entries: object, *, version: int = 1) -> SlimObject:
    text = entries if isinstance(entries, str) else json.dumps(entries)
    data = {"remain-retry-times": text}
    return facts.config_map("vcjob-fault-npu-cm", data, namespace="volcano-system", version=version)


@pytest.mark.parametrize(
    ("entry", "times", "ours"),
    [
        ({"UUID": UID, "Times": 3}, 3, False),
        ({"UUID": UID, "Times": 3, "WrittenBy": "mindie-ha"}, 3, True),
        ({"UUID": UID, "Times": "3"}, None, True),
        (None, None, True),
    ],
    ids=["volcano", "ours", "malformed", "null"],
)
async def test_remaining_retries_belong_to_one_uid(entry: object, times: int | None, ours: bool) -> None:
    store = filled(facts.job("p0", uid=UID))
    touched = store.apply(retries({f"mindie/p0-{UID}": entry, "mindie/p0-other": {"Times": 9}}))
    assert touched == ({SERVICE} if times else set())
    view = store.view(SERVICE, now_s=NOW_S)
    assert view is not None
    assert (view.workloads[0].retry_times, view.workloads[0].retry_times_ours) == (times, ours)


async def test_a_broken_retries_map_keeps_the_last_good_entries() -> None:
    store = filled(facts.job("p0", uid=UID), retries({f"mindie/p0-{UID}": {"Times": 3}}))
    store.apply(retries("{", version=2))
    view = store.view(SERVICE, now_s=NOW_S)
    assert view is not None
    assert view.workloads[0].retry_times == 3


async def test_a_map_with_two_labels_counts_for_the_selection_of_its_name_only() -> None:
    store = make_store()
    report = facts.device_info("n1", "Ascend910-0")
    store.on_change(REPORTS, report.key, None, report)
    store.on_change(LISTED, report.key, None, report)
    store.on_change(LISTED, report.key, report, None)
    assert store.node_view("n1", now_s=NOW_S).report is not None


async def test_a_refused_object_is_named_until_it_is_sound_again() -> None:
    store = make_store()
    pod = facts.pod("a", "p0")
    store.on_refused(PODS, pod.key, InputError("field spec: bad", where="Pod mindie/a"))
    assert "Pod mindie/a" in store.problems()["Pod mindie/a"]
    store.on_change(PODS, pod.key, None, pod)
    assert store.problems() == {}


async def test_a_mass_loss_of_nodes_puts_the_brake_on() -> None:
    store = filled(*(facts.node(f"n{number}") for number in range(10)))
    assert store.fleet(now_s=NOW_S).braked_since_s is None
    for number in range(5):
        store.apply(facts.node(f"n{number}", ready=False, version=2))
    fleet = store.fleet(now_s=NOW_S)
    assert (fleet.ready, fleet.lost_recently) == (5, 5)
    assert fleet.braked_since_s is not None
    for number in range(5):
        store.apply(facts.node(f"n{number}", version=3))
    assert store.fleet(now_s=NOW_S + 1).braked_since_s is None


async def test_open_nodes_are_counted_with_every_change() -> None:
    taint = {"taints": [{"key": "mindie-ha.io/isolated", "effect": "NoSchedule"}]}
    store = filled(*(facts.node(f"n{number}") for number in range(5)))
    assert store.fleet(now_s=NOW_S).open == 5
    store.apply(facts.node("n0", ready=False, version=2))
    store.apply(facts.node("n1", spec={"unschedulable": True}, version=2))
    store.apply(facts.node("n2", spec=taint, version=2))
    store.remove(facts.node("n3"))
    assert store.fleet(now_s=NOW_S).open == 1
    for number in range(3):
        store.apply(facts.node(f"n{number}", version=3))
    assert store.fleet(now_s=NOW_S).open == 4


async def test_losses_older_than_the_window_do_not_count() -> None:
    store = filled(*(facts.node(f"n{number}") for number in range(10)))
    for number in range(3):
        store.remove(facts.node(f"n{number}"))
    assert store.fleet(now_s=NOW_S).lost_recently == 3
    assert store.fleet(now_s=NOW_S + 301).lost_recently == 0


async def test_the_node_that_lifts_the_brake_wakes_everybody_who_was_held() -> None:
    told = Told()
    nodes = (facts.node(f"n{number}") for number in range(10))
    store = filled(*nodes, facts.job("p0"), facts.pod("p0-0", "p0", node="n9"), told=told)
    for number in (9, 1, 2, 3):
        store.apply(facts.node(f"n{number}", ready=False, version=2))
    told.calls.clear()
    store.apply(facts.node("n1", version=3))
    assert [SERVICE in scopes for scopes, _ in told.calls] == [True]
    told.calls.clear()
    store.apply(facts.node("n2", version=3))
    assert [SERVICE in scopes for scopes, _ in told.calls] == [False]


async def test_time_alone_does_not_end_the_brake() -> None:
    store = filled(*(facts.node(f"n{number}") for number in range(10)))
    for number in range(6):
        store.apply(facts.node(f"n{number}", ready=False, version=2))
    assert store.fleet(now_s=NOW_S + 301).lost_recently == 6  # none is back
    assert store.fleet(now_s=NOW_S + 700).lost_recently == 6  # most of the fleet is still away
    for number in range(2):
        store.apply(facts.node(f"n{number}", version=3))
    late = store.fleet(now_s=NOW_S + 700)  # four are lost for good, six are Ready: after `release_s` it lifts
    assert (late.lost_recently, late.braked_since_s) == (0, None)


async def test_nodes_lost_before_we_started_count_from_the_time_the_server_tells() -> None:
    stamp = "2023-11-14T22:13:00Z"  # 20 s before NOW_S
    lost = [
        facts.node(
            f"n{number}",
            status={"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": stamp}]},
        )
        for number in range(3)
    ]
    store = filled(*lost, *(facts.node(f"ok{number}") for number in range(5)))
    assert store.fleet(now_s=NOW_S).lost_recently == 3
    assert store.fleet(now_s=NOW_S + 290).lost_recently == 0


async def test_the_store_runs_on_any_clock() -> None:
    assert make_store(clock=LoopClock(speed=20.0)).scopes() == frozenset()
