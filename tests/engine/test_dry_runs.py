"""`--dry-run` decides and records as ever, and writes nothing at all."""

from __future__ import annotations

import pytest

from .clusters import CHIP, cluster, metric, quick

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"


async def test_a_dry_run_decides_and_writes_nothing() -> None:
    settings = quick().model_copy(update={"dry_run": True})
    async with cluster(start=False) as c:
        await c.start(settings)
        await c.until(lambda: c.state(P0) == "ok" and c.state(D0) == "ok", "seen")
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: any(record.rule == "open" for record in c.records), "decided")
        await c.clock.sleep(60)
        actions = [action for record in c.records for action in record.actions]
        assert any("isolate node" in action for action in actions)
        assert any(f"delete pod mindie/{P0}-master-0" in action for action in actions)
        assert any(action == "publish generation 1" for action in actions)
        assert c.judge.writes == []
        assert c.state(P0) == "faulty"
        opened = [record for record in c.records if record.rule == "open"]
        assert len(opened) == 1


async def test_a_dry_run_beside_a_recovery_of_the_real_one_only_watches() -> None:
    settings = quick().model_copy(update={"dry_run": True})
    async with cluster(settings=quick()) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.judge.deleted, "acting")
        await c.kill()
        count = len(c.judge.writes)
        await c.start(settings)
        await c.clock.sleep(60)
        assert len(c.judge.writes) == count
        assert metric(c.app, "mindie_ha_writes_total") == metric(
            c.app, "mindie_ha_writes_total", result="dry-run"
        )
