"""Things that happen in the middle of other things."""

from __future__ import annotations

import pytest

from tools.soak.judges import TAINT

from .clusters import CHIP, NAMESPACE, NOT_READY, cluster, quick, small_service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"


async def test_a_job_made_anew_in_the_middle_of_its_recovery_begins_afresh() -> None:
    async with cluster(nodes=4, settings=quick()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.state(P0) == "waiting", "no capacity")
        await c.api.delete("AscendJob", P0, NAMESPACE)
        await c.until(lambda: not c.pods(P0), "gone")
        for number in range(4):
            await c.world.heal(f"node-{number}")
        count = len(c.judge.deleted)
        await c.apply(obj for obj in small_service() if obj["metadata"]["name"] == P0)
        await c.serving()
        assert len(c.judge.deleted) == count
        assert c.ledger(P0)["recovery"] is None
        await c.quiet()


async def test_a_job_scaled_in_the_middle_of_its_recovery_ends_with_the_new_number() -> None:
    async with cluster(nodes=8, settings=quick()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.judge.deleted, "acting")
        await c.scale(P0, workers=2)
        await c.recovered(P0)
        assert len(c.pods(P0)) == 3
        await c.quiet()


async def test_a_node_whose_object_vanishes_acts_at_once() -> None:
    async with cluster(nodes=8, settings=quick()) as c:
        node = c.node_of(f"{P0}-worker-0")
        await c.api.delete("Node", node)
        closed = await c.recovered(P0)
        assert closed["intent"]["cause"] == "NodeGone"
        assert closed["opened_at_s"] - closed["intent"]["at_s"] < 1
        await c.quiet()


async def test_both_nodes_of_an_instance_lost_is_one_recovery() -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        nodes = {c.node_of(name) for name in c.pods(P0)}
        for node in nodes:
            await c.world.set_faults(node, [NOT_READY])
        await c.recovered(P0)
        assert c.ledger(P0)["epoch"] == 1
        assert all(TAINT in c.taints(node) for node in nodes)


async def test_a_lost_node_that_comes_back_in_time_leaves_its_instance_alone_under_the_guard() -> None:
    """Between opening and deleting nothing is lost yet: a recovery without a reason closes."""
    async with cluster(start=False) as c:
        await c.label_job(P0, fault_scheduling="grace")
        await c.start(quick(withdraw_grace_s=30.0))
        await c.serving()
        before, node = c.uids(), c.node_of(f"{P0}-worker-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.until(lambda: (c.ledger(P0) or {}).get("recovery"), "opened")
        await c.world.heal(node)
        await c.until(lambda: c.ledger(P0)["recovery"] is None, "closed")
        assert c.uids() == before
        await c.until(lambda: c.published() == {P0, D0}, "published again")
        await c.until(lambda: TAINT not in c.taints(node), "released", deadline_s=400)


async def test_the_brake_survives_a_restart_in_the_middle_of_an_outage() -> None:
    async with cluster(nodes=10, settings=quick()) as c:
        before = c.uids()
        for number in range(6):
            await c.world.set_faults(f"node-{number}", [NOT_READY])
        await c.clock.sleep(5)
        await c.kill()
        await c.start(quick())
        await c.clock.sleep(60)
        assert c.uids() == before
        assert c.events("HeldByBrake")


async def test_grace_goes_on_after_a_restart() -> None:
    async with cluster(start=False) as c:
        await c.label_job(P0, fault_scheduling="grace")
        await c.start(quick())
        await c.serving()
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.published() == {D0}, "withdrawn")
        withdrawn_s = c.clock.wall()
        await c.clock.sleep(2)
        await c.kill()
        await c.start(quick())
        await c.recovered(P0)
        first = next(write for write in c.judge.writes if write.method == "DELETE")
        assert first.at_s - withdrawn_s == pytest.approx(7, abs=0.5)


async def test_a_pod_with_a_finalizer_is_named_and_waited_for() -> None:
    async with cluster(settings=quick(gone_s=10.0)) as c:
        pod = f"{P0}-worker-0"
        held = {"metadata": {"finalizers": ["example.com/hold"]}}
        await c.api.patch("Pod", pod, NAMESPACE, held)
        uid = c.uids()[pod]
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: "example.com/hold" in c.log(), "named")
        assert c.uids()[pod] == uid
        await c.api.patch("Pod", pod, NAMESPACE, {"metadata": {"finalizers": None}})
        await c.recovered(P0, deadline_s=600)


async def test_ms_pods_recover_too_and_the_servers_stay() -> None:
    async with cluster(settings=quick()) as c:
        controller, servers = "mindie-ms-controller", c.uids(P0) | c.uids(D0)
        node = c.node_of(f"{controller}-master-0")
        await c.label_job(controller, fault_retry_times="3")
        await c.exit_container(f"{controller}-master-0", 1)
        await c.recovered(controller, deadline_s=800)
        assert c.uids(P0) | c.uids(D0) == servers
        new = c.pods(controller)[f"{controller}-master-0"]
        await c.until(lambda: new["status"]["podIP"] in c.table()["text"], "the new Controller's address")
        assert not c.taints(node)
