"""The embedded cluster on its own, on wall time: what `mindie-ha sim` runs.

Either with its own API server on a socket, or only its actors against a real one. MS Controllers dial the
address that the operator gives them, the cluster IP of a Service: behind it is a Ready pod that the Service
selects, else 127.0.0.1:8899, so a `mindie-ha run` in a second process serves them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mindie_ha.demo.scenarios import Object
from mindie_ha.demo.stage import create, nodes_of, world_settings
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import OnEnd, Supervisor
from mindie_ha.model.errors import InputError, MindieHaError
from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.edge import served
from mindie_ha.sim.ms.grpc_links import GrpcLink
from mindie_ha.sim.ms.programs import program_factory
from mindie_ha.sim.ms.routes import through_services
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.sim.requests import Exchange
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.transports import connected
from mindie_ha.sim.world import World

READY_S = 180.0
NODE_LEASE_S = 10.0  # as real kubelets do; a real control plane marks a node after 40 s without


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """What to run. With `actors_only` the kubeconfig is read, else written; `listen` is host and port."""

    kubeconfig: Path
    listen: tuple[str, int] = ("127.0.0.1", 0)
    actors_only: bool = False
    model: str = "a2"
    nodes: int = 10
    seed: int | None = None
    volcano_reschedules: bool = False


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A cluster that runs: its API, its address, and the supervisor that says when a part fails."""

    api: ApiClient
    server: str
    supervisor: Supervisor


@asynccontextmanager
async def running(plan: ClusterPlan, *, log: Log) -> AsyncIterator[RunningCluster]:
    """The cluster, its nodes ready, until the context ends. Raises InputError and MindieHaError."""
    clock, entropy = LoopClock(), Entropy(plan.seed)
    supervisor = Supervisor(clock=clock, entropy=entropy.child("tasks"), log=log, metrics=Metrics())
    async with AsyncExitStack() as stack:
        exchange, address = await _exchange(plan, stack, supervisor, clock=clock, entropy=entropy)
        stack.push_async_callback(supervisor.close)
        api = ApiClient(exchange)

        def route(host: str, port: int) -> tuple[str, int]:
            return through_services(world.cache, host, port)

        world = World(
            api=api,
            clock=clock,
            entropy=entropy.child("world"),
            nodes=nodes_of(plan.model, plan.nodes),
            settings=replace(
                world_settings(volcano_reschedules=plan.volcano_reschedules),
                pod_sets=not plan.actors_only,
                node_lease_s=NODE_LEASE_S if plan.actors_only else 0.0,
            ),
            programs=program_factory(MsSettings(), clock=clock, link_factory=partial(GrpcLink, route=route)),
        )
        supervisor.start("world", world.run, on_end=OnEnd.FAIL)
        try:
            await world.ready(deadline_s=READY_S)
        except TimeoutError as error:
            raise MindieHaError(f"{address}: {supervisor.failure or error}") from None
        if not plan.actors_only:
            _write(plan.kubeconfig, address)
        yield RunningCluster(api, address, supervisor)


async def apply(cluster: RunningCluster, objects: tuple[Object, ...], *, where: str) -> None:
    """Create objects; InputError names the one that the API server refuses."""
    for each in objects:
        await create(cluster.api, each, where=where)


async def _exchange(
    plan: ClusterPlan, stack: AsyncExitStack, supervisor: Supervisor, *, clock: LoopClock, entropy: Entropy
) -> tuple[Exchange, str]:
    if plan.actors_only:
        try:
            access = kubeconfigs.read(plan.kubeconfig)
        except kubeconfigs.KubeconfigError as error:
            raise InputError(str(error), where="--kubeconfig") from None
        return await stack.enter_async_context(connected(access)), access.server
    server = ApiServer(clock=clock, entropy=entropy.child("server"))
    host, port = plan.listen
    try:
        address = await stack.enter_async_context(served(server, host=host, port=port))
    except OSError as error:
        raise InputError(
            f"cannot listen: {error.strerror or error}", where=f"--listen {host}:{port}"
        ) from None
    supervisor.start("api-server", server.run, on_end=OnEnd.FAIL)
    return server, address


def _write(path: Path, address: str) -> None:
    try:
        kubeconfigs.write(path, address)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=f"--kubeconfig {path}") from None


__all__ = ["ClusterPlan", "RunningCluster", "apply", "running"]
