"""Days on which anything happens, in an order that nobody thought of; one seed is one day.

Faults, healings, deletions, exits, restarts and trouble with the API follow each other at random. Then
everything heals, and within an hour the service must be whole, the table current, no taint and no open
recovery left, and nothing written any more. What must never happen is watched by the judge throughout.
"""

from __future__ import annotations

import random

import pytest

from mindie_ha.model.settings import BudgetSettings, PhaseSettings, Settings

from .clusters import CHIP, NOT_READY, Cluster, Ours, cluster
from .judges import TAINT

pytestmark = pytest.mark.looptime
SERVERS = ("p0", "p1", "d0")
JOBS = tuple(f"mindie-server-{name}" for name in SERVERS)
STEPS = 14
SETTINGS = Settings(
    phases=PhaseSettings(settle_s=5.0),
    budgets=BudgetSettings(max_attempts=100, backoff_max_s=60.0),
)


async def something_happens(c: Cluster, dice: random.Random) -> None:
    node = f"node-{dice.randrange(9)}"
    pods = sorted(c.pods())
    match dice.randrange(9):
        case 0 | 1:
            await c.world.set_faults(node, [CHIP])
        case 2:
            await c.world.set_faults(node, [NOT_READY])
        case 3 | 4:
            await c.world.heal(node)
        case 5 if pods:
            await c.delete_pod(dice.choice(pods))
        case 6:
            await c.kill()
            await c.clock.sleep(dice.uniform(0, 20))
            await c.start(SETTINGS)
        case 7:
            method = dice.choice(["PUT", "PATCH", "DELETE", "POST", "WATCH"])
            rule = Ours(method, code=dice.choice([409, 429, 503]), times=4)
            c.server.disturbances.add(rule)
        case _:
            c.server.disturbances.expire_history()
            c.server.disturbances.cut_watches(mid_line=dice.random() < 0.5)


def is_whole(c: Cluster) -> bool:
    if any(c.ledger(job).get("recovery") for job in JOBS):
        return False
    no_taint = not any(TAINT in c.taints(node["metadata"]["name"]) for node in c.all("Node", ""))
    ips = {pod["status"].get("podIP", "") for job in JOBS for pod in c.pods(job).values()}
    published = c.published() == set(JOBS) and c.published_ips() == ips
    return no_taint and published and all(c.state(job) == "ok" for job in JOBS)


@pytest.mark.parametrize("seed", range(4))
async def test_after_a_random_day_everything_is_whole_again(seed: int) -> None:
    dice = random.Random(seed)
    async with cluster(servers=SERVERS, nodes=9, seed=seed, settings=SETTINGS) as c:
        for _ in range(STEPS):
            await something_happens(c, dice)
            await c.clock.sleep(dice.choice([0.1, 1.0, 5.0, 20.0]))
        c.server.disturbances.clear()
        for number in range(9):
            await c.world.heal(f"node-{number}")
        await c.until(lambda: is_whole(c), "whole", deadline_s=3600, every_s=5.0)
        await c.quiet()
