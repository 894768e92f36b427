"""Malformed objects: each costs itself only, is seen by people, never crashes us and is never published.

Every case breaks something of one service while another service has a fault; that one must recover and be
published as if nothing were. Where the broken thing can be seen: log, Event, metric, `status`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from .clusters import CHIP, NAMESPACE, Cluster, cluster, metric, quick, small_service

pytestmark = pytest.mark.looptime
Object = dict[str, Any]
P0, D0 = "mindie-server-p0", "mindie-server-d0"
OTHER, OTHER_ID = "other", "other-ms"
RINGS = f"rings-config-{P0}"


@dataclass(frozen=True)
class Case:
    """One malformed ConfigMap: `change` makes its data (None: patches the labels) out of the good one."""

    id: str
    namespace: str
    name: str
    change: Callable[[Object], Object]
    labels: bool = False
    refused: bool = True  # counted as a refused input; otherwise as a notice


def text(key: str, value: str) -> Callable[[Object], Object]:
    return lambda _: {key: value}


def edited(key: str, edit: Callable[[Object], None]) -> Callable[[Object], Object]:
    def change(data: Object) -> Object:
        content = json.loads(data[key])
        edit(content)
        return {key: json.dumps(content)}

    return change


def put(*path: str | int, value: object) -> Callable[[Object], None]:
    def edit(content: Any) -> None:
        for step in path[:-1]:
            content = content[step]
        content[path[-1]] = value

    return edit


DEVICE = ("kube-system", "mindx-dl-deviceinfo-{node}")
HCCL = (NAMESPACE, RINGS)
LISTED = ("mindx-dl", "cluster-info-device-0")
RETRIES = ("volcano-system", "vcjob-fault-npu-cm")
INFO, TABLE, LIST, LEFT = "DeviceInfoCfg", "hccl.json", "cluster-info-device-0", "remain-retry-times"
DEEP = "[" * 100_000

CASES = [
    Case("report-broken-json", *DEVICE, text(INFO, "{")),
    Case("report-deep", *DEVICE, text(INFO, DEEP)),
    Case("report-list", *DEVICE, text(INFO, "[1, 2]")),
    Case("report-check-code", *DEVICE, edited(INFO, put("CheckCode", value="0" * 64))),
    Case("report-numbers", *DEVICE, edited(INFO, put("DeviceInfo", "DeviceList", value={"huawei.com/x": 1}))),
    Case("report-null", *DEVICE, edited(INFO, put("DeviceInfo", "DeviceList", value=None))),
    Case("report-missing", *DEVICE, edited(INFO, lambda content: content.pop("DeviceInfo"))),
    Case("report-time", *DEVICE, edited(INFO, put("DeviceInfo", "UpdateTime", value="soon"))),
    Case("report-no-key", *DEVICE, text(INFO, "")),
    Case("table-broken-json", *HCCL, text(TABLE, '{"status": "completed", ')),
    Case("table-deep", *HCCL, text(TABLE, DEEP)),
    Case("table-null-in-array", *HCCL, edited(TABLE, put("server_list", 0, value=None))),
    Case("table-null-devices", *HCCL, edited(TABLE, put("server_list", 0, "device", value=None))),
    Case("table-number", *HCCL, edited(TABLE, put("server_list", 0, "device", 0, "rank_id", value=0))),
    Case("table-missing", *HCCL, edited(TABLE, lambda content: content["server_list"][0].pop("device"))),
    Case("table-version", *HCCL, edited(TABLE, put("version", value="9.9"))),
    Case(
        "table-oversized",
        *HCCL,
        text(TABLE, '{"status": "completed", "x": "' + "x" * 900_000 + '"}'),
        refused=False,
    ),
    Case("table-status", *HCCL, edited(TABLE, put("status", value=1))),
    Case(
        "table-both-deploy-labels",
        *HCCL,
        lambda _: {"grt-group/deploy-server": "0", "grt-server/deploy-server": "1"},
        labels=True,
        refused=False,
    ),
    Case(
        "table-absurd-deploy-label",
        *HCCL,
        lambda _: {"grt-group/deploy-server": "x" * 63},
        labels=True,
        refused=False,
    ),
    Case("list-broken-json", *LISTED, text(LIST, "{")),
    Case("list-node-null", *LISTED, edited(LIST, put("mindx-dl-deviceinfo-{node}", value=None))),
    Case("retries-broken-json", *RETRIES, text(LEFT, "{")),
    Case("retries-list", *RETRIES, text(LEFT, "[]")),
]


async def spoil(c: Cluster, case: Case, node: str) -> str:
    """Make the case true; the name of the object."""
    name = case.name.replace("{node}", node)
    if case.namespace == "volcano-system" and c.get("ConfigMap", name, case.namespace) is None:
        meta = {"name": name, "namespace": case.namespace, "labels": {"mx-consumer-volcano": "true"}}
        await c.api.create("ConfigMap", {"metadata": meta, "data": {LEFT: "{}"}})
    good = c.get("ConfigMap", name, case.namespace)
    assert good is not None
    changed = json.loads(json.dumps(case.change(good["data"])).replace("{node}", node))
    body = {"metadata": {"labels": changed}} if case.labels else {"data": changed}
    await c.api.patch("ConfigMap", name, case.namespace, body)
    return name


def second_service(job_id: str) -> list[Object]:
    service = small_service(namespace=OTHER, job_id=job_id)
    namespace: Object = {"kind": "Namespace", "metadata": {"name": OTHER}}
    shared = ("PriorityClass", "Service")  # of the cluster, and with a port that the first one has
    return [namespace, *[obj for obj in service if obj["kind"] not in shared]]


async def two_services(c: Cluster) -> None:
    await c.apply(second_service(OTHER_ID))
    await c.until(lambda: c.published(OTHER_ID, namespace=OTHER) == {P0, D0}, "the other service")


async def other_recovers(c: Cluster) -> None:
    """The other service, hit by a fault, is rebuilt and published."""
    known = c.table(OTHER_ID, namespace=OTHER)["generation"]
    pods = c.pods(P0, namespace=OTHER)
    await c.world.set_faults(pods[f"{P0}-master-0"]["spec"]["nodeName"], [CHIP])

    def done() -> bool:
        ledger = c.ledger(P0, namespace=OTHER)
        return bool(ledger) and len(ledger["closed"]) == 1

    await c.until(done, "the other service recovered")
    assert c.published(OTHER_ID, namespace=OTHER) == {P0, D0}
    assert c.table(OTHER_ID, namespace=OTHER)["generation"] >= known + 2


def shown(c: Cluster) -> str:
    """Everything that `status` would show."""
    return str(c.app.core.reporter.overview().model_dump())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_malformed_object_hurts_only_itself_and_is_seen(case: Case) -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        await two_services(c)
        mine = c.uids()
        name = await spoil(c, case, c.node_of(f"{P0}-worker-0"))
        await c.clock.sleep(2)
        reason = "InputRefused" if case.refused else "InstanceLeftOut"
        seen = [event for event in c.events(reason) if name in event["message"] or P0 in event["message"]]
        assert seen, [event["message"] for event in c.events()]
        warned = [line for line in c.log().splitlines() if '"warning"' in line]
        assert any(name in line or P0 in line for line in warned)
        counter = "inputs_refused_total" if case.refused else "notices_total"
        labels = {} if case.refused else {"reason": reason}
        assert metric(c.app, f"mindie_ha_{counter}", **labels) >= 1
        assert name in shown(c) or f"'{P0}'" in shown(c)
        if case.name == RINGS:
            assert c.published() == {D0}
        await other_recovers(c)
        assert c.uids() == mine


@pytest.mark.parametrize(
    "case",
    [
        Case("report", *DEVICE, edited(INFO, put("Invented", value=[None, {"a": 1}]))),
        Case("table", *HCCL, edited(TABLE, put("invented", value=[None, {"a": 1}]))),
        Case("table-device", *HCCL, edited(TABLE, put("server_list", 0, "device", 0, "new", value=1))),
    ],
    ids=lambda case: case.id,
)
async def test_unknown_fields_are_no_problem(case: Case) -> None:
    async with cluster(settings=quick()) as c:
        before = c.table()["text"]
        await spoil(c, case, c.node_of(f"{P0}-worker-0"))
        await c.clock.sleep(5)
        assert not c.events("InputRefused")
        assert c.published() == {P0, D0}
        assert c.table()["text"] == before


async def test_an_address_that_no_pod_has_is_not_published() -> None:
    async with cluster(settings=quick()) as c:
        foreign = edited(TABLE, put("server_list", 0, "container_ip", value="10.9.9.9"))
        await spoil(c, Case("table", *HCCL, foreign), "")
        await c.until(lambda: c.published() == {D0}, "left out")
        assert "10.9.9.9" in shown(c)


async def test_what_was_wrong_is_forgotten_when_it_is_right_again_or_gone() -> None:
    async with cluster(settings=quick()) as c:
        node = c.node_of(f"{P0}-worker-0")
        name = f"mindx-dl-deviceinfo-{node}"
        good = c.get("ConfigMap", name, "kube-system")
        assert good is not None
        await c.api.patch("ConfigMap", name, "kube-system", {"data": {INFO: "{"}})
        await c.api.patch("ConfigMap", RINGS, NAMESPACE, {"data": {TABLE: "{"}})
        await c.clock.sleep(1)
        assert len(c.app.core.reporter.problems()) == 2
        await c.api.patch("ConfigMap", name, "kube-system", {"data": good["data"]})
        await c.api.delete("ConfigMap", RINGS, NAMESPACE)
        await c.clock.sleep(1)
        assert c.app.core.reporter.problems() == []


async def test_a_fault_that_was_known_stays_when_its_report_turns_unreadable() -> None:
    async with cluster(nodes=4, settings=quick()) as c:
        node = c.node_of(f"{P0}-worker-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: c.state(P0) == "waiting", "no capacity")
        name = f"mindx-dl-deviceinfo-{node}"
        await c.api.patch("ConfigMap", name, "kube-system", {"data": {INFO: "{"}})
        await c.clock.sleep(30)
        assert c.state(P0) == "waiting"


async def test_an_instance_table_whose_job_is_gone_is_named_and_not_published() -> None:
    async with cluster(settings=quick()) as c:
        await c.api.delete("AscendJob", P0, NAMESPACE)
        await c.until(lambda: c.events("OrphanTable"), "people are told")
        await c.until(lambda: c.published() == {D0}, "withdrawn")
        assert RINGS in shown(c)
        assert metric(c.app, "mindie_ha_notices_total", reason="OrphanTable") == 1


async def test_one_job_id_in_two_namespaces_is_named_and_peers_are_told_apart() -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        await c.apply(second_service("mindie-ms"))
        await c.until(lambda: c.published(namespace=OTHER) == {P0, D0}, "the namesake")
        await c.until(lambda: len(c.events("SharedJobId")) == 2, "both are told")
        assert "also used in other" in shown(c)
        desk = c.app.desk
        for namespace in (NAMESPACE, OTHER):
            pod = c.pods("mindie-ms-controller", namespace=namespace)["mindie-ms-controller-master-0"]
            service = desk.resolve("mindie-ms", pod["status"]["podIP"])
            assert getattr(service, "namespace", "") == namespace
        stranger = desk.resolve("mindie-ms", "192.0.2.1")
        assert "exists in the namespaces mindie, other" in str(stranger)
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.recovered(P0)
        assert c.published() == {P0, D0}


@pytest.mark.parametrize(
    ("kind", "tamper", "state"),
    [
        pytest.param("workload", {"ledger.json": "{"}, "observed", id="workload-broken"),
        pytest.param("workload", {"digest": "0"}, "observed", id="workload-digest"),
        pytest.param("workload", {"ledger.json": None}, "observed", id="workload-no-key"),
        pytest.param("service", {"ledger.json": "{"}, "ok", id="service-broken"),
        pytest.param("service", {"digest": ""}, "ok", id="service-digest"),
    ],
)
async def test_a_ledger_that_cannot_be_read_makes_its_owner_observe_only(
    kind: str, tamper: Object, state: str
) -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        await two_services(c)
        await c.until(lambda: c.ledger(P0), "a ledger")
        prefix = f"mindie-ha-ledger-ascendjob-{P0}" if kind == "workload" else "mindie-ha-service-"
        name = next(
            one["metadata"]["name"]
            for one in c.all("ConfigMap")
            if one["metadata"]["name"].startswith(prefix)
        )
        c.judge.tampered.add(name)
        broken = await c.api.patch("ConfigMap", name, NAMESPACE, {"data": tamper})
        await c.until(lambda: c.events("LedgerUnreadable"), "people are told")
        await c.world.set_faults(c.node_of(f"{P0}-worker-0"), [CHIP])
        await c.clock.sleep(10)
        assert bool(c.judge.deleted) is (kind == "service")
        assert metric(c.app, "mindie_ha_ledgers_unreadable", kind=kind) == 1
        assert name in shown(c)
        now = c.get("ConfigMap", name)
        assert now is not None
        assert now["data"] == broken["data"]
        if kind == "workload":
            assert c.state(P0) == state
        await other_recovers(c)


@pytest.mark.parametrize("value", ["999999999999", "1e9", "ten", "x" * 63, ""], ids=str)
async def test_an_absurd_retry_label_is_no_budget(value: str) -> None:
    async with cluster(settings=quick()) as c:
        await c.label_job(D0, fault_retry_times=value)
        await c.exit_container(f"{D0}-worker-0", 1)
        await c.until(lambda: c.events("SoftwareFaultNotPaid") or c.events("OwnerGaveUp"), "told")
        assert not c.judge.deleted


async def test_absurd_annotations_of_a_pod_cost_its_instance_only() -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        await two_services(c)
        notes = {
            "hccl/rankIndex": "9" * 40,
            "huawei.com/AscendReal": "," * 5000,
            "ascend.kubectl.kubernetes.io/ascend-910-configuration": "{" * 5000,
        }
        for name in c.pods(P0):
            await c.api.patch("Pod", name, NAMESPACE, {"metadata": {"annotations": notes}})
        await c.clock.sleep(5)
        await other_recovers(c)
