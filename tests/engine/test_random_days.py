"""Days on which anything happens, in an order that nobody thought of; one seed is one day.

Faults, healings, deletions, exits, restarts and trouble with the API follow each other at random. Then
everything heals, and within an hour the service must be whole, the table current, no taint and no open
recovery left, and nothing written any more. What must never happen is watched by the judge throughout.
"""

from __future__ import annotations

import random

import pytest

from mindie_ha.model.settings import BudgetSettings, PhaseSettings, Settings
from tools.soak.judges import TAINT

from .clusters import CHIP, NOT_READY, Cluster, cluster
from .doors import Ours

pytestmark = pytest.mark.looptime
SERVERS = ("p0", "p1", "d0")
JOBS = tuple(f"mindie-server-{name}" for name in SERVERS)
NODES = 9
STEPS = 18
BOARD = {"board": "PSU", "code": "2C000031", "level": "SeparateFault"}
SETTINGS = Settings(
    phases=PhaseSettings(settle_s=5.0),
    budgets=BudgetSettings(max_attempts=100, backoff_max_s=60.0),
)


async def something_happens(c: Cluster, dice: random.Random) -> None:
    pods = sorted(c.pods())
    match dice.randrange(13):
        case 0 if pods:
            await c.delete_pod(dice.choice(pods))
        case 1:
            await c.kill()
            await c.clock.sleep(dice.uniform(0, 20))
            await c.start(SETTINGS)
        case 2:
            method = dice.choice(["PUT", "PATCH", "DELETE", "POST", "WATCH"])
            rule = Ours(method, code=dice.choice([409, 429, 503]), times=4)
            c.server.disturbances.add(rule)
        case 3:
            c.server.disturbances.expire_history()
            c.server.disturbances.cut_watches(mid_line=dice.random() < 0.5)
        case _:
            await a_machine_changes(c, dice, f"node-{dice.randrange(NODES)}")


async def a_machine_changes(c: Cluster, dice: random.Random, node: str) -> None:
    """A fault, a healing, or its Node object goes; one that is gone comes back."""
    if c.get("Node", node, "") is None:
        await c.world.return_node(node)
        return
    match dice.randrange(8):
        case 0 | 1:
            await c.world.set_faults(node, [CHIP])
        case 2 | 3:
            await c.world.set_faults(node, [NOT_READY])
        case 4:
            await c.world.set_faults(node, [BOARD])
        case 5:
            await c.world.delete_node(node)
        case _:
            await c.world.heal(node)


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
    async with cluster(servers=SERVERS, nodes=NODES, seed=seed, settings=SETTINGS) as c:
        for _ in range(STEPS):
            await something_happens(c, dice)
            await c.clock.sleep(dice.choice([0.1, 1.0, 5.0, 20.0]))
        c.server.disturbances.clear()
        for number in range(NODES):
            await c.world.return_node(f"node-{number}")
            await c.world.heal(f"node-{number}")
        await c.until(lambda: is_whole(c), "whole", deadline_s=3600, every_s=5.0)
        await c.quiet()
