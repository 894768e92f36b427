"""A person asks for a recovery on a whole cluster."""

from __future__ import annotations

import pytest

from mindie_ha.model.errors import Conflict, NotFound
from mindie_ha.model.ids import ObjectKey
from mindie_ha.policy.asking import Wish

from .clusters import CHIP, NAMESPACE, cluster, quick

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
KEY = ObjectKey(NAMESPACE, P0)
WISH = Wish(person="ann", text="new firmware")


async def test_what_is_asked_for_is_recorded_and_done_once() -> None:
    async with cluster(settings=quick()) as c:
        before, others = c.uids(P0), c.uids(D0)
        done = await c.app.requests.recover(KEY, WISH)
        assert (done.rung, set(done.pods), done.epoch) == ("job", set(before), 1)
        assert c.ledger(P0)["request"]["person"] == "person:ann", "recorded before it is answered"
        record = await c.recovered(P0)
        assert (record["intent"]["kind"], record["rungs"], record["outcome"]) == (
            "request",
            ["job"],
            "recovered",
        )
        assert not set(before.values()) & set(c.uids(P0).values())
        assert c.uids(D0) == others
        assert not any(c.taints(node["metadata"]["name"]) for node in c.all("Node", ""))
        (event,) = c.events("RecoveryRequested")
        assert "ann asked for a recovery of 2 pods: new firmware" in str(event)
        await c.quiet()
        assert len(c.ledger(P0)["closed"]) == 1


async def test_a_wish_survives_a_crash_right_after_it() -> None:
    async with cluster(settings=quick()) as c:
        before = c.uids(P0)
        await c.app.requests.recover(KEY, WISH)
        await c.kill()
        assert c.uids(P0) == before
        await c.start(quick())
        await c.recovered(P0)
        assert len(c.events("RecoveryRequested")) == 1
        assert not set(before.values()) & set(c.uids(P0).values())


async def test_what_is_refused_writes_nothing() -> None:
    async with cluster(settings=quick()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.ledger(P0).get("recovery"), "open")
        with pytest.raises(Conflict, match="has recovery 1 open already"):
            await c.app.requests.recover(KEY, WISH)
        with pytest.raises(NotFound):
            await c.app.requests.recover(ObjectKey(NAMESPACE, "nothing"), WISH)
        await c.recovered(P0)
        await c.label_job(D0, fault_scheduling=None)
        await c.until(lambda: c.state(D0) != "unknown", "seen")
        await c.clock.sleep(2)
        writes = len(c.judge.writes)
        with pytest.raises(Conflict, match="is not ours"):
            await c.app.requests.recover(ObjectKey(NAMESPACE, D0), WISH)
        assert len(c.judge.writes) == writes


async def test_a_dry_run_records_no_wish() -> None:
    async with cluster(settings=quick()) as c:
        await c.kill()
        await c.start(quick().model_copy(update={"dry_run": True}))
        with pytest.raises(Conflict, match="--dry-run"):
            await c.app.requests.recover(KEY, WISH)
