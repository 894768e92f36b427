"""Failures that real clusters had with rank tables; each test is named after its number in the collection.

Left to other rooms: 029 (CheckCode, intake), of 005 the patch of ranks, of 019 the clock, of 023 the lint.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.pods import Pod
from mindie_ha.model.ranktables import Device, InstancePod, RanktableError, Server, Severity
from mindie_ha.ranktable.encode import encode
from mindie_ha.ranktable.hccl import parse_hccl, rings_config_name
from mindie_ha.ranktable.ids import assign_ids
from mindie_ha.ranktable.validate import validate
from mindie_ha.ranktable.waits import CONFIGURATIONS, REAL_CARDS, why_initializing
from tests.ranktable.examples import (
    codes,
    global_table,
    hccl_text,
    instance,
    judge,
    pods_of,
    rejects,
    super_pod_instance,
)


def test_001_two_pods_of_one_instance_on_one_host() -> None:
    apart = super_pod_instance(servers=2, cards=8)
    first, second = apart.servers
    cards = tuple(replace(card, device_id=str(index + 8)) for index, card in enumerate(second.devices))
    table = replace(apart, servers=(first, replace(second, host_ip=first.host_ip, devices=cards)))
    assert judge(table) == ()
    whole = global_table({"a": table})
    group = whole.groups[2]
    devices = [device for server in group.servers for device in server.devices]
    assert [server.server_ip for server in group.servers] == [first.container_ip, second.container_ip]
    assert [device.rank_id for device in devices] == [str(rank) for rank in range(16)]
    assert [device.device_id for device in devices] == [str(card) for card in range(16)]
    assert encode(global_table({"a": replace(table, servers=table.servers[::-1])})) == encode(whole)
    assert codes(validate(whole)) == {"server-id-repeated"}


def test_003_replaced_pods_with_an_unchanged_count() -> None:
    table = super_pod_instance()
    old, kept = pods_of(table)
    dying, new = (
        replace(old, alive=False),
        replace(old, uid="11111111-0000-4000-8000-00000000000a", pod_ip="172.16.1.7"),
    )
    assert rejects(judge(table, pods=(dying, kept))) == {"pod-stale"}
    assert rejects(judge(table, pods=(dying, new, kept))) == {"pod-stale", "pod-missing"}
    first = replace(table.servers[0], server_id=new.uid, container_ip=new.pod_ip)
    rebuilt = replace(table, servers=(first, table.servers[1]), super_pods=())
    assert judge(rebuilt, pods=(dying, new, kept)) == ()


def test_005_half_of_the_ranks_written() -> None:
    table = instance(servers=4, cards=1)
    third = replace(table.servers[2], devices=(replace(table.servers[2].devices[0], rank_id="0"),))
    broken = replace(table, servers=(*table.servers[:2], third, table.servers[3]))
    messages = [finding.message for finding in judge(broken) if finding.code == "rank"]
    assert messages == ["rank 0 occurs more than once", "ranks are not 0..3 without gaps: 2 is missing"]


def test_007_a_restart_gives_identical_bytes() -> None:
    tables = {"s1": instance(1), "s0": super_pod_instance(2)}
    known = assign_ids({}, ["s1"])
    ids = assign_ids(known, tables)
    first = encode(global_table(tables, ids=ids))
    again = assign_ids(json.loads(json.dumps(ids)), list(tables)[::-1])
    assert encode(global_table(dict(reversed(tables.items())), ids=again)) == first


def test_009_one_bad_table_among_many_hurts_only_itself() -> None:
    both = {"grt-server/deploy-server": "1", "grt-group/deploy-server": "1"}
    good = instance(1)
    assert rejects(judge(instance(2), labels=both)) == {"deploy-both"}
    with pytest.raises(RanktableError, match=r"hccl\.json is not JSON"):
        parse_hccl(hccl_text(instance(3))[:100])
    ids = assign_ids({}, ["s1", "s2", "s3"])
    table = global_table({"s1": good}, ids=ids)
    assert judge(good) == ()
    assert validate(table) == ()


def test_011_swapped_addresses_are_called_so() -> None:
    table = parse_hccl(
        '{"status":"completed","server_count":"1","version":"1.0","server_list":[{"server_id":"192.168.0.1",'
        '"container_ip":"192.168.0.2","device":[{"device_id":"0","device_ip":"29.0.0.1","rank_id":"0"}]}]}'
    )
    right = InstancePod("server-0", "uid", host_ip="192.168.0.1", pod_ip="192.168.0.2")
    assert judge(table, pods=[right]) == ()
    server = global_table({"a": table}).groups[2].servers[0]
    assert (server.server_id, server.server_ip) == ("192.168.0.1", "192.168.0.2")
    wrong = replace(right, host_ip="192.168.0.2", pod_ip="192.168.0.1")
    assert "swapped" in rejects(judge(table, pods=[wrong]))


def test_013_a_placeholder_device_address_is_not_published() -> None:
    table = instance(servers=2)
    servers = tuple(
        replace(server, devices=tuple(replace(card, device_ip="-.-.-.-") for card in server.devices))
        for server in table.servers
    )
    findings = judge(replace(table, servers=servers, server_count="4"))
    assert rejects(findings) == {"device-ip", "server-count"}
    assert "server_count says '4', the list has 2" in [finding.message for finding in findings]


def test_015_a_table_of_another_chip_or_another_life_is_not_trusted() -> None:
    with pytest.raises(RanktableError, match="A5"):
        parse_hccl('{"status":"completed","version":"2.0","rank_list":[]}')
    yesterday = super_pod_instance()
    today = tuple(
        replace(pod, uid=f"99999999-0000-4000-8000-{n:012x}") for n, pod in enumerate(pods_of(yesterday))
    )
    assert rejects(judge(yesterday, pods=today)) == {"pod-stale", "pod-missing"}


def test_017_wrong_count_and_repeated_ids_are_findings_not_crashes() -> None:
    """96 servers may share a server_id where address and cards tell them apart."""
    servers = tuple(
        Server(
            "127.0.0.1", f"172.16.0.{n + 1}", (Device(str(n), f"29.0.0.{n + 1}", "0", device_logical_id="0"),)
        )
        for n in range(96)
    )
    whole = global_table({"a": instance()})
    table = replace(
        whole, groups=(*whole.groups[:2], replace(whole.groups[2], servers=servers, server_count="4"))
    )
    findings = validate(table, multi_node=False)
    assert codes(findings) == {"server-count", "server-id-repeated"}
    assert codes(findings, Severity.REJECT) == set()


def _pod(*, node: str = "node-3", ip: str = "172.16.0.1", **annotations: str) -> Pod:
    keys = {"configuration": CONFIGURATIONS[0], "cards": REAL_CARDS}
    return Pod(
        key=ObjectKey("ns", "server-0"),
        uid=PodUID("u"),
        owner_uid="o",
        node=node,
        ip=ip,
        annotations={keys[name]: value for name, value in annotations.items()},
    )


@pytest.mark.parametrize(
    ("pods", "cause"),
    [
        pytest.param([], "0 of 1 pods are there", id="no-pod"),
        pytest.param([replace(_pod(), terminating_since_s=1.0)], "server-0 still terminates", id="dying"),
        pytest.param(
            [replace(_pod(node=""), unschedulable="0/4 nodes")], "no node: '0/4 nodes'", id="pending"
        ),
        pytest.param([_pod()], "Volcano or the device plugin on 'node-3'", id="019-no-annotation"),
        pytest.param(
            [_pod(cards="Ascend910-0")], "device IP unknown on node 'node-3'", id="021-only-real-cards"
        ),
        pytest.param(
            [_pod(configuration='{"devices":[{"device_id":"0","device_ip":"-1"}]}')],
            "device IP unknown on node 'node-3': pod server-0 has '-1'",
            id="021-placeholder",
        ),
        pytest.param([_pod(configuration="{")], "unreadable device configuration", id="broken-annotation"),
        pytest.param([_pod(configuration='{"devices":[]}', ip="")], "has no address yet", id="no-address"),
        pytest.param(
            [_pod(configuration='{"devices":[{"device_ip":"29.0.0.1"}]}')],
            "the Ascend Operator is not running or does not own this job",
            id="019-no-operator",
        ),
    ],
)
def test_019_021_a_table_that_stays_initializing_has_a_probable_cause(pods: list[Pod], cause: str) -> None:
    assert cause in why_initializing(pods, replicas=1)
    assert rejects(judge(parse_hccl('{"status":"initializing"}'))) == {"not-completed"}


def test_023_the_config_map_is_found_by_rule() -> None:
    assert rings_config_name("job-server-0") == "rings-config-job-server-0"


def test_025_an_instance_keeps_its_group() -> None:
    ids: dict[str, int] = {}
    for live in (["s2"], ["s2", "s0"], ["s2", "s0", "s1"]):
        ids = assign_ids(ids, live)
    assert ids == {"s2": 2, "s0": 3, "s1": 4}
    assert assign_ids(ids, ["s0", "s1", "s2"]) == ids
    assert assign_ids(ids, ["s1", "s2"]) == {"s2": 2, "s1": 4}


@pytest.mark.parametrize(
    "server_id", ["node_0", "1", "29.1.1.1"], ids=["name", "number", "address-of-card-0"]
)
def test_027_server_id_is_opaque_and_the_pod_names_the_node(server_id: str) -> None:
    """Unknown keys are dropped in the global table; the ConfigMap's own text is never written by us."""
    root = json.loads(hccl_text(instance()))
    root["server_list"][0].update(server_id=server_id, host_nic_ip="10.9.9.9")
    root["server_list"][0]["device"][0]["device_port"] = "16666"
    table = parse_hccl(json.dumps(root))
    assert judge(table) == ()
    assert global_table({"a": table}).groups[2].servers[0].server_id == "10.0.1.1"
    assert b"device_port" not in encode(global_table({"a": table}))


def test_113_a_new_pod_with_the_old_name_is_another_pod() -> None:
    table = super_pod_instance(servers=1)
    (pod,) = pods_of(table)
    again = replace(pod, uid="22222222-0000-4000-8000-000000000000")
    assert again.name == pod.name
    assert rejects(judge(table, pods=[again])) == {"pod-stale", "pod-missing"}


def test_133_both_labels_or_none() -> None:
    both = {"grt-server/deploy-server": "0", "grt-group/deploy-server": "0"}
    assert rejects(judge(instance(), labels=both)) == {"deploy-both"}
    assert codes(judge(instance(), labels={}), Severity.WARN) == {"deploy-none"}
    assert rejects(judge(instance(), labels={})) == set()
    assert b"deploy_server" not in encode(global_table({"a": instance()}, deploy={"a": ""}))
