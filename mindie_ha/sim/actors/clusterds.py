"""ClusterD as far as the scheduler reads it.

Fuses the per-node ConfigMaps into `mindx-dl/cluster-info-device-<i>`, `cluster-info-switch-0` and
`cluster-info-node-cm`. A change becomes visible 0-5 s late (seeded): that lag is the race every recovery has
to survive, because the scheduler trusts these lists and nothing else. A node's body with a wrong CheckCode
is dropped and the last good one kept. The number of shards never shrinks; unused ones become "".
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.deviceinfos import PREFIX, read_device_info, shards
from mindie_ha.sim.actors.documents import labels_of, load_json, mapping, name_of, namespace_of, texts
from mindie_ha.sim.actors.nodeds import PREFIX as NODED_PREFIX
from mindie_ha.sim.client import ApiClient, Object

NAMESPACE = "mindx-dl"
NODE_PREFIX = NODED_PREFIX
SWITCH_PREFIX = "mindx-dl-switchinfo-"
DEVICES = "cluster-info-device-"
SWITCHES = "cluster-info-switch-"
NODES = "cluster-info-node-cm"


@dataclass(frozen=True, slots=True)
class ClusterdSettings:
    """Timing of the fused lists."""

    lag_s: tuple[float, float] = (0.0, 5.0)
    """Between a change of a node's ConfigMap and its visibility; drawn anew for each change."""


class Clusterd(Actor):
    """Writes what Volcano reads."""

    name = "clusterd"
    kinds = ("ConfigMap",)

    def __init__(
        self,
        *,
        api: ApiClient,
        cache: Cache,
        clock: Clock,
        entropy: Entropy,
        settings: ClusterdSettings | None = None,
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._settings = settings or ClusterdSettings()
        self._good: dict[str, Object] = {}
        self._published: dict[str, str] | None = None
        self._due_s: float | None = None

    async def reconcile(self) -> float:
        """Publish when a change has waited for its lag."""
        wanted = self._wanted()
        now = self.clock.monotonic()
        if wanted == self._published:
            self._due_s = None
            return self.period_s
        if self._due_s is None:
            lag_s = 0.0 if self._published is None else self.entropy.uniform(*self._settings.lag_s)
            self._due_s = now + lag_s
        if self._due_s > now:
            return self._due_s - now
        if await self.attempt(self._publish(wanted), what="publish"):
            self._published, self._due_s = wanted, None
        return self.period_s

    def _wanted(self) -> dict[str, str]:
        sources = [cm for cm in self.cache.all("ConfigMap") if labels_of(cm).get("mx-consumer-cim") == "true"]
        devices = [cm for cm in sources if name_of(cm).startswith(PREFIX)]
        self._good = {name_of(cm): self._device_entry(cm) for cm in devices}
        switches: dict[str, Object] = {}
        for cm in devices:
            switch = mapping(load_json(texts(cm, "data").get("SwitchInfoCfg", "")))
            if switch:
                name = SWITCH_PREFIX + name_of(cm).removeprefix(PREFIX)
                switches[name] = {**switch, "CmName": name}
        nodes: dict[str, Object] = {}
        for cm in sources:
            info = mapping(load_json(texts(cm, "data").get("NodeInfo", "")), "NodeInfo")
            if name_of(cm).startswith(NODE_PREFIX) and namespace_of(cm) == NAMESPACE and info:
                nodes[name_of(cm)] = {**info, "CmName": name_of(cm)}
        good = {name: entry for name, entry in self._good.items() if entry}
        wanted = dict(zip(_shard_names(DEVICES, good), shards(good) or [""], strict=False))
        wanted[f"{SWITCHES}0"] = next(iter(shards(switches)), "")
        wanted[NODES] = next(iter(shards(nodes, limit=2**31)), "")
        for name in self._published or {}:
            wanted.setdefault(name, "")
        return wanted

    def _device_entry(self, cm: Object) -> Object:
        info = read_device_info(texts(cm, "data"))
        if info is None:
            return self._good.get(name_of(cm), {})
        return {**info, "CmName": name_of(cm)}

    async def _publish(self, wanted: dict[str, str]) -> None:
        order = sorted(wanted, key=lambda name: (name.startswith(DEVICES), name == NODES, name))
        for name in order:
            known = self.cache.get("ConfigMap", name, NAMESPACE)
            data = {name: wanted[name]}
            if known is None:
                meta = {"name": name, "namespace": NAMESPACE, "labels": {"mx-consumer-volcano": "true"}}
                await self.create("ConfigMap", {"metadata": meta, "data": data})
            elif texts(known, "data") != data:
                await self.patch("ConfigMap", known, {"data": data})


def _shard_names(prefix: str, entries: dict[str, Object]) -> list[str]:
    return [f"{prefix}{index}" for index in range(max(1, len(shards(entries))))]


__all__ = [
    "DEVICES",
    "NAMESPACE",
    "NODES",
    "NODE_PREFIX",
    "SWITCHES",
    "SWITCH_PREFIX",
    "Clusterd",
    "ClusterdSettings",
]
