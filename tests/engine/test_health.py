"""Liveness and readiness while the API server is away: no restart, and clients still reach us."""

from __future__ import annotations

import pytest

from .clusters import cluster

pytestmark = pytest.mark.looptime


async def test_an_api_server_that_is_away_makes_us_neither_dead_nor_unready() -> None:
    async with cluster() as c:
        assert c.app.health().live
        assert c.app.health().ready
        assert not c.app.health().reasons
        c.runs[-1].door.shut.set()
        for _ in range(10):
            await c.clock.sleep(90)
            health = c.app.health()
            assert health.live
            assert health.ready
        assert health.reasons


async def test_a_controller_that_has_ended_is_not_ready() -> None:
    async with cluster(start=False) as c:
        run = await c.start()
        await c.kill()
        health = run.app.health()
        assert health.live
        assert not health.ready
