"""An instance is published only if its table lists exactly its live pods and the consumer takes its group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.ranktables import Device, HcclServer, HcclTable, InstancePod, Severity
from mindie_ha.ranktable.deploys import deploy_server
from mindie_ha.ranktable.members import instance_pod, ms_pod
from tests.ranktable.examples import codes, instance, judge, pods_of, rejects, super_pod_instance, uid


def _with_server(table: HcclTable, **changes: object) -> HcclTable:
    first, *others = table.servers
    return replace(table, servers=(replace(first, **changes), *others))  # type: ignore[arg-type]


def _with_device(table: HcclTable, **changes: object) -> HcclTable:
    first, *others = table.servers[0].devices
    return _with_server(table, devices=(replace(first, **changes), *others))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "table", [instance(servers=3), super_pod_instance(servers=2)], ids=["host-address", "pod-uid"]
)
def test_an_honest_instance_has_no_findings(table: HcclTable) -> None:
    assert judge(table) == ()


BASE = instance(servers=2)
ZERO = "0.0.0.0"  # noqa: S104 - the address the consumer refuses
CARDS = tuple(Device(str(number), f"29.9.{number}.1", str(number)) for number in range(129))
FAR = tuple(HcclServer(f"10.7.0.{n + 1}", (Device("0", f"29.7.0.{n + 1}", str(n)),)) for n in range(97))


@pytest.mark.parametrize(
    ("table", "code", "words"),
    [
        pytest.param(
            replace(BASE, status="initializing"), "not-completed", "operator waits", id="initializing"
        ),
        pytest.param(replace(BASE, status="Completed"), "not-completed", "'Completed'", id="status-case"),
        pytest.param(replace(BASE, server_count="3"), "server-count", "'3', the list has 2", id="count"),
        pytest.param(
            replace(BASE, servers=FAR, server_count="97"), "server-count", "97 servers", id="97-servers"
        ),
        pytest.param(_with_server(BASE, devices=()), "device-count", "0 devices", id="no-cards"),
        pytest.param(_with_server(BASE, devices=CARDS), "device-count", "129 devices", id="129-cards"),
        pytest.param(
            _with_device(BASE, device_ip=""), "device-ip", "unknown on node '10.0.1.1'", id="ip-empty"
        ),
        pytest.param(_with_device(BASE, device_ip="-1"), "device-ip", "'-1'", id="ip-minus-one"),
        pytest.param(_with_device(BASE, device_ip="-.-.-.-"), "device-ip", "'-.-.-.-'", id="ip-dashes"),
        pytest.param(_with_device(BASE, device_ip=ZERO), "device-ip", ZERO, id="ip-zero"),
        pytest.param(_with_device(BASE, device_ip="::"), "device-ip", "'::'", id="ip-zero-v6"),
        pytest.param(_with_device(BASE, device_id="-1"), "device-id", "'-1'", id="card-negative"),
        pytest.param(_with_device(BASE, device_id="2049"), "device-id", "0 to 2048", id="card-too-high"),
        pytest.param(_with_device(BASE, device_id="٣"), "device-id", "u0663", id="card-foreign-digit"),
        pytest.param(_with_device(BASE, rank_id=""), "rank", "not a number", id="rank-empty"),
        pytest.param(_with_device(BASE, rank_id="2049"), "rank", "0 to 2048", id="rank-too-high"),
        pytest.param(
            _with_device(BASE, rank_id="1"), "rank", "rank 1 occurs more than once", id="rank-twice"
        ),
        pytest.param(_with_device(BASE, rank_id="4"), "rank", "0 is missing", id="rank-gap"),
        pytest.param(_with_device(BASE, device_id="1"), "card-repeated", "listed 2 times", id="card-twice"),
        pytest.param(
            _with_device(BASE, super_device_id=str(2**30 + 1)), "super-device-id", "1073741825", id="super-id"
        ),
        pytest.param(_with_server(BASE, container_ip=""), "pod-stale", "no live pod", id="no-pod-address"),
        pytest.param(
            _with_server(BASE, host_ip="10.0.9.9"), "host-ip", "runs on '10.0.1.1'", id="other-host"
        ),
        pytest.param(
            _with_server(BASE, container_ip="10.0.1.1", host_ip="172.16.1.1", server_id="172.16.1.1"),
            "swapped",
            "pod server-0 has 172.16.1.1 on host 10.0.1.1",
            id="swapped",
        ),
    ],
)
def test_what_forbids_publishing(table: HcclTable, code: str, words: str) -> None:
    findings = judge(table, pods=pods_of(BASE))
    assert any(
        finding.code == code and finding.severity is Severity.REJECT and words in finding.message
        for finding in findings
    ), findings


@pytest.mark.parametrize(
    ("table", "code"),
    [
        pytest.param(replace(BASE, version=""), "version", id="no-version"),
        pytest.param(replace(BASE, version="1.2"), "version", id="a3-without-super-ids"),
        pytest.param(_with_device(BASE, super_device_id="5"), "version", id="a2-with-super-ids"),
        pytest.param(replace(BASE, server_count=""), "server-count", id="no-count"),
        pytest.param(_with_device(BASE, device_ip="29.1.1.2"), "device-ip-repeated", id="same-device-ip"),
        pytest.param(
            replace(super_pod_instance(), servers=super_pod_instance().servers[:1], server_count="1"),
            "super-pod",
            id="super-pod-of-nobody",
        ),
    ],
)
def test_what_only_warns(table: HcclTable, code: str) -> None:
    findings = judge(table)
    assert codes(findings, Severity.WARN) == {code}
    assert rejects(findings) == set()


def test_the_loopback_device_address_of_test_clusters_is_an_address() -> None:
    """The operator and the consumer both take 127.0.0.1."""
    assert judge(_with_device(instance(), device_ip="127.0.0.1")) == ()


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_number_of_servers_is_the_number_of_replicas(replicas: int) -> None:
    assert rejects(judge(BASE, replicas=replicas)) == {"replicas"}


Pods = tuple[InstancePod, ...]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            lambda p: (replace(p[0], uid="new"), p[1]), {"pod-stale", "pod-missing"}, id="other-uid"
        ),
        pytest.param(lambda p: (replace(p[0], alive=False), p[1]), {"pod-stale"}, id="dying"),
        pytest.param(lambda p: p[:1], {"pod-stale"}, id="vanished"),
        pytest.param(
            lambda p: (*p, replace(p[0], uid="x", pod_ip="172.16.1.9")), {"pod-missing"}, id="extra"
        ),
        pytest.param(lambda p: (*p, replace(p[0], uid="x", alive=False)), set(), id="extra-dying"),
        pytest.param(lambda p: (replace(p[0], pod_ip=""), p[1]), {"pod-ip"}, id="no-ip-yet"),
        pytest.param(lambda p: (replace(p[0], host_ip="10.0.9.9"), p[1]), {"host-ip"}, id="moved"),
    ],
)
def test_a_table_of_pod_uids_fits_exactly_the_live_pods(
    change: Callable[[Pods], Pods], expected: set[str]
) -> None:
    table = super_pod_instance()
    assert rejects(judge(table, pods=change(pods_of(table)))) == expected


def test_a_server_listed_twice_is_refused() -> None:
    table = super_pod_instance()
    twice = replace(table, servers=(table.servers[0], table.servers[0]))
    assert {"address-repeated", "pod-missing", "rank", "card-repeated"} == rejects(
        judge(twice, pods=pods_of(table))
    )


def test_an_ipv6_instance_is_taken() -> None:
    server = HcclServer("fd00::21", (Device("0", "fd00:29::1", "0"),), "fd00::21", "fd00:10::7")
    table = replace(instance(), servers=(server,))
    assert judge(table) == ()


@pytest.mark.parametrize(
    ("labels", "severity", "code", "value"),
    [
        pytest.param({"grt-server/deploy-server": "1"}, None, None, "1", id="standalone"),
        pytest.param({"grt-group/deploy-server": "2"}, None, None, "2", id="distributed"),
        pytest.param({"app": "x"}, Severity.WARN, "deploy-none", "", id="none"),
        pytest.param({"grt-group/deploy-server": ""}, Severity.WARN, "deploy-none", "", id="empty"),
        pytest.param(
            {"grt-group/deploy-server": "yes"}, Severity.REJECT, "deploy-value", "yes", id="no-number"
        ),
        pytest.param(
            {"grt-group/deploy-server": "0", "grt-server/deploy-server": "0"},
            Severity.REJECT,
            "deploy-both",
            "",
            id="both",
        ),
    ],
)
def test_deploy_labels(
    labels: dict[str, str], severity: Severity | None, code: str | None, value: str
) -> None:
    assert [(finding.severity, finding.code) for finding in judge(instance(), labels=labels)] == (
        [(severity, code)] if severity else []
    )
    assert deploy_server(labels) == value


@pytest.mark.parametrize(
    ("phase", "terminating", "alive"),
    [
        (PodPhase.RUNNING, None, True),
        (PodPhase.PENDING, None, True),
        (PodPhase.RUNNING, 5.0, False),
        (PodPhase.FAILED, None, False),
        (PodPhase.SUCCEEDED, None, False),
    ],
    ids=["running", "pending", "terminating", "failed", "succeeded"],
)
def test_who_is_a_member(phase: PodPhase, terminating: float | None, alive: bool) -> None:
    pod = Pod(
        key=ObjectKey("ns", "server-0"),
        uid=PodUID(uid(1, 0)),
        owner_uid="o",
        phase=phase,
        ip="172.16.1.1",
        host_ip="10.0.1.1",
        terminating_since_s=terminating,
    )
    assert instance_pod(pod) == InstancePod("server-0", uid(1, 0), "10.0.1.1", "172.16.1.1", alive)
    assert ms_pod(pod).alive is alive
