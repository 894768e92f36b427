"""Child: the embedded cluster on a socket, with a tap.

`actors` runs a live cluster whose machines are quick (what the kubelet or the scheduler needs is no figure of
ours) and whose ClusterD is a little late, so that every fault really has to be isolated. `fleet` holds
a still picture of a large cluster for a controller to start on.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.clusterds import ClusterdSettings
from mindie_ha.sim.actors.device_plugins import DevicePluginSettings
from mindie_ha.sim.actors.kubelets import KubeletSettings
from mindie_ha.sim.actors.machines import a2_nodes
from mindie_ha.sim.actors.schedulers import SchedulerSettings
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.edge import served
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.world import World, WorldSettings
from tools.bench.fleets import FLEET_KINDS, fleet, living_service
from tools.bench.processes import say_ready, until_stopped
from tools.bench.taps import Tap

QUICK = WorldSettings(
    kubelet=KubeletSettings(start_s=(0.02, 0.05), ready_s=(0.05, 0.1), stop_s=(0.01, 0.02)),
    device_plugin=DevicePluginSettings(report_delay_s=(0.05, 0.1), min_gap_s=0.1),
    clusterd=ClusterdSettings(lag_s=(0.3, 0.5)),
    scheduler=SchedulerSettings(session_s=0.1, gather_s=0.01),
)


async def live(nodes: int) -> None:
    """API server and actors until cancelled."""
    clock, entropy = LoopClock(), Entropy(1)
    server = ApiServer(clock=clock, entropy=entropy.child("api"))
    tap = Tap(server)
    world = World(
        api=ApiClient(tap),
        clock=clock,
        entropy=entropy.child("world"),
        nodes=a2_nodes(nodes),
        settings=QUICK,
    )
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(tap))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        group.create_task(server.run())
        group.create_task(world.run())
        await world.ready()
        say_ready(url=url)


async def still(pods: int, nodes: int) -> None:
    """An API server that holds a fleet, and nobody who acts."""
    clock, entropy = LoopClock(), Entropy(1)
    server = ApiServer(clock=clock, entropy=entropy.child("api"))
    service = await living_service()
    for kind in FLEET_KINDS:
        for body in fleet(service, pods=pods, nodes=nodes)[kind]:
            server.core.store.put(by_kind(kind), body)
    async with served(Tap(server)) as url:
        say_ready(url=url)
        await asyncio.Event().wait()


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("shape", choices=("actors", "fleet"))
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--pods", type=int, default=0)
    chosen = parser.parse_args()
    work = live(chosen.nodes) if chosen.shape == "actors" else still(chosen.pods, chosen.nodes)
    asyncio.run(until_stopped(work))


if __name__ == "__main__":
    main()
