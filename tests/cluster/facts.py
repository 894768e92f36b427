"""Short ways to make objects as the API would show them, and stores to put them into."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mindie_ha.cluster.slim import MODELS, SlimObject, slim
from mindie_ha.cluster.store import Store
from mindie_ha.intake.device_info import check_code
from mindie_ha.kit.clock import Clock, LoopClock
from mindie_ha.model.ids import ScopeKey
from mindie_ha.model.settings import Settings

Object = dict[str, Any]
SERVER = {"app": "mindie-ms-server", "jobID": "svc"}


def item(kind: str, name: str, *, namespace: str = "mindie", version: int = 1, **more: Any) -> SlimObject:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        **more.pop("metadata", {}),
    }
    return slim({"metadata": metadata, **more}, MODELS[kind], kind=kind)


def job(
    name: str, *, uid: str = "", version: int = 1, labels: dict[str, str] | None = None, **more: Any
) -> SlimObject:
    pod_spec = {
        "containers": [{"name": "ascend", "env": [{"name": "ROLE", "value": more.pop("role", "p")}]}],
        "volumes": [
            {"name": "global-ranktable", "configMap": {"name": more.pop("table", "global-ranktable")}}
        ],
    }
    spec = {"replicaSpecs": {"Master": {"replicas": 1, "template": {"spec": pod_spec}}}}
    metadata = {
        "uid": uid or f"uid-{name}",
        "labels": SERVER if labels is None else labels,
        **more.pop("metadata", {}),
    }
    return item("AscendJob", name, version=version, spec=spec, metadata=metadata, **more)


def pod(
    name: str, owner: str, *, node: str = "n1", version: int = 1, uid: str = "", **more: Any
) -> SlimObject:
    owner_reference = {"kind": "AscendJob", "name": owner, "uid": f"uid-{owner}", "controller": True}
    status = {"phase": "Running", "podIP": more.pop("ip", "10.0.0.1"), **more.pop("status", {})}
    metadata = {
        "uid": uid or f"uid-{name}",
        "ownerReferences": [owner_reference],
        "annotations": {"huawei.com/AscendReal": "Ascend910-0,Ascend910-1", "hccl/rankIndex": "0"},
        **more.pop("metadata", {}),
    }
    return item(
        "Pod",
        name,
        version=version,
        metadata=metadata,
        status=status,
        spec={"nodeName": node, "containers": []},
    )


def node(name: str, *, ready: bool = True, version: int = 1, **more: Any) -> SlimObject:
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Said"}]
    status = {"conditions": conditions, **more.pop("status", {})}
    return item("Node", name, namespace="", version=version, status=status, **more)


def config_map(
    name: str, data: dict[str, str], *, namespace: str = "mindie", version: int = 1, **more: Any
) -> SlimObject:
    return item("ConfigMap", name, namespace=namespace, version=version, data=data, **more)


def device_info(node_name: str, unhealthy: str, *, version: int = 1, at: int = 1_700_000_000) -> SlimObject:
    devices = {"huawei.com/Ascend910": "Ascend910-0", "huawei.com/Ascend910-Unhealthy": unhealthy}
    body = {
        "DeviceInfo": {"DeviceList": devices, "UpdateTime": at},
        "CheckCode": check_code(devices, at),
        "SuperPodID": -1,
        "ServerIndex": -1,
    }
    return config_map(
        f"mindx-dl-deviceinfo-{node_name}",
        {"DeviceInfoCfg": json.dumps(body)},
        namespace="kube-system",
        version=version,
        metadata={"labels": {"mx-consumer-cim": "true"}},
    )


def shard(number: int, *, version: int = 1, text: str | None = None, **nodes: tuple[str, int]) -> SlimObject:
    body = {
        f"mindx-dl-deviceinfo-{name}": {
            "DeviceList": {"huawei.com/Ascend910-Unhealthy": bad},
            "UpdateTime": at,
        }
        for name, (bad, at) in nodes.items()
    }
    name = f"cluster-info-device-{number}"
    return config_map(
        name,
        {name: json.dumps(body) if text is None else text},
        namespace="mindx-dl",
        version=version,
        metadata={"labels": {"mx-consumer-volcano": "true"}},
    )


def rings(
    job_name: str, *, text: str = '{"status":"initializing"}', version: int = 1, job_id: str = "svc"
) -> SlimObject:
    labels = {"jobID": job_id, "mx-consumer-cim": "true"}
    return config_map(
        f"rings-config-{job_name}", {"hccl.json": text}, version=version, metadata={"labels": labels}
    )


class Told:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.calls: list[tuple[frozenset[ScopeKey], bool]] = []

    def __call__(self, scopes: frozenset[ScopeKey], urgent: bool) -> None:
        self.calls.append((scopes, urgent))


def make_store(
    *,
    clock: Clock | None = None,
    settings: Settings | None = None,
    listener: Callable[[frozenset[ScopeKey], bool], None] | None = None,
) -> Store:
    return Store(
        clock=clock or LoopClock(wall_origin_s=1_700_000_000.0),
        settings=settings or Settings(),
        listener=listener or Told(),
    )
