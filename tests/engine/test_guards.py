"""Beside Volcano's rescheduler: who comes first deletes, nobody deletes twice, the fallback is ours."""

from __future__ import annotations

from typing import Any

import pytest

from mindie_ha.model.settings import Owner, OwnershipSettings, Settings

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, cluster, quick
from .doors import Ours
from .test_failovers import CONTROLLER, COORDINATOR, service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
STRATEGY = "ProcessRecoverStrategy"
GUARD_S = 15.0


def volcano() -> Settings:
    return quick().model_copy(update={"ownership": OwnershipSettings(owner=Owner.VOLCANO)})


def deletions(c: Cluster) -> list[Any]:
    return [write for write in c.judge.writes if write.method == "DELETE"]


def replaced(c: Cluster, before: dict[str, str]) -> set[str]:
    return {name for name, uid in c.uids().items() if before[name] != uid}


async def note(c: Cluster, job: str, value: str | None) -> None:
    body = {"metadata": {"annotations": {STRATEGY: value}}}
    await c.api.patch("PodGroup", c.podgroup(job), NAMESPACE, body)


def notes(c: Cluster, job: str) -> dict[str, str]:
    group = c.get("PodGroup", c.podgroup(job)) or {"metadata": {}}
    return dict(group["metadata"].get("annotations") or {})


@pytest.mark.parametrize("mode", ["force", "grace"])
@pytest.mark.parametrize("fault", [CHIP, NOT_READY], ids=["chip", "node"])
async def test_volcano_rebuilds_an_instance_and_we_record_publish_and_verify(
    fault: dict[str, str], mode: str
) -> None:
    async with cluster(start=False, volcano_reschedules=True) as c:
        await c.label_job(P0, fault_scheduling=mode)
        await c.api.delete("PodGroup", c.podgroup(P0), NAMESPACE)  # labels are copied when it is made
        await c.start(volcano())
        await c.serving()
        before = c.uids()
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [fault])
        await c.until(lambda: c.published() == {D0}, "withdrawn")
        closed = await c.recovered(P0)
        assert c.published() == {P0, D0}
        assert deletions(c) == []
        assert (closed["outcome"], closed["rungs"]) == ("recovered", ["job"])
        assert {target["uid"] for target in closed["targets"]} == {before[name] for name in c.pods(P0)}
        assert replaced(c, before) == set(c.pods(P0))
        assert {item["uid"] for item in closed["replacements"]} == set(c.uids(P0).values())
        await c.quiet()
        assert STRATEGY not in notes(c, P0)


@pytest.mark.parametrize("label", ["on", "off"])
async def test_of_a_coordinator_volcano_takes_the_failed_pod_alone_whatever_the_label(label: str) -> None:
    async with cluster(
        service=service(label=label), nodes=10, settings=volcano(), volcano_reschedules=True
    ) as c:
        before = c.uids()
        await c.world.set_faults(c.node_of(f"{COORDINATOR}-master-0"), [NOT_READY])
        closed = await c.recovered(COORDINATOR)
        assert (closed["outcome"], closed["rungs"]) == ("recovered", ["pod"])
        assert replaced(c, before) == {f"{COORDINATOR}-master-0"}
        assert deletions(c) == []
        await c.quiet()


async def test_what_volcano_never_does_for_ms_we_do_at_the_deadline() -> None:
    pins = ("node-8 node-9", "node-9 node-0")
    async with cluster(
        service=service(pins=pins), nodes=10, settings=volcano(), volcano_reschedules=True
    ) as c:
        before = c.uids()
        await c.world.set_faults(c.node_of(f"{COORDINATOR}-master-0"), [NOT_READY])
        closed = await c.recovered(COORDINATOR)
        phases = {(one["rung"], one["phase"]): one["start_s"] for one in closed["history"]}
        assert closed["rungs"] == ["pod", "job"]
        assert phases["job", "stop"] - phases["pod", "recreate"] == pytest.approx(12, abs=0.5)
        assert len(deletions(c)) == 2  # the peer, and the replacement that found no place
        assert replaced(c, before) == set(c.pods(COORDINATOR))


@pytest.mark.parametrize(("label", "rung"), [("on", "pod"), ("off", "job")])
async def test_where_volcano_does_nothing_we_do_what_the_label_says(label: str, rung: str) -> None:
    async with cluster(service=service(label=label), nodes=10, settings=volcano()) as c:
        await c.world.set_faults(c.node_of(f"{CONTROLLER}-master-0"), [NOT_READY])
        closed = await c.recovered(CONTROLLER)
        first = deletions(c)[0]
        assert closed["rungs"] == [rung]
        assert first.at_s - closed["opened_at_s"] == pytest.approx(GUARD_S, abs=0.5)


