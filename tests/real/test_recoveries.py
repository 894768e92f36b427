"""The main scenarios on a real control plane, with exactly the permissions of the manifests."""

from __future__ import annotations

from pathlib import Path

from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.ms.grpc_links import GrpcLink
from mindie_ha.sim.ms.links import LinkTarget
from tests.real import machines, seen
from tests.real.controllers import Controller, running, until
from tests.real.rounds import CHIP, P0, PODS_OF_P0, one_round
from tools.control_plane.planes import ControlPlane

D0, COORDINATOR = "mindie-server-d0", "mindie-ms-coordinator"


async def test_a_chip_fault_under_prefill_rebuilds_that_instance_alone_and_tells_ms(
    field: ControlPlane, account: Path, api: ApiClient
) -> None:
    pod = machines.our_pods(field)[0]
    async with running(kubeconfig=account, pod=pod) as controller, one_round(field, api, controller) as play:
        node = play.strike(f"{P0}-master-0", CHIP)
        after = await play.recovered(P0)
        assert after.changed_since(play.before) == PODS_OF_P0
        assert not PODS_OF_P0 & {name for name, at in after.nodes.items() if at == node}
        await _delivered(controller, play.before, after)
        table = await _subscribed(controller, peer=play.before.addresses["mindie-ms-controller-master-0"])
        assert seen.server_addresses(table) == set(after.addresses.values())


async def _delivered(controller: Controller, before: seen.Seen, after: seen.Seen) -> None:
    """The last table went by gRPC to the active MS Controller, from whose address it subscribed."""
    table = [line for line in controller.lines if "publishing generation" in str(line["event"])][-1]
    generation = int(str(table["event"]).split()[2])
    handed = await controller.said("table handed over", channel="grpc", generation=generation)
    ms = {before.addresses[name] for name in before.addresses if "ms-controller" in name}
    assert str(handed["peer"]).rpartition(":")[0] in ms
    assert before.addresses.keys() == after.addresses.keys()


async def _subscribed(controller: Controller, *, peer: str) -> str:
    """The table that a client at this address gets at once."""
    host = controller.url.removeprefix("http://").rpartition(":")[0]
    link = GrpcLink(LinkTarget(host, 8899, peer, "mindie-ms", "test"))
    try:
        await link.connect(wait_s=machines.WITHIN_S)
        await link.register_tables()
        async for table in link.tables():
            return table
        raise AssertionError("the stream ended without a table")
    finally:
        await link.close()


async def test_a_lost_node_moves_its_instance_and_is_given_back(
    field: ControlPlane, account: Path, api: ApiClient
) -> None:
    pod = machines.our_pods(field)[0]
    async with running(kubeconfig=account, pod=pod) as controller, one_round(field, api, controller) as play:
        node = play.strike(f"{D0}-master-0", [{"node": "NotReady"}])
        after = await play.recovered(D0)
        hit = {name for name, at in play.before.nodes.items() if at == node}
        assert {f"{D0}-master-0", f"{D0}-worker-0"} <= after.changed_since(play.before)
        assert after.changed_since(play.before) <= {f"{D0}-master-0", f"{D0}-worker-0"} | hit
        assert node not in after.nodes.values()


async def test_a_coordinator_pod_is_replaced_and_its_peer_goes_on(
    field: ControlPlane, account: Path, api: ApiClient
) -> None:
    pod = machines.our_pods(field)[0]
    async with running(kubeconfig=account, pod=pod) as controller, one_round(field, api, controller) as play:
        failed = f"{COORDINATOR}-master-0"
        node = play.strike(failed, [{"node": "NotReady"}])
        neighbours = {name for name, at in play.before.nodes.items() if at == node}
        after = await play.recovered(COORDINATOR)
        changed = after.changed_since(play.before)
        assert failed in changed
        assert f"{COORDINATOR}-worker-0" not in changed
        workloads = {name.rsplit("-", 2)[0] for name in neighbours}
        assert {name.rsplit("-", 2)[0] for name in changed} <= workloads


async def test_every_living_node_renews_its_lease(api: ApiClient) -> None:
    """The real node controller would mark a node without one."""

    async def renewed() -> bool:
        leases, _ = await api.list("Lease", "kube-node-lease")
        return len(leases) == 10 and all(one["spec"]["holderIdentity"] for one in leases)

    await until(renewed, what="every node has a Lease")
