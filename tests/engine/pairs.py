"""The smallest service with active and standby, for tests on a whole cluster."""

from __future__ import annotations

import json
from typing import Any

from mindie_ha.demo import manifests

from .clusters import Cluster

COORDINATOR, CONTROLLER = "mindie-ms-coordinator", "mindie-ms-controller"
Object = dict[str, Any]


def service(*, label: str = "on", pins: tuple[str, ...] = ()) -> list[Object]:
    """The service with active and standby; `pins`: the nodes where Master and Worker Coordinator may be."""
    left_out = ("mindie-server-p1", "mindie-server-d1")
    found = []
    for obj in manifests.load("pd-ha"):
        name = obj["metadata"]["name"]
        if name.removeprefix("rings-config-") in left_out:
            continue
        if name in (COORDINATOR, CONTROLLER):
            obj["metadata"]["labels"]["pod-rescheduling"] = label
        if name == COORDINATOR:
            for replica, nodes in zip(obj["spec"]["replicaSpecs"].values(), pins, strict=False):
                terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes.split()}]
                required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
                node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
                replica["template"]["spec"]["affinity"]["nodeAffinity"] = node_affinity
        found.append(obj)
    return found


def group(c: Cluster, number: int) -> list[str]:
    """The addresses of one group of the published table."""
    groups = json.loads(c.table()["text"])["server_group_list"]
    return [item["server_ip"] for item in groups[number]["server_list"]]
