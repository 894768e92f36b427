"""What the Ascend Operator writes as `hccl.json`, for the tiny world of the planner."""

from __future__ import annotations

from mindie_ha.model.pods import Pod


def hccl(pods: list[Pod]) -> dict[str, object]:
    """The operator's table for `pods`."""
    servers = []
    rank = 0
    for pod in pods:
        devices = []
        for device in pod.devices:
            number = device.removeprefix("Ascend910-")
            node = int(pod.host_ip.rsplit(".", 1)[1])
            address = f"192.168.{node}.{int(number) + 1}"
            devices.append({"device_id": number, "device_ip": address, "rank_id": str(rank)})
            rank += 1
        servers.append(
            {"server_id": pod.uid, "host_ip": pod.host_ip, "container_ip": pod.ip, "device": devices}
        )
    return {
        "status": "completed",
        "version": "1.0",
        "server_count": str(len(servers)),
        "server_list": servers,
    }
