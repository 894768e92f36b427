"""Decodes that stay unlinked after a Prefill was rebuilt: restarted where the rule says so, and only then."""

from __future__ import annotations

import pytest

from mindie_ha.model.settings import CoupledSettings, RestartUnlinked, Settings
from mindie_ha.sim.ms.settings import MsSettings

from .clusters import CHIP, NAMESPACE, Cluster, cluster, quick

pytestmark = pytest.mark.looptime
P0, D0, D1 = "mindie-server-p0", "mindie-server-d0", "mindie-server-d1"
ALL = ("p0", "d0", "d1")
AFTER_S = 60.0


def ruled(**coupled: object) -> Settings:
    """Quick settings with the rule on."""
    given = {"restart_unlinked": RestartUnlinked.DECODE, "after_s": AFTER_S, "recent_s": 600.0, **coupled}
    return quick().model_copy(update={"coupled": CoupledSettings(**given)})  # type: ignore[arg-type]


def stale(*jobs: str) -> MsSettings:
    """Decodes that do not get over a rebuilt peer."""
    return MsSettings(serve_http=False, stale_links=tuple(f"{NAMESPACE}/{job}" for job in jobs))


async def rebuild(c: Cluster) -> float:
    """Break and rebuild the Prefill; when that was done."""
    await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
    record = await c.recovered(P0)
    return float(record["closed_at_s"])


def asked(c: Cluster) -> list[str]:
    """Whose links were asked for."""
    return [ip for ip, _, path in c.endpoints.asked if path.endswith("/status")]


async def test_a_decode_that_stays_unlinked_is_restarted_once_and_links_then() -> None:
    async with cluster(servers=ALL, nodes=12, settings=ruled(), ms=stale(D1)) as c:
        assert not asked(c), "nobody is asked before a rebuild"
        before, others = c.uids(D1), c.uids(D0)
        rebuilt_s = await rebuild(c)
        record = await c.recovered(D1)
        assert (record["intent"]["kind"], record["intent"]["cause"]) == ("condition", "PeerUnlinked")
        assert record["intent"]["codes"] == [f"{P0}#1"]
        assert record["opened_at_s"] - rebuilt_s == pytest.approx(AFTER_S, abs=5.0)
        assert not set(before.values()) & set(c.uids(D1).values())
        assert c.uids(D0) == others
        await c.clock.sleep(600)
        assert len(c.ledger(D1)["closed"]) == 1
        count = len(asked(c))
        await c.quiet()
        assert len(asked(c)) == count, "the rebuild is not recent any more"


@pytest.mark.parametrize(
    ("settings", "ms"),
    [
        pytest.param(quick(), stale(D1), id="the rule is off"),
        pytest.param(ruled(), stale(), id="all link again"),
        pytest.param(ruled(port=1), stale(D1), id="nobody answers"),
    ],
)
async def test_nobody_is_restarted_otherwise(settings: Settings, ms: MsSettings) -> None:
    async with cluster(servers=ALL, nodes=12, settings=settings, ms=ms) as c:
        before = c.uids(D0) | c.uids(D1)
        await rebuild(c)
        await c.clock.sleep(AFTER_S * 3)
        assert c.uids(D0) | c.uids(D1) == before
        assert not c.ledger(D1)["closed"]


async def test_two_unlinked_decodes_are_restarted_one_after_the_other_within_the_budget() -> None:
    async with cluster(servers=ALL, nodes=12, settings=ruled(max_restarts=2), ms=stale(D0, D1)) as c:
        await rebuild(c)
        first = await c.recovered(D0, deadline_s=400)
        second = await c.recovered(D1, deadline_s=400)
        assert second["opened_at_s"] >= first["closed_at_s"]


async def test_the_budget_counts_all_decodes_of_one_rebuild_over_a_restart_of_ours() -> None:
    async with cluster(servers=ALL, nodes=12, settings=ruled(), ms=stale(D0, D1)) as c:
        await rebuild(c)
        await c.recovered(D0, deadline_s=400)
        await c.kill()
        await c.start(ruled())
        await c.clock.sleep(AFTER_S * 4)
        assert not c.ledger(D1)["closed"]
