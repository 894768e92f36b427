"""What the device reports of a very large cluster cost: all of them at start, and one that changed.

The reports (8 and 16 cards in turn, some with a fault) come page by page from memory to the own informer
and store of the controller, so decoding, checking the CheckCode and judging count, and no network does. A
ticker on the same loop shows how long anything else would have had to wait. The change is a watch line with
a new fault; `touched` counts the nodes that have to be looked at again, which must be its own alone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.informers import Informer
from mindie_ha.cluster.sources import REPORTS
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.transports import Gate, Reply
from mindie_ha.cluster.watches import Changed, event_of
from mindie_ha.kit import heaps
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.ids import ScopeKey, ScopeKind
from mindie_ha.model.settings import Settings
from mindie_ha.sim.actors.deviceinfos import PREFIX, check_code, go_json
from tools.bench.startups import TICK_S, tick

FAULTY_EVERY = 20
CHANGES = 500


@dataclass(slots=True)
class Reports:
    """Seconds; one entry a run, of `change` one entry a changed report."""

    count: int
    parsing: list[float] = field(default_factory=list)
    longest_gap: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=list)
    touched: int = 0  # nodes that one change touches


class Pages:
    """A transport that lists the same objects to everybody, and watches of which nothing comes."""

    def __init__(self, objects: list[str], *, page_size: int) -> None:
        self._pages = []
        for first in range(0, len(objects), page_size):
            more = str(first + page_size) if first + page_size < len(objects) else ""
            meta = json.dumps({"resourceVersion": "1", "continue": more})
            items = ",".join(objects[first : first + page_size])
            self._pages.append(f'{{"kind":"ConfigMapList","metadata":{meta},"items":[{items}]}}'.encode())
        self._page_size = page_size

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
        gate: Gate | None = None,
    ) -> Reply:
        """One page."""
        del method, path, body, headers, timeout_s, gate  # all lists are the same here
        await asyncio.sleep(0)
        return Reply(200, self._pages[int((query or {}).get("continue", "0")) // self._page_size])

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Nothing comes."""
        del method, path, query
        yield _nothing()


async def measure(*, count: int, runs: int, progress: Callable[[str], None]) -> Reports:
    """Fill a store with `count` reports `runs` times, then change some."""
    found = Reports(count)
    pages = Pages([report(n) for n in range(count)], page_size=Settings().cluster.page_size)
    for run in range(runs):
        progress(f"reports {run + 1} of {runs}")
        touched: set[ScopeKey] = set()
        store = await _fill(pages, found, touched)
        _change(store, found, touched)
    return found


async def _fill(pages: Pages, found: Reports, touched: set[ScopeKey]) -> Store:
    heaps.relax()  # as `serve` does
    clock, settings, metrics = LoopClock(), Settings(), Metrics()
    store = Store(clock=clock, settings=settings, listener=lambda scopes, _: touched.update(scopes))
    informer = Informer(
        REPORTS,
        client=Client(pages),
        clock=clock,
        entropy=Entropy(1),
        settings=settings.cluster,
        log=silent_log(),
        metrics=metrics,
        on_change=store.on_change,
        on_refused=store.on_refused,
    )
    gaps: list[float] = []
    tasks = [asyncio.create_task(tick(gaps))]
    try:
        await asyncio.sleep(10 * TICK_S)
        gaps.clear()
        began_s = time.perf_counter()
        tasks.append(asyncio.create_task(informer.run()))
        await informer.synced.wait()
        found.parsing.append(time.perf_counter() - began_s)
        await asyncio.sleep(2 * TICK_S)
        found.longest_gap.append(max(gaps))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if len(store.reported_nodes()) < found.count or store.problems():
        raise RuntimeError(f"{len(store.reported_nodes())} of {found.count} reports were understood")
    heaps.freeze()
    return store


def _change(store: Store, found: Reports, touched: set[ScopeKey]) -> None:
    for number in range(min(CHANGES, found.count)):
        line = f'{{"type":"MODIFIED","object":{report(number, version=2, flip=True)}}}'.encode()
        touched.clear()
        began_s = time.thread_time()
        event = event_of(line, REPORTS)
        assert isinstance(event, Changed)  # noqa: S101 - we made the line
        store.on_change(REPORTS, event.key, None, event.new)
        found.change.append(time.thread_time() - began_s)
        found.touched = max(found.touched, sum(scope.kind is ScopeKind.NODE for scope in touched))


def report(number: int, *, version: int = 1, flip: bool = False) -> str:
    """A device report as the plugin writes it."""
    cards = [f"Ascend910-{card}" for card in range(16 if number % 2 else 8)]
    bad = cards[3] if (number % FAULTY_EVERY == 0) is not flip else ""
    told = {
        "fault_type": "CardUnhealthy",
        "npu_name": bad,
        "large_model_fault_level": "SeparateNPU",
        "fault_level": "SeparateNPU",
        "fault_handling": "SeparateNPU",
        "fault_code": "80E18005",
        "fault_time_and_level_map": {
            "80E18005": {"fault_time": 1_700_000_000_000, "fault_level": "SeparateNPU"}
        },
    }
    devices = {
        "huawei.com/Ascend910": ",".join(card for card in cards if card != bad),
        "huawei.com/Ascend910-Fault": json.dumps([told] if bad else []),
        "huawei.com/Ascend910-NetworkUnhealthy": "",
        "huawei.com/Ascend910-Recovering": "",
        "huawei.com/Ascend910-Unhealthy": bad,
    }
    now_s = int(time.time()) + version
    body = {
        "DeviceInfo": {"DeviceList": devices, "UpdateTime": now_s},
        "SuperPodID": -1,
        "ServerIndex": -1,
        "CheckCode": check_code(devices, now_s),
    }
    switch = {"FaultCode": [], "FaultLevel": "", "UpdateTime": now_s, "NodeStatus": "Healthy"}
    meta = {
        "name": f"{PREFIX}node-{number:05d}",
        "namespace": "kube-system",
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        "resourceVersion": str(version),
        "labels": {"mx-consumer-cim": "true"},
    }
    data = {
        "DeviceInfoCfg": go_json(body),
        "SwitchInfoCfg": go_json({**switch, "FaultTimeAndLevelMap": {}}),
        "ManuallySeparateNPU": "",
        "UpgradeFaultReason": "{}",
    }
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


async def _nothing() -> AsyncIterator[bytes]:
    await asyncio.get_running_loop().create_future()
    yield b""
