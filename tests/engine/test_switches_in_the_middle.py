"""Labels, pauses and a second fault that come in the middle of a recovery of active and standby."""

from __future__ import annotations

import pytest

from .clusters import NOT_READY, cluster, quick
from .doors import Ours
from .pairs import COORDINATOR, service

pytestmark = pytest.mark.looptime
BOARD = {"board": "PSU", "code": "2C000031", "level": "SeparateFault"}
MASTER, WORKER = f"{COORDINATOR}-master-0", f"{COORDINATOR}-worker-0"


async def test_a_label_that_is_taken_back_before_anything_was_deleted_makes_it_the_job_rung() -> None:
    async with cluster(service=service(), nodes=12, settings=quick()) as c:
        before = c.uids(COORDINATOR)
        await c.app.pauses.pause("cluster", text="work", person="ann", for_s=None)
        await c.world.set_faults(c.node_of(MASTER), [NOT_READY])
        await c.until(lambda: c.state(COORDINATOR) == "held", "it is held")
        assert c.ledger(COORDINATOR)["recovery"]["rung"] == "pod"
        await c.label_job(COORDINATOR, pod_rescheduling="off")
        await c.clock.sleep(5)
        await c.app.pauses.resume("cluster", person="ann")
        closed = await c.recovered(COORDINATOR)
        replaced = set(before.values()) - set(c.uids(COORDINATOR).values())
        assert (closed["rungs"], len(replaced)) == (["job"], 2)


async def test_a_pause_holds_deletions_that_the_api_refused_so_far() -> None:
    async with cluster(service=service(), nodes=12, settings=quick()) as c:
        c.server.disturbances.add(Ours("DELETE", "pods", code=403, times=None))
        await c.world.set_faults(c.node_of(MASTER), [NOT_READY])
        await c.until(lambda: (c.ledger(COORDINATOR).get("recovery") or {}).get("phase") == "stop", "stop")
        await c.clock.sleep(15)
        await c.app.pauses.pause("cluster", text="work", person="ann", for_s=None)
        await c.clock.sleep(2)
        sent = sum(one.method == "DELETE" for one in c.judge.writes)
        await c.clock.sleep(60)
        assert sum(one.method == "DELETE" for one in c.judge.writes) == sent
        c.server.disturbances.clear()
        await c.app.pauses.resume("cluster", person="ann")
        assert (await c.recovered(COORDINATOR))["outcome"] == "recovered"


@pytest.mark.parametrize("returns", [True, False], ids=["peer-returns", "peer-is-lost"])
async def test_a_pod_that_serves_is_not_deleted_before_it_is_known_that_its_peer_is_there(
    returns: bool,
) -> None:
    async with cluster(service=service(), nodes=12, settings=quick()) as c:
        before, silent = c.uids(COORDINATOR), c.node_of(WORKER)
        await c.world.set_faults(silent, [NOT_READY])
        await c.clock.sleep(5)
        await c.world.set_faults(c.node_of(MASTER), [BOARD])
        await c.clock.sleep(7)
        assert c.uids(COORDINATOR) == before
        assert c.ledger(COORDINATOR)["recovery"]["condition"] == "WaitingForPeer"
        if returns:
            await c.world.heal(silent)
        closed = await c.recovered(COORDINATOR)
        assert closed["rungs"] == (["pod"] if returns else ["job"])
        assert (c.uids(COORDINATOR)[WORKER] == before[WORKER]) is returns
        assert c.uids(COORDINATOR)[MASTER] != before[MASTER]
