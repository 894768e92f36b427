"""What one event costs the controller until its decision stands, as the cluster grows. CPU time, no sockets.

One watch line (a device report with a faulty card, or without) is decoded and stored, then the service on the
node is viewed and planned. The services around it are there, and must not be paid for.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from mindie_ha.cluster.slim import MODELS, slim
from mindie_ha.cluster.sources import REPORTS
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.watches import Changed, event_of
from mindie_ha.kit.clock import LoopClock
from mindie_ha.model.ids import ScopeKey, service_key
from mindie_ha.model.settings import Settings
from mindie_ha.policy.planner import plan
from mindie_ha.sim.actors.deviceinfos import PREFIX, check_code, go_json
from tools.bench.fleets import FLEET_KINDS, Object, clone, living_service
from tools.bench.recoveries import UNHEALTHY

CARD = "Ascend910-2"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one event by step, one entry a run."""

    services: int
    take_in: list[float]  # decode the line, store it
    view: list[float]
    plan: list[float]

    @property
    def total(self) -> list[float]:
        """All steps together."""
        return [sum(steps) for steps in zip(self.take_in, self.view, self.plan, strict=True)]


async def measure(*, sizes: tuple[int, ...], runs: int, progress: Callable[[str], None]) -> list[Cost]:
    """The cost at each number of services."""
    service = await living_service()
    clock, settings = LoopClock(), Settings()
    touched: set[ScopeKey] = set()
    store = Store(
        clock=clock,
        settings=settings,
        listener=lambda scopes, _: touched.update(scopes),
    )
    costs: list[Cost] = []
    standing, report = 0, _report_on_first(service)
    for size in sizes:
        progress(f"decision among {size} services")
        for number in range(standing, size):
            objects = clone(service, number)
            for kind in FLEET_KINDS:
                for obj in objects[kind]:
                    store.apply(slim(obj, MODELS[kind], kind=kind))
            await asyncio.sleep(0)
        standing = size
        cost = Cost(size, [], [], [])
        for run in range(runs):
            _one(store, settings, _line(report, version=10**9 + size * runs + run, faulty=run % 2 == 0), cost)
        costs.append(cost)
    return costs


def _one(store: Store, settings: Settings, line: bytes, cost: Cost) -> None:
    began_s = time.thread_time()
    event = event_of(line, REPORTS)
    assert isinstance(event, Changed)  # noqa: S101 - we made the line
    store.on_change(REPORTS, event.key, None, event.new)
    stored_s = time.thread_time()
    view = store.view(service_key("fleet-0000", "ms-0000"), now_s=time.time(), subscribers=1)
    viewed_s = time.thread_time()
    assert view is not None  # noqa: S101 - it was just cloned
    plan(view, settings, time.time())
    planned_s = time.thread_time()
    cost.take_in.append(stored_s - began_s)
    cost.view.append(viewed_s - stored_s)
    cost.plan.append(planned_s - viewed_s)


def _report_on_first(service: object) -> Object:
    """The device report of the node under the first Prefill pod, in the first clone."""
    assert isinstance(service, dict)  # noqa: S101 - see living_service
    objects = clone(service, 0)
    pod = next(one for one in objects["Pod"] if one["metadata"]["name"].startswith("mindie-server-p0"))
    name = PREFIX + pod["spec"]["nodeName"]
    return next(one for one in objects["ConfigMap"] if one["metadata"]["name"] == name)


def _line(report: Object, *, version: int, faulty: bool) -> bytes:
    body = json.loads(report["data"]["DeviceInfoCfg"])
    devices = {**body["DeviceInfo"]["DeviceList"], UNHEALTHY: CARD if faulty else ""}
    update_time = int(time.time())
    body["DeviceInfo"] = {"DeviceList": dict(sorted(devices.items())), "UpdateTime": update_time}
    body["CheckCode"] = check_code(devices, update_time)
    meta = {**report["metadata"], "resourceVersion": str(version)}
    obj = {**report, "metadata": meta, "data": {**report["data"], "DeviceInfoCfg": go_json(body)}}
    return json.dumps({"type": "MODIFIED", "object": obj}).encode()
