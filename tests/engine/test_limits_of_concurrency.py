"""Only so many recoveries at the same time, on a whole cluster."""

from __future__ import annotations

import pytest

from mindie_ha.model.settings import BudgetSettings, Settings

from .clusters import CHIP, Cluster, cluster, quick

pytestmark = pytest.mark.looptime
SERVERS = ("p0", "p1", "d0")
JOBS = tuple(f"mindie-server-{name}" for name in SERVERS)
BEFORE = (None, "isolate", "backoff")


def limited(*, service: int = 0, whole: int = 0) -> Settings:
    budgets = BudgetSettings(
        max_concurrent_recoveries_per_service=service, max_concurrent_recoveries_per_cluster=whole
    )
    return quick().model_copy(update={"budgets": budgets})


async def break_all(c: Cluster) -> None:
    for job in JOBS:
        await c.world.set_faults(c.node_of(f"{job}-master-0"), [CHIP])


def busy(c: Cluster) -> int:
    phases = [(c.ledger(job).get("recovery") or {}).get("phase") for job in JOBS]
    return sum(phase not in BEFORE for phase in phases)


def done(c: Cluster) -> bool:
    ledgers = [c.ledger(job) for job in JOBS]
    return all(ledger and ledger["recovery"] is None and ledger["closed"] for ledger in ledgers)


async def most(c: Cluster) -> int:
    """How many were busy at the same time until all are done."""
    seen = 0
    for _ in range(4000):
        seen = max(seen, busy(c))
        if done(c):
            return seen
        await c.clock.sleep(0.1)
    raise AssertionError(c.story())


@pytest.mark.parametrize(
    ("settings", "at_most"),
    [
        pytest.param(limited(), 3, id="no-limit"),
        pytest.param(limited(service=1), 1, id="service-1"),
        pytest.param(limited(whole=1), 1, id="cluster-1"),
        pytest.param(limited(service=2, whole=3), 2, id="service-2"),
        pytest.param(limited(service=1, whole=1), 1, id="both"),
    ],
)
async def test_all_recover_and_never_more_at_once_than_allowed(settings: Settings, at_most: int) -> None:
    async with cluster(servers=SERVERS, nodes=10, settings=settings) as c:
        await break_all(c)
        assert await most(c) == at_most
        assert bool(c.events("HeldByLimit")) is (at_most < len(JOBS))


async def test_a_restart_keeps_the_queue() -> None:
    settings = limited(whole=1)
    async with cluster(servers=SERVERS, nodes=10, settings=settings) as c:
        await break_all(c)
        await c.until(lambda: busy(c) == 1, "one goes first")
        await c.kill()
        await c.start(settings)
        assert await most(c) == 1


async def test_whoever_waits_for_capacity_keeps_nobody_waiting() -> None:
    settings = limited(whole=1)
    async with cluster(servers=("p0", "d0"), nodes=5, settings=settings) as c:
        first = JOBS[0]
        nodes = [node["metadata"]["name"] for node in c.all("Node", "")]
        used = {pod["spec"].get("nodeName") for name, pod in c.pods().items() if "-server-" in name}
        for node in nodes:
            if node not in used:
                await c.api.patch("Node", node, "", {"spec": {"unschedulable": True}})
        await c.world.set_faults(c.node_of(f"{first}-master-0"), [CHIP])
        await c.until(
            lambda: (c.ledger(first).get("recovery") or {}).get("condition") == "WaitingForCapacity", "waits"
        )
        await c.world.set_faults(c.node_of(f"{JOBS[2]}-master-0"), [CHIP])
        await c.until(lambda: (c.ledger(JOBS[2]).get("recovery") or {}).get("phase") not in BEFORE, "goes on")


async def test_whom_we_no_longer_own_keeps_nobody_waiting() -> None:
    settings = limited(whole=1)
    async with cluster(servers=SERVERS, nodes=10, settings=settings) as c:
        await break_all(c)
        await c.until(lambda: busy(c) == 1, "one goes first")
        waiting = [job for job in JOBS if (c.ledger(job)["recovery"] or {}).get("phase") in BEFORE]
        await c.label_job(waiting[0], fault_scheduling=None)
        await c.recovered(waiting[1])
