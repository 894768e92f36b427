"""How long a controller needs to know a large cluster, and for how long its loop stands still meanwhile.

The API server (a process of its own) holds the fleet; the caches of a controller fill from it over loopback.
A ticker on the controller's loop wants to run every 5 ms: the longest time between two ticks is how long
anything else, a Lease renewal or a rank table, would have had to wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mindie_ha.app import Core, Edges
from mindie_ha.cluster.connections import connect
from mindie_ha.kit import heaps
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.settings import Settings
from mindie_ha.sim import kubeconfigs
from tools.bench.processes import child

TICK_S = 0.005


@dataclass(frozen=True, slots=True)
class Size:
    """Of the fleet."""

    pods: int
    nodes: int


@dataclass(slots=True)
class Startup:
    """One entry a run, in seconds."""

    size: Size
    sync: list[float]
    longest_gap: list[float]


async def measure(*, size: Size, runs: int, directory: Path, progress: Callable[[str], None]) -> Startup:
    """Fill the caches `runs` times."""
    kubeconfig = directory / "fleet.kubeconfig"
    found = Startup(size, [], [])
    arguments = ("fleet", "--pods", str(size.pods), "--nodes", str(size.nodes))
    async with child("tools.bench.clusters", *arguments, log=directory / "children.log") as fleet:
        kubeconfigs.write(kubeconfig, fleet["url"])
        for run in range(runs):
            progress(f"start-up {run + 1} of {runs}")
            await _one(kubeconfig, found)
    return found


async def _one(kubeconfig: Path, found: Startup) -> None:
    transport = await connect(str(kubeconfig))
    heaps.relax()  # as `serve` does
    edges = Edges(
        transport=transport, clock=LoopClock(), entropy=Entropy(1), log=silent_log(), filled=heaps.freeze
    )
    core = Core(Settings(), edges, metrics=Metrics())
    gaps: list[float] = []
    ticker = asyncio.create_task(tick(gaps))
    try:
        await asyncio.sleep(10 * TICK_S)
        gaps.clear()
        began_s = time.perf_counter()
        await core.synced()
        found.sync.append(time.perf_counter() - began_s)
        await asyncio.sleep(2 * TICK_S)
        found.longest_gap.append(max(gaps))
        _check(core, found.size)
    finally:
        ticker.cancel()
        await asyncio.gather(ticker, return_exceptions=True)
        await core.supervisor.close()
        await transport.close()


async def tick(gaps: list[float]) -> None:
    """Note the time between two turns of a task that wants one every `TICK_S`."""
    last_s = time.perf_counter()
    while True:
        await asyncio.sleep(TICK_S)
        now_s = time.perf_counter()
        gaps.append(now_s - last_s)
        last_s = now_s


def _check(core: Core, size: Size) -> None:
    """A measurement of half a fleet would be a lie."""
    counts = {one.source.name: len(one.objects) for one in core.mirror.informers}
    if counts["pods"] < size.pods or counts["nodes"] < size.nodes or counts["configmaps-cim"] < size.nodes:
        raise RuntimeError(f"the fleet is smaller than asked for: {counts}")
