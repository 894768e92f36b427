"""The operator's rank table `hccl.json`, v1.0 and v1.2 (pure).

`next_step` is the state machine: build when every replica is allocated, fall back to `initializing` (with
the old server list left inside) when fewer are, rebuild when the UIDs changed. `build` makes the completed
text. v2.0 (A5) is not simulated. Source: rank table contract §6.1-6.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

from mindie_ha.sim.actors.ascendjobs import JobSpec, npus_of
from mindie_ha.sim.actors.documents import (
    annotations_of,
    is_terminating,
    items,
    load_json,
    mapping,
    number,
    text,
    uid_of,
)
from mindie_ha.sim.actors.job_objects import RANK
from mindie_ha.sim.client import Object

CONFIGURATION = "ascend.kubectl.kubernetes.io/ascend-910-configuration"
INITIALIZING, COMPLETED = "initializing", "completed"
_SUPER_POD_POLICIES = frozenset({"chip2-node16-sp", "chip2-node8-sp", "multilevel"})
_SUPER_POD_TYPES = frozenset({"module-a3-16-super-pod", "module-a3-8-super-pod"})


class Step(StrEnum):
    """What to do with the table."""

    KEEP = "keep"
    INITIALIZE = "initialize"
    BUILD = "build"


def version_of(job: JobSpec) -> str:
    """`1.0` or `1.2`."""
    policy = job.annotations.get("huawei.com/schedule_policy")
    if policy is not None:
        return "1.2" if policy in _SUPER_POD_POLICIES else "1.0"
    if "sp-block" in job.annotations:
        return "1.2"
    types = {text(role.template, "spec", "nodeSelector", "accelerator-type") for role in job.roles}
    return "1.2" if types & _SUPER_POD_TYPES else "1.0"


def allocated(pods: Sequence[Object]) -> list[Object]:
    """Pods that are not terminating and have their devices (or need none)."""
    return [
        pod for pod in pods
        if not is_terminating(pod)
        and (not npus_of(mapping(pod, "spec"))[1] or CONFIGURATION in annotations_of(pod))
    ]  # fmt: skip


def next_step(status: str, *, total: int, pods: Sequence[Object], built_for: frozenset[str]) -> Step:
    """Compare the pods with the table; `pods` are all of the job's."""
    ready = allocated(pods)
    uids = frozenset(uid_of(pod) for pod in ready)
    if status == COMPLETED and len(ready) > total:
        return Step.KEEP
    if status == COMPLETED and len(ready) < total:
        return Step.INITIALIZE
    if total == 0 or len(ready) != total or (status == COMPLETED and uids == built_for):
        return Step.KEEP
    # Devices are written before the pod has an address; the table waits for both.
    return Step.BUILD if all(text(pod, "status", "podIP") for pod in ready) else Step.KEEP


def build(job: JobSpec, pods: Sequence[Object], *, version: str) -> str | None:
    """The completed table for exactly these pods; None while an annotation is unusable."""
    spread = len({text(pod, "spec", "nodeName") for pod in pods}) == len(pods)
    members = [pod for pod in pods if npus_of(mapping(pod, "spec"))[1]]
    members.sort(key=lambda pod: number(annotations_of(pod), RANK))
    servers = [_server(job, pod, spread=spread, version=version) for pod in members]
    complete = [server for server in servers if server is not None]
    if len(complete) != len(servers):
        return None
    table: Object = {"status": COMPLETED}
    if complete:
        table |= {"server_list": complete, "server_count": str(len(complete))}
    table["version"] = version
    if version == "1.2":
        table["super_pod_list"] = super_pods(job, members, complete)
    return json.dumps(table, separators=(",", ":"))


def initializing(previous: str, *, version: str) -> str:
    """The table after a loss: the old content with another status."""
    table = mapping(load_json(previous)) or {"status": "", "version": version}
    return json.dumps({**table, "status": INITIALIZING}, separators=(",", ":"))


def _server(job: JobSpec, pod: Object, *, spread: bool, version: str) -> Object | None:
    notes = annotations_of(pod)
    config = load_json(notes.get(CONFIGURATION, ""))
    devices = sorted(items(config, "devices"), key=lambda device: number(device, "device_id"))
    if not devices or any(device.get("device_ip") == "-1" for device in devices):
        return None
    first = number(notes, RANK) * len(devices)
    server: Object = {"device": [_device(device, first + i, version) for i, device in enumerate(devices)]}
    if job.is_inference and notes.get("mind-cluster/hardware-type"):
        server["hardware_type"] = notes["mind-cluster/hardware-type"]
    host = text(config, "host_ip") or text(pod, "status", "hostIP")
    server["server_id"] = host if spread else text(config, "server_id")
    server["host_ip"] = host
    server["container_ip"] = text(pod, "status", "podIP")
    return server


def _device(device: Object, rank: int, version: str) -> Object:
    found: Object = {"device_id": text(device, "device_id"), "device_ip": text(device, "device_ip")}
    if version == "1.2" and device.get("super_device_id") is not None:
        found["super_device_id"] = str(device["super_device_id"])
    return {**found, "rank_id": str(rank)}


def super_pods(job: JobSpec, pods: Sequence[Object], servers: Sequence[Object]) -> list[Object | None]:
    """`super_pod_list`; pods and servers are in the same (rank) order."""
    if job.labels.get("super-pod-affinity") == "soft":
        return _soft(pods, servers)
    groups: dict[str, list[Object]] = {}
    for index, (pod, server) in enumerate(zip(pods, servers, strict=True)):
        key = (
            annotations_of(pod).get("super-pod-id", "") if job.is_inference else _logical(job, index, server)
        )
        groups.setdefault(key, []).append({"server_id": server["server_id"]})
    order = sorted(groups, key=lambda key: (not key.isdecimal(), int(key) if key.isdecimal() else 0, key))
    return [{"super_pod_id": key, "server_list": groups[key]} for key in order]


def _logical(job: JobSpec, index: int, server: Mapping[str, object]) -> str:
    devices = server["device"]
    block = number(job.annotations, "sp-block")
    if block <= 0 or not isinstance(devices, list):
        return "0"
    return str(index // max(1, block // len(devices)))


def _soft(pods: Sequence[Object], servers: Sequence[Object]) -> list[Object | None]:
    ranks = [annotations_of(pod).get("super-pod-rank", "") for pod in pods]
    count = len(set(ranks))
    found: list[Object | None] = [None] * count
    for rank, server in zip(ranks, servers, strict=True):
        if not rank.isdecimal() or int(rank) >= count:
            continue
        entry = found[int(rank)] or {"super_pod_id": rank, "server_list": []}
        entry["server_list"].append({"server_id": server["server_id"]})
        found[int(rank)] = entry
    return found
