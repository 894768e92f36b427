"""Large clusters, cloned from one real one.

`living_service` lets the embedded cluster bring up the two-Prefill-two-Decode service of the manifests and
takes its objects as they then are; `clone` makes another service of them, with its own namespace, jobID, UIDs
and nodes. So the objects have the fields and the size that real ones have.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from mindie_ha.demo import manifests
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.deviceinfos import PREFIX
from mindie_ha.sim.actors.kubelets import KubeletSettings
from mindie_ha.sim.actors.machines import a2_nodes
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.world import World, WorldSettings

Object = dict[str, Any]
Service = Mapping[str, Sequence[Object]]  # kind -> its objects

FLEET_KINDS = ("Node", "AscendJob", "PodGroup", "Pod", "ConfigMap")
PODS = 10
NODES = 8
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NODE = re.compile(r"\bnode-(\d+)\b")


async def living_service() -> Service:
    """The objects of a service that is up, and of its nodes."""
    clock, entropy = LoopClock(), Entropy(1)
    server = ApiServer(clock=clock, entropy=entropy.child("api"))
    api = ApiClient(server)
    quick = WorldSettings(kubelet=KubeletSettings(start_s=(0.0, 0.01), ready_s=(0.0, 0.01)))
    world = World(api=api, clock=clock, entropy=entropy.child("world"), nodes=a2_nodes(NODES), settings=quick)
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = [group.create_task(server.run()), group.create_task(world.run())]
        await world.ready()
        for obj in manifests.load("pd-a2"):
            await api.create(obj["kind"], obj)
        await world.wait_for(lambda: _is_up(world), deadline_s=30.0, what="the service is up")
        found = {kind: (await api.list(kind))[0] for kind in FLEET_KINDS}
        for task in tasks:
            task.cancel()
    return {kind: [one for one in objects if _is_part(one)] for kind, objects in found.items()}


def clone(service: Service, number: int, *, nodes: int | None = None) -> dict[str, list[Object]]:
    """The service once more; `nodes` is how many nodes exist in all (None: each clone has its own)."""
    names = f"fleet-{number:04d}"

    def node(match: re.Match[str]) -> str:
        index = number * NODES + int(match[1])
        return f"node-{index if nodes is None else index % nodes}"

    def uid(match: re.Match[str]) -> str:
        digest = hashlib.md5(f"{number}/{match[0]}".encode(), usedforsecurity=False).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"

    def renamed(obj: Object) -> Object:
        text = _NODE.sub(node, _UID.sub(uid, json.dumps(obj)))
        text = text.replace('"namespace": "mindie"', f'"namespace": "{names}"')
        copy: Object = json.loads(text.replace('"jobID": "mindie-ms"', f'"jobID": "ms-{number:04d}"'))
        return copy

    return {kind: [renamed(obj) for obj in objects] for kind, objects in service.items()}


def fleet(service: Service, *, pods: int, nodes: int) -> dict[str, list[Object]]:
    """As many clones as have `pods` pods together, on `nodes` nodes that each have a device report."""
    found: dict[str, dict[tuple[str, str], Object]] = {kind: {} for kind in FLEET_KINDS}
    for number in range(max(-(-pods // PODS), -(-nodes // NODES))):
        for kind, objects in clone(service, number, nodes=nodes).items():
            if number * PODS >= pods and kind not in ("Node", "ConfigMap"):
                continue
            for obj in objects:
                meta = obj["metadata"]
                key = (meta.get("namespace", ""), meta["name"])
                found[kind].setdefault(key, obj)
    return {kind: list(objects.values()) for kind, objects in found.items()}


def _is_up(world: World) -> bool:
    pods = world.cache.all("Pod", "mindie")
    rings = [one for one in world.cache.all("ConfigMap", "mindie") if "hccl.json" in (one.get("data") or {})]
    complete = [one for one in rings if '"completed"' in one["data"]["hccl.json"]]
    ready = [pod for pod in pods if _is_ready(pod)]
    return len(ready) == PODS and len(complete) == len(rings) > 0


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _is_part(obj: Object) -> bool:
    """Everything but the lists of the whole cluster and the ConfigMaps that nobody selects."""
    if obj.get("kind") != "ConfigMap":
        return True
    name = obj["metadata"]["name"]
    return bool(name.startswith((PREFIX, "rings-config-")))
