"""Everything that can get stuck, at job level (a server) and at pod level (active and standby).

Each ends by its deadline in a named step or waits under a named condition, and a person who reads the ledger
or the Events learns what is in the way. Nobody else is taken along.
"""

from __future__ import annotations

import json

import pytest

from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import BudgetSettings, Settings
from mindie_ha.sim.actors.pod_runs import CRASHES, PULLS

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, Object, cluster, quick
from .doors import Ours
from .pairs import COORDINATOR, service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
BOTH = pytest.mark.parametrize("job", [P0, COORDINATOR], ids=["job-level", "pod-level"])
NEVER = "example.com/never"


def settings(**phases: float) -> Settings:
    """Quick ones, that give up after three attempts."""
    budgets = BudgetSettings(max_attempts=3, backoff_first_s=5.0, backoff_max_s=20.0)
    return quick(**{"gone_s": 10.0, **phases}).model_copy(update={"budgets": budgets})


def master(job: str) -> str:
    return f"{job}-master-0"


def peer(job: str) -> str:
    return f"{job}-worker-0"


def recovery(c: Cluster, job: str) -> Object:
    return c.ledger(job).get("recovery") or {}


async def lose(c: Cluster, job: str) -> str:
    """The node under the first pod is lost."""
    node = c.node_of(master(job))
    await c.world.set_faults(node, [NOT_READY])
    return node


async def waits(c: Cluster, job: str, condition: str, *, within_s: float = 120.0) -> None:
    await c.until(lambda: recovery(c, job).get("condition") == condition, condition, deadline_s=within_s)


async def parked(c: Cluster, job: str, *, within_s: float = 600.0) -> Object:
    await c.until(lambda: c.ledger(job).get("parked"), "parked", deadline_s=within_s)
    found: Object = c.ledger(job)["parked"]
    return found


async def spoil(c: Cluster, job: str, note: str, text: str) -> None:
    """New pods of the first replica spec carry an annotation that the kubelet obeys."""
    template = {"metadata": {"annotations": {note: text}}}
    body = {"spec": {"replicaSpecs": {"Master": {"template": template}}}}
    await c.api.patch("AscendJob", job, NAMESPACE, body)


@BOTH
async def test_a_pod_that_terminates_on_a_dead_node_is_forced(job: str) -> None:
    async with cluster(service=service(), nodes=10, settings=settings()) as c:
        old, other = c.uids()[master(job)], c.uids()[peer(job)]
        await lose(c, job)
        await c.api.delete("Pod", master(job), NAMESPACE, grace_s=600)
        closed = await c.recovered(job)
        assert c.uids()[master(job)] != old
        assert (c.uids()[peer(job)] == other) is (job == COORDINATOR)
        assert closed["closed_at_s"] - closed["opened_at_s"] < 60


async def test_a_finalizer_at_job_level_is_named_and_new_siblings_stay_until_the_ladder_is_spent() -> None:
    async with cluster(service=service(), nodes=10, settings=settings()) as c:
        await c.api.patch("Pod", master(P0), NAMESPACE, {"metadata": {"finalizers": [NEVER]}})
        others = {name: uid for name, uid in c.uids().items() if not name.startswith(P0)}
        old = c.uids()[peer(P0)]
        await lose(c, P0)
        await c.until(lambda: c.uids().get(peer(P0), old) != old, "the sibling is replaced")
        new = c.uids()[peer(P0)]
        found = await parked(c, P0)
        assert found["reason"] == "LadderSpent"
        assert f"{master(P0)} (finalizer {NEVER})" in found["message"]
        assert c.uids()[peer(P0)] == new
        assert {name: uid for name, uid in c.uids().items() if not name.startswith(P0)} == others


async def test_a_finalizer_at_pod_level_keeps_the_peer_until_it_is_taken_away() -> None:
    async with cluster(service=service(), nodes=10, settings=settings()) as c:
        await c.api.patch("Pod", master(COORDINATOR), NAMESPACE, {"metadata": {"finalizers": [NEVER]}})
        other = c.uids()[peer(COORDINATOR)]
        await lose(c, COORDINATOR)
        await waits(c, COORDINATOR, "WaitingForFinalizer")
        await c.clock.sleep(1800)
        assert (recovery(c, COORDINATOR)["rung"], c.uids()[peer(COORDINATOR)]) == ("pod", other)
        assert f"{master(COORDINATOR)} is still being deleted (finalizer {NEVER})" in str(
            c.events("WaitingForFinalizer")
        )
        await c.api.patch("Pod", master(COORDINATOR), NAMESPACE, {"metadata": {"finalizers": None}})
        closed = await c.recovered(COORDINATOR)
        assert (closed["rungs"], c.uids()[peer(COORDINATOR)]) == (["pod"], other)


