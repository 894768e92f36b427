"""NodeD of every simulated node: what the BMC says about the board, in `mindx-dl/mindx-dl-nodeinfo-<node>`.

The ConfigMap is written a short, seeded while after an alarm, carries a CheckCode over the struct as Go
writes it, and is deleted when the last alarm is gone: its absence means healthy. A node that is NotReady
reports nothing; its last ConfigMap stays. Source: fault inputs contract §1.4, §1.7.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.deviceinfos import go_json
from mindie_ha.sim.actors.documents import annotations_of, text, texts
from mindie_ha.sim.actors.faults import BOARD_SEVERITY, FAULTS, BoardFault, parse_faults
from mindie_ha.sim.actors.machines import NodeModel
from mindie_ha.sim.client import ApiClient, Object

NAMESPACE = "mindx-dl"
PREFIX = "mindx-dl-nodeinfo-"
STATUS = {"NotHandleFault": "Healthy", "PreSeparateFault": "PreSeparate", "SeparateFault": "UnHealthy"}


@dataclass(frozen=True, slots=True)
class NodeDSettings:
    """Timing of the reports."""

    report_delay_s: tuple[float, float] = (0.2, 1.0)
    """Between an alarm (or its end) and the write; drawn anew for each."""
    refresh_s: float = 1800.0
    """Unchanged content is written again after this."""


class NodeDs(Actor):
    """All nodes' NodeD in one actor."""

    name = "noded"
    kinds = ("Node", "ConfigMap")

    def __init__(
        self,
        *,
        api: ApiClient,
        cache: Cache,
        clock: Clock,
        entropy: Entropy,
        models: tuple[NodeModel, ...],
        settings: NodeDSettings | None = None,
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._models = models
        self._settings = settings or NodeDSettings()
        self._due_s: dict[str, float] = {}
        self._written_s: dict[str, float] = {}

    async def reconcile(self) -> float:
        """Write, refresh or delete the report of every node that needs it."""
        now_s = self.clock.monotonic()
        waits = [self.period_s]
        work = []
        for model in self._models:
            node = self.cache.get("Node", model.name)
            faults = parse_faults(annotations_of(node or {}).get(FAULTS, ""))
            if node is None or faults.not_ready:
                continue
            report = self.cache.get("ConfigMap", PREFIX + model.name, NAMESPACE)
            wanted = node_info(faults.boards)
            if texts(report or {}, "data").get("NodeInfo", "") == wanted:
                self._due_s.pop(model.name, None)
                stale_s = self._written_s.setdefault(model.name, now_s) + self._settings.refresh_s - now_s
                if report is None or stale_s > 0:
                    continue
                self._due_s[model.name] = now_s
            if model.name not in self._due_s:
                self._due_s[model.name] = now_s + self.entropy.uniform(*self._settings.report_delay_s)
            if self._due_s[model.name] > now_s:
                waits.append(self._due_s[model.name] - now_s)
            else:
                work.append((model.name, self._write(model.name, report, wanted)))
        await self.attempt_all(work)
        return min(waits)

    async def _write(self, node: str, report: Object | None, wanted: str) -> None:
        name, data = PREFIX + node, {"NodeInfo": wanted, "updateTime": self.now()}
        if not wanted and report is not None:
            await self.api.delete("ConfigMap", name, NAMESPACE, uid=text(report, "metadata", "uid"))
        elif report is None:
            meta = {"name": name, "namespace": NAMESPACE, "labels": {"mx-consumer-cim": "true"}}
            await self.create("ConfigMap", {"metadata": meta, "data": data})
        else:
            await self.patch("ConfigMap", report, {"data": data})
        self._due_s.pop(node, None)
        self._written_s[node] = self.clock.monotonic()


def node_info(faults: Sequence[BoardFault]) -> str:
    """The text of the key `NodeInfo`; empty where there is nothing to report."""
    if not faults:
        return ""
    parts: dict[tuple[str, int], list[BoardFault]] = {}
    for fault in faults:
        parts.setdefault((fault.device, fault.id), []).append(fault)
    listed: list[Object] = [
        {
            "DeviceType": device,
            "DeviceId": number,
            "FaultCode": sorted({fault.code for fault in found}),
            "FaultLevel": _gravest(found),
        }
        for (device, number), found in sorted(parts.items())
    ]
    info: Object = {"FaultDevList": listed, "NodeStatus": STATUS[_gravest(faults)]}
    return go_json({"NodeInfo": info, "CheckCode": check_code(info)})


def check_code(info: Object) -> str:
    """The CheckCode of a NodeInfo whose keys are in the writer's order."""
    return hashlib.sha256(go_json(info).encode(errors="replace")).hexdigest()


def _gravest(faults: Sequence[BoardFault]) -> str:
    return max((fault.level for fault in faults), key=BOARD_SEVERITY.index)


__all__ = ["NAMESPACE", "PREFIX", "STATUS", "NodeDSettings", "NodeDs", "check_code", "node_info"]
