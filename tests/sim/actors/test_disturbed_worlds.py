"""The actors meet refusals, lost answers, cut watches and expired histories, and still get there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.sim.disturbances import Rule

from .conftest import Stage, stage

pytestmark = pytest.mark.looptime

STORMS = {
    "refused": [Rule(code=503, share=0.2, times=None), Rule(code=409, method="PATCH", share=0.2, times=None)],
    "throttled": [Rule(code=429, share=0.3, times=None)],
    "answers-lost": [
        Rule(method=method, code=504, applied=True, share=0.3, times=None)
        for method in ("POST", "PATCH", "DELETE")
    ],
    "reset": [Rule(reset=True, share=0.1, times=None), Rule(reset=True, applied=True, share=0.1, times=None)],
    "slow": [Rule(delay_s=0.7, share=0.5, times=None)],
}


def rebuilt(s: Stage, old: set[str]) -> bool:
    """Whether the instance runs with new pods alone, and its table is complete."""
    return s.is_running("p0", 2) and not s.uids("p0") & old and s.table("p0")["status"] == "completed"


@pytest.mark.parametrize("storm", STORMS)
async def test_an_instance_is_rebuilt_in_a_storm(storm: str) -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        old = await s.kill("p0")
        for rule in STORMS[storm]:
            s.server.disturbances.add(replace(rule))
        await s.wait(
            lambda: rebuilt(s, old),
            "rebuilt",
            deadline_s=300,
        )
        assert any(rule.hits for rule in s.server.disturbances.rules)


async def test_cut_watches_and_an_expired_history_lose_nothing() -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        for turn in range(5):
            old = await s.kill("p0", grace_s=0)
            s.server.disturbances.expire_history()
            s.server.disturbances.cut_watches(mid_line=bool(turn % 2))
            await s.wait(lambda old=old: s.is_running("p0", 2) and not s.uids("p0") & old, "rebuilt")


WRITES = {
    "bind": Rule(method="POST", resource="pods", name="p0-master-0"),
    "give-cards": Rule(method="PATCH", resource="pods", name="p0-master-0"),
    "create-pod": Rule(method="POST", resource="pods"),
    "group": Rule(method="PATCH", resource="podgroups"),
    "job": Rule(method="PATCH", resource="ascendjobs"),
    "table": Rule(method="PATCH", resource="configmaps", name="rings-config-p0"),
}


@pytest.mark.parametrize("applied", [False, True], ids=["lost", "applied"])
@pytest.mark.parametrize("write", WRITES)
async def test_a_write_whose_connection_breaks_is_made_again(write: str, applied: bool) -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        rule = s.server.disturbances.add(replace(WRITES[write], reset=True, applied=applied))
        old = await s.kill("p0")
        await s.wait(
            lambda: rebuilt(s, old),
            "rebuilt",
        )
        assert rule.hits == 1
