"""Whose pods we touch, and whose we never do."""

from __future__ import annotations

import pytest

from mindie_ha.model.settings import Owner, OwnershipSettings

from .clusters import CHIP, NAMESPACE, Cluster, cluster, quick, small_service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
STRATEGY = "ProcessRecoverStrategy"


def notes(c: Cluster, job: str) -> dict[str, str]:
    group = c.get("PodGroup", c.podgroup(job)) or {"metadata": {}}
    return dict(group["metadata"].get("annotations") or {})


@pytest.mark.parametrize("label", [None, "off", "true", "Force", "x" * 63], ids=str)
async def test_a_job_that_does_not_ask_for_it_is_published_and_never_touched(label: str | None) -> None:
    service = small_service()
    for obj in service:
        if obj["metadata"]["name"] == P0:
            obj["metadata"]["labels"].pop("fault-scheduling")
            if label is not None:
                obj["metadata"]["labels"]["fault-scheduling"] = label
    async with cluster(service=service, settings=quick()) as c:
        before, node = c.uids(), c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.quiet()
        assert c.uids() == before
        assert not c.taints(node)
        assert P0 in c.published()
        assert STRATEGY not in notes(c, P0)
        assert bool(c.events("UnknownFaultScheduling")) is (label not in (None, "off"))


async def test_a_platform_owned_podgroup_is_left_alone_and_said_so() -> None:
    async with cluster(settings=quick()) as c:
        note = {"metadata": {"annotations": {STRATEGY: "platform-x"}}}
        await c.api.patch("PodGroup", c.podgroup(P0), NAMESPACE, note)
        before = c.uids()
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.events("WaitingForPlatform"), "people are told")
        await c.quiet()
        assert c.uids() == before


async def test_a_platform_that_takes_over_in_the_middle_stops_the_deletions() -> None:
    async with cluster(nodes=4, settings=quick()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.state(P0) == "waiting", "no capacity")
        note = {"metadata": {"annotations": {STRATEGY: "platform-x"}}}
        await c.api.patch("PodGroup", c.podgroup(P0), NAMESPACE, note)
        await c.clock.sleep(5)
        count = len(c.judge.deleted)
        await c.delete_pod(f"{P0}-master-0")
        await c.clock.sleep(60)
        assert len(c.judge.deleted) == count


async def test_a_label_that_is_taken_away_in_the_middle_is_what_a_recovery_waits_for() -> None:
    async with cluster(nodes=4, settings=quick()) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: c.state(P0) == "waiting", "no capacity")
        await c.label_job(P0, fault_scheduling=None)
        await c.until(lambda: c.ledger(P0)["recovery"]["condition"] == "WaitingForLabel", "said so")
        count = len(c.judge.deleted)
        await c.world.heal(node)
        await c.clock.sleep(60)
        assert (len(c.judge.deleted), c.state(P0)) == (count, "held")
        await c.label_job(P0, fault_scheduling="force")
        await c.recovered(P0)


async def test_a_podgroup_made_anew_is_adopted_again() -> None:
    async with cluster() as c:
        await c.api.delete("PodGroup", c.podgroup(P0), NAMESPACE)
        await c.until(lambda: c.get("PodGroup", c.podgroup(P0)), "re-created")
        await c.until(lambda: STRATEGY in notes(c, P0), "adopted")
        await c.quiet()


async def test_removing_the_label_in_the_middle_of_a_recovery_stops_it_there() -> None:
    async with cluster(nodes=4, settings=quick()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.state(P0) == "waiting", "no capacity")
        await c.label_job(P0, fault_scheduling="off")
        await c.clock.sleep(2)
        count = len(c.judge.deleted)
        await c.delete_pod(f"{P0}-master-0")
        await c.clock.sleep(60)
        assert len(c.judge.deleted) == count


async def test_a_job_deleted_in_the_middle_of_its_recovery_leaves_nothing_open() -> None:
    async with cluster(settings=quick(), lag_s=(30.0, 30.0)) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: c.judge.deleted, "the recovery acts")
        await c.api.delete("AscendJob", P0, NAMESPACE)
        await c.until(lambda: not c.pods(P0), "pods are gone")
        await c.until(lambda: not c.taints(node), "nobody wants the taint any more")
        await c.quiet()
        assert c.published() == {D0}


async def test_a_job_made_anew_under_its_name_has_a_fresh_memory_and_its_old_id() -> None:
    async with cluster(settings=quick()) as c:
        old, ids = c.uids(P0), c.table()["ids"]
        await c.api.delete("AscendJob", P0, NAMESPACE)
        await c.until(lambda: not c.pods(P0), "pods are gone")
        await c.clock.sleep(20)
        again = [obj for obj in small_service() if obj["metadata"]["name"] == P0]
        await c.apply(again)
        await c.serving()
        assert not set(c.uids(P0).values()) & set(old.values())
        assert c.table()["ids"][D0] == ids[D0]
        assert c.ledger(P0)["epoch"] == 0
        assert not c.judge.deleted
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.recovered(P0)


async def test_scaling_is_no_fault() -> None:
    async with cluster(nodes=8, settings=quick()) as c:
        await c.scale(P0, workers=2)
        await c.until(lambda: len(c.pods(P0)) == 3, "scaled up")
        await c.clock.sleep(60)
        await c.scale(P0, workers=1)
        await c.delete_pod(f"{P0}-worker-1")
        await c.clock.sleep(60)
        assert not c.judge.deleted


async def test_grace_withdraws_first_and_lets_pods_end_by_themselves() -> None:
    async with cluster(start=False) as c:
        await c.label_job(P0, fault_scheduling="grace")
        await c.start(quick())
        await c.serving()
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.published() == {D0}, "withdrawn")
        withdrawn_s = c.clock.wall()
        await c.until(lambda: c.judge.deleted, "deleted")
        first = next(write for write in c.judge.writes if write.method == "DELETE")
        assert first.at_s - withdrawn_s == pytest.approx(7, abs=0.5)
        assert "gracePeriodSeconds" not in first.body
        await c.recovered(P0)
        assert c.published() == {P0, D0}


async def test_with_owner_volcano_we_act_only_after_the_guard_time() -> None:
    settings = quick().model_copy(update={"ownership": OwnershipSettings(owner=Owner.VOLCANO)})
    async with cluster(settings=settings) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        closed = await c.recovered(P0)
        first = next(write for write in c.judge.writes if write.method == "DELETE")
        assert first.at_s - closed["opened_at_s"] >= 15
        assert STRATEGY not in notes(c, P0)
