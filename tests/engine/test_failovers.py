"""Active and standby on a whole cluster: who is replaced, who stays, and when the whole job follows."""

from __future__ import annotations

import pytest

from .clusters import NOT_READY, cluster, quick
from .pairs import CONTROLLER, COORDINATOR, group, service

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(("job", "number"), [(COORDINATOR, 0), (CONTROLLER, 1)])
async def test_only_the_pod_on_the_lost_node_is_replaced_and_its_peer_keeps_its_entry(
    job: str, number: int
) -> None:
    async with cluster(service=service(), nodes=10, settings=quick()) as c:
        before = c.uids()
        lost, peer = f"{job}-master-0", f"{job}-worker-0"
        node, address = c.node_of(lost), c.pods()[peer]["status"]["podIP"]
        assert len(group(c, number)) == 2
        await c.world.set_faults(node, [NOT_READY])
        await c.until(lambda: group(c, number) == [address], "a table without the lost pod")
        closed = await c.recovered(job)
        assert (closed["outcome"], closed["rungs"]) == ("recovered", ["pod"])
        assert {name for name, uid in c.uids().items() if before[name] != uid} == {lost}
        assert c.node_of(lost) not in (node, c.node_of(peer))
        assert sorted(group(c, number)) == sorted(pod["status"]["podIP"] for pod in c.pods(job).values())
        await c.quiet()


async def test_both_nodes_lost_at_once_rebuild_the_job_directly() -> None:
    async with cluster(service=service(), nodes=12, settings=quick()) as c:
        before = c.uids()
        nodes = [c.node_of(name) for name in c.uids(COORDINATOR)]
        for node in nodes:
            await c.world.set_faults(node, [NOT_READY])
        closed = await c.recovered(COORDINATOR)
        assert closed["rungs"] == ["job"]
        assert not set(before.values()) & set(c.uids(COORDINATOR).values())
        assert {name for name, uid in c.uids().items() if before[name] != uid} == set(c.uids(COORDINATOR))
        [event] = c.events("RecoveryOpened")
        assert "pod rung is passed over" in event["message"]


async def test_a_replacement_without_a_place_turns_to_the_job_twelve_seconds_after_gone() -> None:
    pins = ("node-8 node-9", "node-9 node-0")
    async with cluster(service=service(pins=pins), nodes=10, settings=quick()) as c:
        await c.world.set_faults("node-8", [NOT_READY])
        closed = await c.recovered(COORDINATOR)
        assert closed["rungs"] == ["pod", "job"]
        gone = next(one for one in closed["history"] if one["phase"] == "gone")
        next_rung = next(one for one in closed["history"] if one["rung"] == "job")
        assert next_rung["start_s"] - gone["end_s"] == pytest.approx(12.0, abs=0.2)
        assert {c.node_of(name) for name in c.uids(COORDINATOR)} == {"node-9", "node-0"}
        (event,) = c.events("RungWidened")
        assert "goes on with the job rung" in event["message"]
        assert "place" in event["message"]


async def test_without_a_place_for_the_job_either_the_peer_serves_until_a_node_returns() -> None:
    pins = ("node-8 node-9", "node-8 node-9")
    async with cluster(service=service(pins=pins), nodes=10, settings=quick()) as c:
        peer = f"{COORDINATOR}-worker-0"
        uid = c.uids()[peer]
        node = c.node_of(f"{COORDINATOR}-master-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.until(
            lambda: (c.ledger(COORDINATOR).get("recovery") or {}).get("condition") == "WaitingForCapacity",
            "it waits for capacity",
        )
        await c.clock.sleep(120)
        assert (c.ledger(COORDINATOR)["recovery"]["rung"], c.uids()[peer]) == ("pod", uid)
        assert c.state(COORDINATOR) == "waiting"
        await c.world.heal(node)
        closed = await c.recovered(COORDINATOR, deadline_s=500)
        assert (closed["rungs"], c.uids()[peer]) == (["pod"], uid)


async def test_a_controller_that_dies_during_the_pod_rung_goes_on_with_it() -> None:
    async with cluster(service=service(), nodes=10, settings=quick()) as c:
        peer = f"{COORDINATOR}-worker-0"
        uid = c.uids()[peer]
        await c.world.set_faults(c.node_of(f"{COORDINATOR}-master-0"), [NOT_READY])
        await c.until(lambda: (c.ledger(COORDINATOR) or {}).get("recovery"), "it is open", every_s=0.01)
        await c.kill()
        await c.clock.sleep(5)
        await c.start(quick())
        closed = await c.recovered(COORDINATOR)
        assert (closed["rungs"], c.uids()[peer]) == (["pod"], uid)


@pytest.mark.parametrize("label", ["true", "On"])
async def test_a_look_alike_of_the_label_is_told_and_means_the_job(label: str) -> None:
    async with cluster(service=service(label=label), nodes=10, settings=quick()) as c:
        await c.until(lambda: c.events("UnknownPodRescheduling"), "people are told")
        await c.world.set_faults(c.node_of(f"{COORDINATOR}-master-0"), [NOT_READY])
        closed = await c.recovered(COORDINATOR)
        assert closed["rungs"] == ["job"]
