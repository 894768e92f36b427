"""Liveness and readiness while the API server is away: no restart, and clients still reach us."""

from __future__ import annotations

import pytest

from mindie_ha.web import standing

from .clusters import cluster

pytestmark = pytest.mark.looptime


async def test_an_api_server_that_is_away_makes_us_neither_dead_nor_unready() -> None:
    async with cluster() as c:
        assert c.app.health().live
        assert c.app.health().ready
        assert not c.app.health().reasons
        began_s = c.clock.wall()
        c.runs[-1].door.shut.set()
        for _ in range(10):
            await c.clock.sleep(90)
            health = c.app.health()
            assert health.live
            assert health.ready
        assert health.reasons
        assert (health.leader, health.role) == ("", "standby")
        assert health.away_at_s is not None
        assert began_s - 1 < health.away_at_s < c.clock.wall()
        said = standing.report(
            health.problems, role=health.role, leader=health.leader, away_at_s=health.away_at_s
        )
        (problem,) = said["problems"]
        assert problem["object"] == "API server"
        c.runs[-1].door.shut.clear()
        await c.until(lambda: c.app.health().leads, "it leads again")
        await c.until(lambda: not c.app.health().problems, "it sees again")
        assert c.app.health().away_at_s is None


async def test_a_controller_that_has_ended_is_not_ready() -> None:
    async with cluster(start=False) as c:
        run = await c.start()
        await c.kill()
        health = run.app.health()
        assert health.live
        assert not health.ready
