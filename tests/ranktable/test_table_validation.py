"""Every group is held to the consumer's loader.

The first table walks the assertions of the consumer's own tests (motor contract §6.1, rules §1.4): what its
loader fails on, or answers with success and zero nodes, must be rejected. Where we say more than the loader,
the case's id ends in "ours".
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindie_ha.model.ranktables import Device, GlobalTable, Group, Ports, Server, Severity, SuperPod, verdict
from mindie_ha.ranktable.encode import encode
from mindie_ha.ranktable.reading import MAX_GLOBAL_BYTES, read_global
from mindie_ha.ranktable.validate import validate
from tests.ranktable.examples import codes, global_table, instance, rejects, super_pod_instance

TABLE = global_table({"a": instance(1, servers=2), "b": instance(2, servers=2)})
ZERO = "0.0.0.0"  # noqa: S104 - the address the consumer refuses


def _with_group(position: int, **changes: object) -> GlobalTable:
    groups = list(TABLE.groups)
    groups[position] = replace(groups[position], **changes)  # type: ignore[arg-type]
    return replace(TABLE, groups=tuple(groups))


def _with_server(position: int, **changes: object) -> GlobalTable:
    first, *others = TABLE.groups[position].servers
    return _with_group(position, servers=(replace(first, **changes), *others))  # type: ignore[arg-type]


def _with_device(**changes: object) -> GlobalTable:
    first, *others = TABLE.groups[2].servers[0].devices
    return _with_server(2, devices=(replace(first, **changes), *others))  # type: ignore[arg-type]


def _servers(count: int, group: int = 5) -> tuple[Server, ...]:
    device = Device("0", "29.0.0.1", "0", device_logical_id="0")
    return tuple(Server(f"10.{group}.0.{n + 1}", f"172.{group}.0.{n + 1}", (device,)) for n in range(count))


def _groups(count: int) -> GlobalTable:
    extra = tuple(Group(str(n), _servers(1, n), "1", "1") for n in range(4, count + 1))
    return replace(TABLE, groups=(*TABLE.groups, *extra))


CARDS = tuple(Device("0", "29.0.0.1", "0", device_logical_id="0") for _ in range(129))
DEVICES = (Device("0", "29.1.1.1", "0", device_logical_id="0"),)

REJECTED = [
    pytest.param(replace(TABLE, groups=()), "group-count", id="list-empty"),
    pytest.param(_groups(98), "group-count", id="99-groups"),
    pytest.param(replace(TABLE, groups=TABLE.groups[1:]), "group-missing", id="no-group-0"),
    pytest.param(
        replace(TABLE, groups=(TABLE.groups[0], *TABLE.groups[2:])), "group-missing", id="no-group-1-ours"
    ),
    pytest.param(_with_server(0, server_ip=ZERO), "server-ip", id="coordinator-zero"),
    pytest.param(_with_server(0, server_ip=""), "server-ip", id="coordinator-entry-empty"),
    pytest.param(_with_group(0, servers=_servers(3)), "server-count", id="three-coordinators"),
    pytest.param(_with_group(2, group_id="-1"), "group-id", id="group-id-negative"),
    pytest.param(_with_group(2, group_id="02"), "group-id", id="group-id-not-plain-ours"),
    pytest.param(_with_group(2, group_id="3"), "group-id", id="group-id-twice-ours"),
    pytest.param(_with_server(2, server_ip=ZERO), "server-ip", id="server-ip-zero"),
    pytest.param(_with_server(3, server_ip="host"), "server-ip", id="bad-address-in-a-later-group"),
    pytest.param(_with_server(2, server_id="node_0"), "server-id", id="server-id-not-an-address"),
    pytest.param(_with_device(device_ip=ZERO), "device-ip", id="device-ip-zero"),
    pytest.param(_with_device(device_ip=""), "device-ip", id="device-ip-empty"),
    pytest.param(_with_server(2, devices=()), "device-count", id="no-devices"),
    pytest.param(_with_server(2, devices=CARDS), "device-count", id="129-devices"),
    pytest.param(_with_device(device_id="-1"), "device-id", id="device-id-negative"),
    pytest.param(_with_device(device_logical_id="2049"), "device-id", id="logical-id-too-high"),
    pytest.param(_with_device(rank_id="x"), "rank", id="rank-no-number"),
    pytest.param(_with_device(super_device_id="1073741825"), "super-device-id", id="super-id-1073741825"),
    pytest.param(_with_group(2, servers=_servers(97)), "server-count", id="97-servers"),
    pytest.param(_with_server(2, ports=Ports(mgmt="1")), "port", id="port-1"),
    pytest.param(_with_server(2, ports=Ports(inter_comm="65536")), "port", id="port-65536"),
    pytest.param(_with_group(2, deploy_server="yes"), "deploy-value", id="deploy-no-number"),
    pytest.param(_with_server(2, server_ip="172.16.1.2"), "address-repeated", id="ip-and-port-twice"),
    pytest.param(_with_server(3, server_ip="172.16.1.2"), "address-repeated", id="ip-and-port-in-two-groups"),
    pytest.param(_with_group(2, servers=()), "no-servers", id="server-list-empty-ours"),
    pytest.param(replace(TABLE, groups=TABLE.groups[:2]), "no-servers", id="no-server-group"),
    pytest.param(replace(TABLE, status="initializing"), "not-completed", id="status-ours"),
]


@pytest.mark.parametrize(("table", "code"), REJECTED)
def test_what_the_consumer_would_refuse_or_misread_is_rejected(table: GlobalTable, code: str) -> None:
    assert code in rejects(validate(table))


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(TABLE, id="two-instances-of-two"),
        pytest.param(global_table({"a": instance()}), id="only-one-server"),
        pytest.param(_with_group(0, servers=(), server_count="0"), id="coordinator-list-empty"),
        pytest.param(_with_group(1, servers=(), server_count="0"), id="controller-list-empty"),
        pytest.param(_with_server(0, server_id="coordinator"), id="coordinator-id-no-address"),
        pytest.param(_with_server(0, server_id=""), id="coordinator-without-id"),
        pytest.param(_with_server(2, ports=Ports("1025", "1026", "1027", "65535")), id="ports-given"),
        pytest.param(global_table({"a": super_pod_instance()}), id="super-pod"),
        pytest.param(replace(TABLE, groups=tuple(reversed(TABLE.groups))), id="servers-before-ms"),
        pytest.param(_with_device(super_device_id="1073741824"), id="super-id-highest"),
    ],
)
def test_what_the_consumer_takes_is_accepted(table: GlobalTable) -> None:
    assert validate(table) == ()


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param(replace(TABLE, version=""), {"version"}, id="no-version"),
        pytest.param(_with_group(2, server_count="4"), {"server-count"}, id="count"),
        pytest.param(_with_group(2, deploy_server=""), {"deploy-none"}, id="no-deploy"),
        pytest.param(_with_server(1, server_ip="x"), {"server-ip"}, id="controller-address"),
        pytest.param(_with_device(rank_id="1"), {"rank"}, id="rank-twice"),
        pytest.param(
            _with_server(2, server_id="10.0.1.2"), {"server-id-repeated", "card-repeated"}, id="host-twice"
        ),
        pytest.param(_with_device(device_ip="29.1.1.2"), {"device-ip-repeated"}, id="device-ip-twice"),
        pytest.param(
            _with_server(0, server_ip="192.168.11.6"), {"address-repeated"}, id="ms-share-an-address"
        ),
        pytest.param(
            _with_group(2, super_pods=(SuperPod("0", ("10.0.1.1", "")),)),
            {"super-pod"},
            id="super-pod-unknown",
        ),
        pytest.param(
            _with_group(
                2, super_pods=(SuperPod("0", ("10.0.1.1", "10.0.1.2")), SuperPod("1", ("10.0.1.1",)))
            ),
            {"super-pod"},
            id="two-super-pods",
        ),
    ],
)
def test_what_a_person_should_look_at_warns(table: GlobalTable, expected: set[str]) -> None:
    findings = validate(table)
    assert codes(findings) == expected
    assert verdict(findings) is Severity.WARN


def test_other_ports_make_other_endpoints_on_one_address() -> None:
    """The loader tells nodes apart by address and port."""
    first = Server("10.0.0.1", "172.16.0.1", DEVICES, ports=Ports("2025", "2026"))
    second = replace(first, ports=Ports("3025", "3026"))
    assert "address-repeated" not in codes(
        validate(_with_group(2, servers=(first, second), server_count="2"))
    )
    second = replace(first, ports=Ports("3025", "2026"))
    assert "address-repeated" in rejects(validate(_with_group(2, servers=(first, second), server_count="2")))


def test_the_single_node_mode_takes_three_groups() -> None:
    assert "group-count" in rejects(validate(TABLE, multi_node=False))
    assert rejects(validate(global_table({"a": instance()}), multi_node=False)) == set()


@pytest.mark.parametrize(
    ("hardware_type", "ok"), [("800I A2(64G)", True), ("800I A2(32G)", True), ("800I-A2", False), ("", False)]
)
def test_the_heterogeneous_mode_asks_for_a_known_hardware(hardware_type: str, ok: bool) -> None:
    table = global_table({"a": instance()})
    group = table.groups[2]
    named = replace(group, servers=(replace(group.servers[0], hardware_type=hardware_type),))
    findings = validate(replace(table, groups=(*table.groups[:2], named)), heterogeneous=True)
    assert (rejects(findings) == set()) is ok


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param(None, "$", id="none"),
        pytest.param("{", "$", id="truncated"),
        pytest.param('{"status":"completed","status":"x"}', "$", id="key-twice"),
        pytest.param('{"status":7}', "$.status", id="status-number"),
        pytest.param('{"server_group_list":null}', "$.server_group_list", id="null-list"),
        pytest.param('{"server_group_list":[null]}', "$.server_group_list[0]", id="null-group"),
        pytest.param(
            '{"server_group_list":[{"group_id":"2"}]}', "$.server_group_list[0]", id="no-server-list"
        ),
        pytest.param(
            '{"server_group_list":[{"group_id":2}]}', "$.server_group_list[0].group_id", id="id-number"
        ),
        pytest.param('{"x":"' + "y" * MAX_GLOBAL_BYTES + '"}', "$", id="too-large"),
    ],
)
def test_text_that_is_no_table_is_one_rejecting_finding(text: str | None, where: str) -> None:
    reading = read_global(text)
    assert reading.table is None
    assert [(f.severity, f.code, f.where) for f in reading.findings] == [
        (Severity.REJECT, "unreadable", where)
    ]


def test_fields_that_the_consumer_never_reads_only_warn_on_a_wrong_type() -> None:
    root = json.loads(encode(TABLE))
    root["version"] = 1.0
    root["server_group_list"][2]["server_count"] = 2
    reading = read_global(json.dumps(root))
    assert verdict(reading.findings) is Severity.WARN
    assert [finding.where for finding in reading.findings if finding.code == "unreadable"] == [
        "$.version",
        "$.server_group_list[2].server_count",
    ]


def test_a_table_of_the_deploy_script_is_read() -> None:
    """Server groups first, then 1, then 0; no server_id in groups 0, 1. Source: rank table contract §9.2."""
    root = json.loads(encode(global_table({"a": instance()})))
    root["server_group_list"].reverse()
    for group in root["server_group_list"][1:]:
        del group["server_list"][0]["server_id"]
    assert read_global(json.dumps(root)).findings == ()


_KEYS = st.sampled_from(
    [
        *("version", "status", "server_group_list", "group_id", "server_list", "server_id", "server_ip"),
        *("device", "device_ip", "super_pod_list", "super_pod_id", "mgmt_port", "server_count", "x"),
    ]
)
_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_KEYS, _VALUES, max_size=4))
def test_reading_never_raises(value: dict[str, object]) -> None:
    reading = read_global(json.dumps(value))
    assert reading.table is not None or verdict(reading.findings) is Severity.REJECT
