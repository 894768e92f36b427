"""The simulated machines: A2 servers with 8 cards, A3 super-pod servers with 16.

A `NodeModel` is everything the Node object, the Device Plugin and the scheduler say about the hardware.
Device addresses are made from the node's number, so that they are unique in the cluster and the same in
every run. An A3 card has a `super_device_id` that is unique inside its super pod.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mindie_ha.sim.client import Object

RESOURCE = "huawei.com/Ascend910"
CARD = "Ascend910"


@dataclass(frozen=True, slots=True)
class NodeModel:
    """One server. `super_pod` -2 means none, as the driver reports it."""

    name: str
    number: int
    accelerator_type: str = "module-910b-8"
    server_type: str = ""
    cards: int = 8
    super_pod: int = -2
    server_index: int = -2
    cpu: str = "192"
    memory: str = "1536Gi"

    @property
    def is_super_pod(self) -> bool:
        """Belongs to an A3 super pod."""
        return self.super_pod >= 0

    @property
    def card_names(self) -> tuple[str, ...]:
        """The cards in numeric order."""
        return tuple(f"{CARD}-{index}" for index in range(self.cards))

    def device_ip(self, index: int) -> str:
        """Address of a card on the parameter plane."""
        return f"29.{self.number // 250}.{self.number % 250}.{index + 1}"

    def super_device_id(self, index: int) -> int:
        """Number of a card inside its super pod; -2 where there is none."""
        return self.server_index * self.cards + index if self.is_super_pod else -2


def a2_nodes(count: int) -> tuple[NodeModel, ...]:
    """`count` Atlas 800I A2 servers named node-0, node-1, …"""
    return tuple(NodeModel(f"node-{number}", number) for number in range(count))


def a3_nodes(count: int, *, nodes_per_super_pod: int = 4) -> tuple[NodeModel, ...]:
    """`count` Atlas 800I A3 servers in super pods 0, 1, … of `nodes_per_super_pod`."""
    return tuple(
        NodeModel(
            f"node-{number}", number, "module-a3-16-super-pod", "A3", 16,
            super_pod=number // nodes_per_super_pod, server_index=number % nodes_per_super_pod,
        )
        for number in range(count)
    )  # fmt: skip


def base_device_infos(model: NodeModel) -> str:
    """The node annotation `baseDeviceInfos`."""
    infos = {
        card: {"IP": model.device_ip(index), "SuperDeviceID": max(model.super_device_id(index), 0)}
        for index, card in enumerate(model.card_names)
    }
    return json.dumps(infos, separators=(",", ":"))


def device_annotations(model: NodeModel) -> dict[str, str]:
    """What the Device Plugin keeps on its Node."""
    return {
        "baseDeviceInfos": base_device_infos(model),
        "superPodID": str(model.super_pod),
        "serverIndex": str(model.server_index),
        "serverType": model.server_type,
    }


def node_object(model: NodeModel) -> Object:
    """The Node as it registers itself."""
    return {
        "metadata": {
            "name": model.name,
            "labels": {
                "kubernetes.io/hostname": model.name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "arm64",
                "node-role.kubernetes.io/worker": "worker",
                "workerselector": "dls-worker-node",
                "accelerator": "huawei-Ascend910",
                "accelerator-type": model.accelerator_type,
                "host-arch": "huawei-arm",
            },
            "annotations": device_annotations(model),
        },
        "spec": {},
    }


def node_capacity(model: NodeModel, *, unhealthy: int = 0) -> tuple[Object, Object]:
    """`status.capacity` and `status.allocatable`; unhealthy cards are not allocatable."""
    base = {"cpu": model.cpu, "memory": model.memory, "pods": "110"}
    capacity = {**base, RESOURCE: str(model.cards)}
    return capacity, {**base, RESOURCE: str(model.cards - unhealthy)}


__all__ = [
    "CARD", "RESOURCE", "NodeModel", "a2_nodes", "a3_nodes", "base_device_infos", "device_annotations",
    "node_capacity", "node_object",
]  # fmt: skip
