"""The one byte form of a global table, and its digest.

Compact JSON, UTF-8, keys in the order of the contract, empty optional keys left out. Equal tables give
equal bytes, so the digest decides whether something is sent. Source: rank table contract §2.1.
"""

from __future__ import annotations

import hashlib

import orjson

from mindie_ha.model.ranktables import Device, GlobalTable, Group, Server, SuperPod


def encode(table: GlobalTable) -> bytes:
    """Canonical bytes of `table`, as they go over every channel."""
    return orjson.dumps(
        {
            "version": table.version,
            "status": table.status,
            "server_group_list": [_group(group) for group in table.groups],
        }
    )


def digest(data: bytes) -> str:
    """SHA-256 of canonical bytes, lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def _group(group: Group) -> dict[str, object]:
    item: dict[str, object] = {"group_id": group.group_id}
    if group.deploy_server:
        item["deploy_server"] = group.deploy_server
    item["server_count"] = group.server_count
    item["server_list"] = [_server(server) for server in group.servers]
    if group.super_pods:
        item["super_pod_list"] = [_super_pod(pod) for pod in group.super_pods]
    return item


def _server(server: Server) -> dict[str, object]:
    item: dict[str, object] = {}
    if server.devices:
        item["device"] = [_device(device) for device in server.devices]
    item["server_id"] = server.server_id
    optional = {
        "server_ip": server.server_ip,
        "hardware_type": server.hardware_type,
        "predict_port": server.ports.predict,
        "mgmt_port": server.ports.mgmt,
        "metric_port": server.ports.metric,
        "inter_comm_port": server.ports.inter_comm,
    }
    item.update({key: value for key, value in optional.items() if value})
    return item


def _device(device: Device) -> dict[str, str]:
    item = {"device_id": device.device_id, "device_ip": device.device_ip}
    if device.super_device_id:
        item["super_device_id"] = device.super_device_id
    if device.device_logical_id:
        item["device_logical_id"] = device.device_logical_id
    item["rank_id"] = device.rank_id
    return item


def _super_pod(pod: SuperPod) -> dict[str, object]:
    return {
        "super_pod_id": pod.super_pod_id,
        "server_list": [{"server_id": server_id} for server_id in pod.server_ids],
    }


__all__ = ["digest", "encode"]
