"""A world in memory on virtual time, and the jobs that run in it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.clusterds import ClusterdSettings
from mindie_ha.sim.actors.device_plugins import cards_of
from mindie_ha.sim.actors.documents import condition, is_terminating, labels_of, phase_of, text
from mindie_ha.sim.actors.machines import NodeModel, a2_nodes
from mindie_ha.sim.actors.programs import ProgramFactory
from mindie_ha.sim.client import ApiClient, Object
from mindie_ha.sim.requests import Exchange
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.world import World, WorldSettings

NAMESPACE = "mindie"


@dataclass(frozen=True)
class Stage:
    """A running world and short ways to look at it."""

    world: World
    server: ApiServer
    api: ApiClient
    clock: LoopClock

    def pods(self, job: str) -> dict[str, Object]:
        found = self.world.cache.all("Pod", NAMESPACE)
        return {text(p, "metadata", "name"): p for p in found if labels_of(p).get("job-name") == job}

    def cards(self, job: str) -> dict[str, tuple[str, tuple[str, ...]]]:
        return {name: (text(p, "spec", "nodeName"), cards_of(p)) for name, p in self.pods(job).items()}

    def uids(self, job: str) -> set[str]:
        return {text(pod, "metadata", "uid") for pod in self.pods(job).values()}

    def table(self, job: str) -> Any:
        config = self.world.cache.get("ConfigMap", f"rings-config-{job}", NAMESPACE) or {}
        return json.loads(text(config, "data", "hccl.json") or "{}")

    def state(self, job: str) -> str:
        found = self.world.cache.get("AscendJob", job, NAMESPACE) or {}
        conditions = found.get("status", {}).get("conditions") or [{}]
        return str(conditions[-1].get("type", ""))

    def is_running(self, job: str, count: int) -> bool:
        pods = [pod for pod in self.pods(job).values() if not is_terminating(pod)]
        return len(pods) == count and all(text(condition(p, "Ready"), "status") == "True" for p in pods)

    def phase(self, name: str) -> str:
        return phase_of(self.world.cache.get("Pod", name, NAMESPACE) or {})

    async def apply(self, *objects: tuple[str, Object]) -> None:
        for kind, body in objects:
            await self.api.create(kind, body)

    async def start(self, job: str, *, workers: int = 0, cards: int = 8, **more: Any) -> None:
        """Create an instance and wait until it runs with a completed table."""
        await self.apply(*instance(job, workers=workers, cards=cards, **more))
        await self.wait(lambda: self.is_running(job, workers + 1), f"{job} running")
        await self.wait(lambda: self.table(job).get("status") == "completed", f"table of {job}")

    async def kill(self, job: str, *, grace_s: int | None = None) -> set[str]:
        """Delete all pods of a job at once; the result is their UIDs."""
        old = self.pods(job)
        for name, pod in old.items():
            await self.api.delete("Pod", name, NAMESPACE, grace_s=grace_s, uid=pod["metadata"]["uid"])
        return {pod["metadata"]["uid"] for pod in old.values()}

    async def wait(self, predicate: Callable[[], bool], what: str, *, deadline_s: float = 60) -> None:
        await self.world.wait_for(predicate, deadline_s=deadline_s, what=what)


@contextlib.asynccontextmanager
async def stage(
    *,
    nodes: tuple[NodeModel, ...] | None = None,
    lag_s: float = 1.0,
    settings: WorldSettings | None = None,
    programs: ProgramFactory | None = None,
    seed: int = 1,
    speed: float = 1.0,
    connect: Callable[[ApiServer], contextlib.AbstractAsyncContextManager[Exchange]] = contextlib.nullcontext,
) -> AsyncIterator[Stage]:
    clock = LoopClock(wall_origin_s=1_800_000_000, speed=speed)
    server = ApiServer(clock=clock, entropy=Entropy(seed))
    async with (
        connect(server) as exchange,
        _playing(
            server,
            ApiClient(exchange),
            clock,
            nodes=nodes,
            lag_s=lag_s,
            settings=settings,
            programs=programs,
            seed=seed,
        ) as running,
    ):
        yield running


@contextlib.asynccontextmanager
async def _playing(
    server: ApiServer,
    api: ApiClient,
    clock: LoopClock,
    *,
    nodes: tuple[NodeModel, ...] | None,
    lag_s: float,
    settings: WorldSettings | None,
    programs: ProgramFactory | None,
    seed: int,
) -> AsyncIterator[Stage]:
    tuned = replace(settings or WorldSettings(), clusterd=ClusterdSettings(lag_s=(lag_s, lag_s)))
    world = World(
        api=api,
        clock=clock,
        entropy=Entropy(seed),
        nodes=nodes or a2_nodes(3),
        settings=tuned,
        programs=programs,
    )
    tasks = [asyncio.create_task(server.run()), asyncio.create_task(world.run())]
    try:
        await world.ready(deadline_s=30)
        yield Stage(world, server, api, clock)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        broken = [end for end in ends if isinstance(end, Exception)]
        if broken:
            raise ExceptionGroup("a part of the world stopped", broken)


def instance(
    name: str,
    *,
    workers: int = 0,
    cards: int = 8,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: Object | None = None,
    restart_policy: str = "Never",
    accelerator: str = "module-910b-8",
    table: bool = True,
) -> list[tuple[str, Object]]:
    """A server instance: its rings-config and its AscendJob."""
    shared = {"app": "mindie-ms-server", "jobID": "svc", "ring-controller.atlas": "ascend-910b"}
    resources = {"requests": {"huawei.com/Ascend910": cards}, "limits": {"huawei.com/Ascend910": cards}}
    container: Object = {"name": "ascend", "image": "mindie:1", "resources": resources if cards else {}}
    template: Object = {
        "metadata": {"labels": dict(shared)},
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "containers": [container],
            **({"nodeSelector": {"accelerator-type": accelerator}} if cards else {}),
            **(spec or {}),
        },
    }
    roles: Object = {"Master": {"replicas": 1, "restartPolicy": restart_policy, "template": template}}
    if workers:
        roles["Worker"] = {"replicas": workers, "restartPolicy": restart_policy, "template": template}
    config: Object = {
        "metadata": {
            "name": f"rings-config-{name}",
            "namespace": NAMESPACE,
            "labels": {"mx-consumer-cim": "true"},
        },
        "data": {"hccl.json": '{"status":"initializing"}'},
    }
    job: Object = {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"framework": "pytorch", **shared, "fault-scheduling": "force", **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": {
            "schedulerName": "volcano",
            "runPolicy": {"schedulingPolicy": {"minAvailable": workers + 1, "queue": "default"}},
            "successPolicy": "AllWorkers",
            "replicaSpecs": roles,
        },
    }
    return [*([("ConfigMap", config)] if table else []), ("AscendJob", job)]


@pytest.fixture
def job() -> Object:
    """A valid AscendJob as stored."""
    body = instance("p0", workers=1)[1][1]
    body["metadata"]["uid"] = "job-uid"
    return body
