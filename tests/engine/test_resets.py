"""A person re-arms a parked workload on a whole cluster."""

from __future__ import annotations

import pytest

from mindie_ha.model.errors import NotFound
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import BudgetSettings, Settings

from .clusters import CHIP, NAMESPACE, Cluster, cluster, metric, quick

pytestmark = pytest.mark.looptime
P0 = "mindie-server-p0"
KEY = ObjectKey(NAMESPACE, P0)


def impatient() -> Settings:
    """One attempt, then a person has to look."""
    return quick().model_copy(update={"budgets": BudgetSettings(max_attempts=1)})


async def park(c: Cluster) -> None:
    """Break a card, and the card of the replacement."""
    await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
    await c.until(lambda: (c.ledger(P0).get("recovery") or {}).get("phase") in ("settle", "announce"), "late")
    await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
    await c.until(lambda: c.ledger(P0)["parked"], "parked")


async def test_a_parked_workload_is_recovered_after_a_reset() -> None:
    async with cluster(settings=impatient()) as c:
        await park(c)
        before, uids = c.ledger(P0), c.uids(P0)
        assert before["parked"]["reason"] == "LadderSpent"
        assert f"mindie-ha reset {KEY}" in str(c.events("LadderSpent"))
        await c.clock.sleep(60)
        assert c.uids(P0) == uids, "parked is parked"
        done = await c.app.rearm.reset(KEY, text="card swapped", person="ann")
        assert done.changed
        await c.recovered(P0, closed=2)
        after = c.ledger(P0)
        assert after["parked"] is None
        assert after["epoch"] == before["epoch"] + 1
        assert after["software_retries_spent"] == before["software_retries_spent"]
        assert not set(uids.values()) & set(c.uids(P0).values())
        (event,) = c.events("Rearmed")
        assert "re-armed by ann: card swapped; it was parked (LadderSpent)" in str(event)
        assert event.get("count", 1) == 1


async def test_a_reset_survives_a_crash_right_after_it() -> None:
    async with cluster(settings=impatient()) as c:
        await park(c)
        await c.app.rearm.reset(KEY, text="", person="ann")
        await c.kill()
        await c.start(impatient())
        await c.recovered(P0, closed=2)
        assert len(c.events("Rearmed")) == 1


async def test_what_is_not_parked_stays_as_it_is() -> None:
    async with cluster(settings=quick()) as c:
        writes = len(c.judge.writes)
        done = await c.app.rearm.reset(KEY, text="", person="ann")
        assert not done.changed
        assert len(c.judge.writes) == writes
        with pytest.raises(NotFound):
            await c.app.rearm.reset(ObjectKey(NAMESPACE, "nothing"), text="", person="ann")


async def test_an_owner_that_gave_up_parks_again_and_says_so() -> None:
    async with cluster(settings=quick()) as c:
        await c.fail_job(P0)
        await c.until(lambda: c.ledger(P0).get("parked"), "parked")
        first = c.ledger(P0)["parked"]
        await c.clock.sleep(5)
        assert (await c.app.rearm.reset(KEY, text="", person="ann")).changed
        await c.until(lambda: (c.ledger(P0)["parked"] or first) != first, "parked again")
        assert c.ledger(P0)["parked"]["reason"] == "OwnerGaveUp"


async def test_what_recovers_and_what_is_parked_can_be_counted() -> None:
    async with cluster(settings=impatient()) as c:

        def counted() -> dict[str, float]:
            states = ("recovering", "waiting", "parked")
            return {state: metric(c.app, "mindie_ha_workloads", state=state) for state in states}

        assert not any(counted().values())
        await park(c)
        assert counted() == {"recovering": 0, "waiting": 0, "parked": 1}
        await c.app.rearm.reset(KEY, text="", person="ann")
        await c.until(lambda: counted() == {"recovering": 1, "waiting": 0, "parked": 0}, "recovering")
        await c.recovered(P0, closed=2)
        await c.until(lambda: not any(counted().values()), "nothing")