async def test_an_instance_without_room_waits_for_capacity_and_deletes_nothing_more() -> None:
    async with cluster(nodes=4, settings=settings()) as c:
        node = c.node_of(master(P0))
        await c.world.set_faults(node, [CHIP])
        await waits(c, P0, "WaitingForCapacity")
        uids = c.uids()
        await c.clock.sleep(1800)
        assert (c.uids(), len(c.ledger(P0)["attempts"])) == (uids, 1)
        await c.world.heal(node)
        await c.recovered(P0)


@BOTH
@pytest.mark.parametrize("what", ["image", "crash"])
async def test_a_replacement_that_does_not_start_is_named_and_the_ladder_ends_in_a_park(
    job: str, what: str
) -> None:
    async with cluster(service=service(), nodes=10, settings=settings(startup_s=60.0)) as c:
        others = {name: uid for name, uid in c.uids().items() if not name.startswith(job)}
        await c.until(
            lambda: "Times" in str(c.get("ConfigMap", "vcjob-fault-npu-cm", "volcano-system")), "granted"
        )
        note, text = (
            (PULLS, "missing") if what == "image" else (CRASHES, json.dumps({"code": 1, "after_s": 2}))
        )
        await spoil(c, job, note, text)
        await lose(c, job)
        found = await parked(c, job, within_s=900)
        closed = c.ledger(job)["closed"][-1]
        assert closed["rungs"] == (["pod", "job"] if job == COORDINATOR else ["job"])
        assert found["reason"] in ("LadderSpent", "OwnerGaveUp")
        named = "ImagePullBackOff" if what == "image" else "CrashLoopBackOff" if job == COORDINATOR else ""
        assert named in c.story()
        assert {name: uid for name, uid in c.uids().items() if not name.startswith(job)} == others


@BOTH
async def test_a_replacement_on_a_node_that_then_fails_is_replaced_once_more(job: str) -> None:
    async with cluster(service=service(), nodes=12, settings=settings(settle_s=30.0)) as c:
        other = c.uids()[peer(job)]
        first = await lose(c, job)
        await c.until(lambda: recovery(c, job).get("phase") == "settle", "settling")
        second = await lose(c, job)
        closed = await c.recovered(job)
        assert c.node_of(master(job)) not in (first, second)
        assert closed["rungs"] == (["pod"] if job == COORDINATOR else ["job"])
        assert (c.uids()[peer(job)] == other) is (job == COORDINATOR)
        assert len(c.ledger(job)["attempts"]) == 2


@BOTH
@pytest.mark.parametrize("code", [400, 403, 500])
async def test_a_refused_deletion_is_asked_again_at_a_measured_pace(job: str, code: int) -> None:
    async with cluster(service=service(), nodes=10, settings=settings()) as c:
        other = c.uids()[peer(job)]
        rule = c.server.disturbances.add(Ours("DELETE", "pods", code=code, times=None))
        await lose(c, job)
        await waits(c, job, "DeletionNotAccepted")
        before = rule.hits
        await c.clock.sleep(120)
        tries = 8 if code == 500 else 1  # an answer that says nothing is looked into within one request
        assert rule.hits - before <= 2 * 13 * tries
        assert c.uids()[peer(job)] == other
        assert c.events("DeletionNotAccepted")
        said = "denied the request" if code == 400 else "cannot do this here"
        told = [event for event in c.events("ActionRefused") if master(job) in event["message"]]
        assert [said in event["message"] for event in told] == ([] if code == 500 else [True])
        c.server.disturbances.clear()
        await c.recovered(job)


@BOTH
async def test_an_owner_that_failed_meanwhile_parks_and_says_what_to_do(job: str) -> None:
    async with cluster(service=service(), nodes=10, settings=settings()) as c:
        await lose(c, job)
        await c.until(lambda: recovery(c, job), "open", every_s=0.02)
        await c.fail_job(job)
        found = await parked(c, job)
        assert found["reason"] == "OwnerGaveUp"
        (event,) = c.events("OwnerGaveUp")
        assert "and apply it anew: its owner has given up for good" in event["message"]
        assert "mindie-ha reset" not in event["message"]


@BOTH
async def test_a_reset_arms_a_parked_one_again(job: str) -> None:
    async with cluster(service=service(), nodes=10, settings=settings()) as c:
        await c.api.patch("Pod", master(job), NAMESPACE, {"metadata": {"finalizers": [NEVER]}})
        for node in {c.node_of(master(job)), c.node_of(peer(job))}:
            await c.world.set_faults(node, [NOT_READY])
        await parked(c, job)
        await c.api.patch("Pod", master(job), NAMESPACE, {"metadata": {"finalizers": None}})
        await c.app.rearm.reset(ObjectKey(NAMESPACE, job), text="finalizer gone", person="ann")
        await c.until(lambda: c.state(job) == "ok", "well", deadline_s=300)