async def test_half_a_deletion_is_completed_after_the_guard_time() -> None:
    async with cluster(settings=volcano()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: (c.ledger(P0) or {}).get("recovery"), "opened")
        left = c.uids()[f"{P0}-worker-0"]
        await c.clock.sleep(5)
        began_s = c.clock.wall()
        await c.delete_pod(f"{P0}-master-0")
        closed = await c.recovered(P0)
        assert deletions(c)[0].at_s - began_s == pytest.approx(GUARD_S, abs=0.5)
        assert left not in c.uids(P0).values()
        assert closed["rungs"] == ["job"]


@pytest.mark.parametrize("when", ["before", "amid"])
async def test_what_volcano_does_while_we_are_away_is_watched_to_its_end(when: str) -> None:
    async with cluster(settings=volcano(), volcano_reschedules=True) as c:
        before, node = c.uids(), c.node_of(f"{P0}-master-0")
        if when == "before":
            await c.kill()
        await c.world.set_faults(node, [CHIP])
        if when == "amid":
            await c.until(lambda: (c.ledger(P0) or {}).get("recovery"), "opened", every_s=0.01)
            await c.kill()
        await c.until(lambda: not set(c.uids(P0).values()) & set(before.values()), "Volcano acted")
        await c.clock.sleep(5)
        await c.start(volcano())
        closed = await c.recovered(P0)
        assert closed["outcome"] == "recovered"
        assert deletions(c) == []
        assert replaced(c, before) == set(c.pods(P0))


async def test_an_adopted_instance_is_ours_even_where_volcano_could_act() -> None:
    async with cluster(settings=quick(), volcano_reschedules=True) as c:
        before = c.uids()
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        closed = await c.recovered(P0)
        assert deletions(c)[0].at_s - closed["opened_at_s"] < 5
        assert {target["uid"] for target in closed["targets"]} <= set(c.judge.deleted)
        assert replaced(c, before) == set(c.pods(P0))


async def test_external_force_is_only_marked_by_volcano_and_ours() -> None:
    async with cluster(start=False, volcano_reschedules=True) as c:
        await c.label_job(P0, fault_scheduling="external-force")
        await c.api.delete("PodGroup", c.podgroup(P0), NAMESPACE)
        await c.start(quick())
        await c.serving()
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        closed = await c.recovered(P0)
        assert deletions(c)[0].at_s - closed["opened_at_s"] < 5
        assert STRATEGY not in notes(c, P0)


# --- adoption is lost between decision and deletion ---------------------------------------------------------


async def stuck_in_stop(c: Cluster) -> None:
    """A recovery that was let through, and whose deletions the API server refuses."""
    c.server.disturbances.add(Ours("DELETE", "pods", code=503, times=None))
    await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
    await c.until(lambda: deletions(c), "it tries")
    assert c.ledger(P0)["recovery"]["phase"] == "stop"


async def test_a_removed_annotation_is_put_back_before_the_next_deletion() -> None:
    async with cluster(settings=quick()) as c:
        await stuck_in_stop(c)
        await note(c, P0, None)
        await c.until(lambda: STRATEGY in notes(c, P0), "adopted again", deadline_s=5)
        c.server.disturbances.clear()
        await c.recovered(P0)


async def test_a_podgroup_made_anew_between_stop_and_deletion_is_adopted_first() -> None:
    async with cluster(settings=quick()) as c:
        await stuck_in_stop(c)
        await c.api.delete("PodGroup", c.podgroup(P0), NAMESPACE)
        c.server.disturbances.clear()
        await c.until(lambda: c.judge.deleted, "deleted")
        assert notes(c, P0)[STRATEGY] == "mindie-ha"
        await c.recovered(P0)


async def test_without_adoption_the_deletions_wait_the_guard_time_and_say_so() -> None:
    async with cluster(settings=quick()) as c:
        await stuck_in_stop(c)
        refused = Ours("PATCH", "podgroups", code=403, times=None)
        c.server.disturbances.add(refused)
        await note(c, P0, None)
        removed_s = c.clock.wall()
        await c.until(lambda: c.ledger(P0)["recovery"]["condition"] == "GuardingOwner", "it waits")
        c.server.disturbances.clear()
        c.server.disturbances.add(refused)
        await c.until(lambda: c.judge.deleted, "our turn")
        assert c.clock.wall() - removed_s >= GUARD_S
        c.server.disturbances.clear()
        await c.recovered(P0)


async def test_a_platform_that_appears_in_the_middle_stops_the_deletions_until_it_goes() -> None:
    async with cluster(settings=quick()) as c:
        await stuck_in_stop(c)
        await note(c, P0, "platform-x")
        await c.until(lambda: c.events("WaitingForPlatform"), "people are told")
        c.server.disturbances.clear()
        await c.clock.sleep(60)
        assert not c.judge.deleted
        assert c.ledger(P0)["recovery"]["condition"] == "WaitingForPlatform"
        assert c.state(P0) == "held"
        await note(c, P0, None)
        await c.recovered(P0)
