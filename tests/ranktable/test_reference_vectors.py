"""What the reference's own unit tests say about the global table. Source: rank table contract §7."""

from __future__ import annotations

import json

import pytest

from mindie_ha.model.ranktables import Device, HcclServer, HcclTable, MsPod, SuperPod, TableInstance
from mindie_ha.ranktable.build import build
from mindie_ha.ranktable.encode import encode
from mindie_ha.ranktable.hccl import parse_hccl
from tests.ranktable.examples import global_table, instance


@pytest.mark.parametrize("pods", [[], [MsPod("a", "", "")]], ids=["no-pod", "not-scheduled"])
def test_a_role_without_usable_pods_is_an_empty_group(pods: list[MsPod]) -> None:
    """The reference gives no table at all; ours has the group, the caller decides when to publish it."""
    table = global_table({"a": instance()}, coordinators=pods, controllers=pods)
    assert [(group.group_id, group.server_count, group.servers) for group in table.groups[:2]] == [
        ("0", "0", ()),
        ("1", "0", ()),
    ]


def test_ms_pods_are_entered_by_host_and_pod_address() -> None:
    table = global_table(
        {"a": instance()}, controllers=[MsPod("c", host_ip="192.168.1.1", pod_ip="10.0.0.1")]
    )
    (server,) = table.groups[1].servers
    assert (server.server_id, server.server_ip) == ("192.168.1.1", "10.0.0.1")


def _one(*super_pods: SuperPod) -> HcclTable:
    device = Device("0", "29.0.0.1", "0", super_device_id="8888")
    server = HcclServer("192.168.1.2", (device,), "192.168.1.2", "10.0.0.2")
    return HcclTable("completed", "1.2", "1", (server,), super_pods)


def test_device_and_super_pod_values_are_kept() -> None:
    with_super_pod = json.loads(encode(global_table({"a": _one(SuperPod("1", ("192.168.1.2",)))})))
    group = with_super_pod["server_group_list"][2]
    assert group["server_list"][0]["device"] == [
        {
            "device_id": "0",
            "device_ip": "29.0.0.1",
            "super_device_id": "8888",
            "device_logical_id": "0",
            "rank_id": "0",
        }
    ]
    assert group["super_pod_list"] == [{"super_pod_id": "1", "server_list": [{"server_id": "192.168.1.2"}]}]
    without = json.loads(encode(global_table({"a": _one()})))
    assert "super_pod_list" not in without["server_group_list"][2]


def test_server_ids_of_four_nodes_become_their_hosts() -> None:
    servers = [
        {
            "server_id": f"node_{node}",
            "host_ip": f"172.16.0.{100 + node}",
            "container_ip": f"192.168.0.{100 + node}",
            "host_port": "1",
            "device": [
                {
                    "device_id": str(card),
                    "device_ip": f"29.0.{node}.{card + 1}",
                    "super_device_id": str(card + 4 * (node % 2)),
                    "rank_id": str(4 * node + card),
                    "device_port": "1",
                    "backup_device_ip": "29.9.9.9",
                    "backup_device_port": "1",
                }
                for card in range(4)
            ],
        }
        for node in range(4)
    ]
    super_pods = [
        {"super_pod_id": str(pod), "server_list": [{"server_id": f"node_{2 * pod + n}"} for n in range(2)]}
        for pod in range(2)
    ]
    text = json.dumps(
        {"status": "completed", "version": "1.2", "server_count": "4", "server_list": servers}
        | {"super_pod_list": super_pods}
    )
    data = encode(
        build(
            coordinators=(),
            controllers=(),
            instances=[TableInstance("a", parse_hccl(text), "1")],
            ids={"a": 2},
        )
    )
    group = json.loads(data)["server_group_list"][2]
    hosts = [f"172.16.0.{100 + node}" for node in range(4)]
    assert [server["server_id"] for server in group["server_list"]] == hosts
    assert [[item["server_id"] for item in pod["server_list"]] for pod in group["super_pod_list"]] == [
        hosts[:2],
        hosts[2:],
    ]
    assert b"port" not in data
    assert b"backup" not in data
    assert b"node_" not in data
