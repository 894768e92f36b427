"""One round of a test: a service that is well, a node that breaks, then no trace of either it or us."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mindie_ha.sim.client import ApiClient
from tests.real import machines, seen
from tests.real.controllers import Controller
from tools.control_plane.planes import ControlPlane

P0 = "mindie-server-p0"
PODS_OF_P0 = {f"{P0}-master-0", f"{P0}-worker-0"}
CHIP = [{"device": "Ascend910-3", "code": "80E18005", "level": "SeparateNPU"}]


@dataclass(frozen=True, slots=True)
class Round:
    """What there was before, and what a test does to it."""

    field: ControlPlane
    api: ApiClient
    controller: Controller
    before: seen.Seen
    closed: dict[str, int]  # recoveries, by workload

    def strike(self, pod: str, faults: list[machines.Body]) -> str:
        """Break the node on which this pod was, or what is on it; the node's name."""
        node = self.before.nodes[pod]
        machines.set_faults(self.field, node, faults)
        return node

    async def recovered(self, workload: str, *, by: Controller | None = None) -> seen.Seen:
        """What there is when one more recovery of the workload is closed and everything is well."""
        closed = {workload: self.closed[workload] + 1}
        return await seen.settled(self.api, by or self.controller, closed=closed)


@asynccontextmanager
async def one_round(field: ControlPlane, api: ApiClient, controller: Controller) -> AsyncIterator[Round]:
    """Begins when everything is well; at its end the faults are healed and our taints are waited off."""
    before = await seen.settled(api, controller)
    yield Round(field, api, controller, before, await seen.closed_so_far(controller))
    machines.heal(field)
    await seen.released(api)
