"""Two controllers on one cluster: the leader goes, the other finishes what it finds.

Nothing is deleted twice, no attempt is lost, ids and generations go on, nothing stays isolated: the judge of
the embedded cluster sees every write of both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mindie_ha.cluster.leases import DRIFT
from mindie_ha.model.settings import LeaseSettings, Settings

from .clusters import CHIP, Cluster, Run, cluster, metric, quick, small_service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
# `announce` is not among them: where nobody subscribed it is left in the look that enters it.
PHASES = ("isolate", "stop", "gone", "recreate", "place", "table", "settle")
LEASE_S = 6


def two(**phases: float) -> Settings:
    """Settings with a short Lease."""
    lease = LeaseSettings(duration_s=LEASE_S, renew_s=2.0, retry_s=2.0)
    return quick(**phases).model_copy(update={"lease": lease})


@asynccontextmanager
async def pair(**phases: float) -> AsyncIterator[tuple[Cluster, Run, Run]]:
    """A cluster that serves, its leader, and a standby."""
    async with cluster(settings=two(**phases)) as c:
        leader = c.runs[-1]
        standby = await c.stand_by(two(**phases))
        yield c, leader, standby


def phase(c: Cluster) -> str:
    ledger = c.ledger(P0)
    return str(ledger["recovery"]["phase"]) if ledger and ledger["recovery"] else ""


def cut_off(c: Cluster, leader: Run, at: str) -> asyncio.Event:
    """Let nothing of the leader through any more once it has recorded a phase; set when it has."""
    reached = asyncio.Event()

    def stop_here(_: object) -> None:
        if phase(c) == at and not reached.is_set():
            leader.door.shut.set()
            reached.set()

    leader.app.recorder.listeners.append(stop_here)
    return reached


async def hold(c: Cluster, pod: str, finalizers: list[str] | None) -> None:
    """Keep a pod from going, or let it go."""
    await c.api.patch("Pod", pod, "mindie", {"metadata": {"finalizers": finalizers}})


@pytest.mark.parametrize("at", PHASES)
async def test_killed_in_a_phase_the_other_finishes(at: str) -> None:
    async with pair() as (c, leader, standby):
        ids, other, old, node = c.table()["ids"], c.uids(D0), c.uids(P0), c.node_of(f"{P0}-master-0")
        reached = cut_off(c, leader, at)
        if at == "gone":
            await hold(c, f"{P0}-worker-0", ["test/hold"])
        await c.world.set_faults(node, [CHIP])
        await c.until(reached.is_set, f"phase {at}")
        began_s, generation = c.clock.monotonic(), c.table()["generation"]
        await c.kill(leader, at_once=False)
        await c.until(standby.app.started.is_set, "the other leads")
        assert c.clock.monotonic() - began_s < LEASE_S * DRIFT + 2
        if at == "gone":
            await hold(c, f"{P0}-worker-0", None)
        await c.recovered(P0)
        ledger = c.ledger(P0)
        assert (ledger["epoch"], len(ledger["attempts"])) == (1, 1)
        assert set(c.judge.deleted) == set(old.values())
        assert c.uids(D0) == other
        assert c.table()["ids"] == ids
        assert c.table()["generation"] >= generation
        await c.until(lambda: c.published() == {P0, D0}, "the new table")
        await c.until(lambda: not c.taints(node), "released", deadline_s=400)


async def test_a_leader_that_stops_in_order_is_followed_within_two_seconds() -> None:
    async with pair() as (c, leader, standby):
        await c.clock.sleep(60)
        began_s = c.clock.monotonic()
        leader.task.cancel()
        await c.until(standby.app.started.is_set, "the other leads", every_s=0.05)
        assert c.clock.monotonic() - began_s < 2
        await c.quiet(within_s=0, for_s=30)  # nothing is wrong: nothing is written by whoever comes


async def test_what_is_left_of_a_deadline_is_what_the_next_leader_gets() -> None:
    async with pair(startup_s=100.0, settle_s=5.0) as (c, leader, standby):
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: phase(c) == "settle", "settles")
        before = c.ledger(P0)["recovery"]
        await c.kill(leader, at_once=False)
        await c.until(standby.app.started.is_set, "the other leads")
        after = c.ledger(P0)["recovery"]
        assert after is None or (after["phase"], after["deadline_s"]) == ("settle", before["deadline_s"])


async def test_a_standby_sees_everything_and_writes_nothing() -> None:
    async with pair() as (c, leader, standby):
        writes = standby.door.writes
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.recovered(P0)
        assert standby.door.writes == writes
        assert not standby.records
        health = standby.app.health()
        assert (health.live, health.ready, health.leads) == (True, True, False)
        assert health.leader == leader.app.candidate.identity
        assert metric(standby.app, "mindie_ha_leader") == 0
        assert metric(leader.app, "mindie_ha_leader") == 1
        states = {work.name: work.state for report in standby.app.reports() for work in report.workloads}
        assert states[P0] == "ok"


async def test_a_leader_that_is_cut_off_writes_nothing_and_comes_back_as_standby() -> None:
    async with pair() as (c, leader, standby):
        reached = cut_off(c, leader, "stop")
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(reached.is_set, "stops")
        await c.until(standby.app.started.is_set, "the other leads")
        assert not leader.app.started.is_set()
        leader.door.shut.clear()
        writes = leader.door.writes
        await c.recovered(P0)
        await c.clock.sleep(60)
        assert leader.door.writes == writes
        health = leader.app.health()
        assert (health.live, health.ready, health.leads) == (True, True, False)
        await c.kill(standby, at_once=False)
        await c.until(leader.app.started.is_set, "it leads again")
        await c.world.set_faults(c.node_of(f"{D0}-master-0"), [CHIP])
        await c.recovered(D0)


async def test_a_job_that_was_made_again_under_its_name_starts_clean() -> None:
    async with pair() as (c, leader, standby):
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: phase(c) == "settle", "settles")
        await c.kill(leader, at_once=False)
        job = c.get("AscendJob", P0)
        assert job is not None
        await c.api.delete("AscendJob", P0, "mindie")
        await c.until(lambda: c.get("AscendJob", P0) is None and not c.pods(P0), "gone")
        named = [one for one in small_service() if one["metadata"]["name"] == P0]
        await c.apply(one for one in named if one["kind"] == "AscendJob")
        await c.until(standby.app.started.is_set, "the other leads")
        await c.until(lambda: c.published() == {P0, D0}, "serves", deadline_s=300)
        await c.clock.sleep(60)
        ledger = c.ledger(P0)
        assert not ledger or (ledger["recovery"], ledger["epoch"]) == (None, 0)
