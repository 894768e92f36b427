"""Kubelets renew their Leases where the control plane looks at them; a lost node does not."""

from __future__ import annotations

from typing import Any

import pytest

from mindie_ha.sim.world import WorldSettings
from tests.sim.actors.conftest import Stage, stage


async def renewals(now: Stage) -> dict[str, Any]:
    leases, _ = await now.api.list("Lease", "kube-node-lease")
    return {one["metadata"]["name"]: one["spec"]["renewTime"] for one in leases}


@pytest.mark.looptime
async def test_living_nodes_renew_and_a_lost_one_stops() -> None:
    async with stage(settings=WorldSettings(node_lease_s=10)) as now:
        await now.clock.sleep(15)
        first = await renewals(now)
        assert len(first) == len(now.world.nodes)
        await now.world.set_faults("node-1", [{"node": "NotReady"}])
        await now.clock.sleep(12)
        second = await renewals(now)
        assert {name for name in first if second[name] == first[name]} == {"node-1"}
        await now.world.heal("node-1")
        await now.clock.sleep(1)
        assert (await renewals(now))["node-1"] > second["node-1"]


@pytest.mark.looptime
async def test_the_embedded_cluster_needs_none() -> None:
    async with stage() as now:
        await now.clock.sleep(30)
        assert await renewals(now) == {}
