"""The Device Plugin of every simulated node.

Writes `kube-system/mindx-dl-deviceinfo-<node>` from the injected faults and the cards that pods hold, and
keeps the hardware annotations on the Node; on A3 servers it also says what their switches suffer. A change is
written after a short, seeded delay, at most once a second per node; unchanged content is written again every
five minutes. A node that is NotReady reports nothing: its last ConfigMap stays, as with the real one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.deviceinfos import PREFIX, device_info_data, device_list
from mindie_ha.sim.actors.documents import annotations_of, is_finished, text
from mindie_ha.sim.actors.faults import FAULTS, ChipFault, NodeFaults, SwitchFault, parse_faults
from mindie_ha.sim.actors.machines import RESOURCE, NodeModel, device_annotations
from mindie_ha.sim.actors.switchinfos import switch_info
from mindie_ha.sim.client import ApiClient, Object

NAMESPACE = "kube-system"
REAL = f"{RESOURCE.split('/')[0]}/AscendReal"


@dataclass(frozen=True, slots=True)
class DevicePluginSettings:
    """Timing of the reports."""

    report_delay_s: tuple[float, float] = (0.1, 1.0)
    """Between a change and its write; drawn anew for each."""
    min_gap_s: float = 1.0
    """Least time between two writes of one node."""
    refresh_s: float = 300.0
    """Unchanged content is written again after this."""


@dataclass(slots=True)
class _Report:
    """What one node's plugin remembers."""

    seen: dict[ChipFault, int] = field(default_factory=dict)
    seen_switches: dict[SwitchFault, int] = field(default_factory=dict)
    written: dict[str, str] | None = None
    written_switches: tuple[SwitchFault, ...] = ()
    written_at_s: float = 0.0
    due_s: float | None = None
    told: tuple[str, ...] = ()


class DevicePlugins(Actor):
    """All nodes' Device Plugins in one actor."""

    name = "ascend-device-plugin"
    kinds = ("Node", "Pod")

    def __init__(
        self,
        *,
        api: ApiClient,
        cache: Cache,
        clock: Clock,
        entropy: Entropy,
        models: tuple[NodeModel, ...],
        settings: DevicePluginSettings | None = None,
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._models = models
        self._settings = settings or DevicePluginSettings()
        self._reports = {model.name: _Report() for model in models}

    async def reconcile(self) -> float:
        """Report every node whose content changed or grew old."""
        used = cards_in_use(self.cache.all("Pod"))
        waits = [self.period_s]
        due = []
        for model in self._models:
            node = self.cache.get("Node", model.name)
            if node is None:
                continue
            faults = parse_faults(annotations_of(node).get(FAULTS, ""))
            await self._tell(model, node, faults)
            if faults.not_ready:
                continue
            devices = self._devices(model, faults, used.get(model.name, frozenset()))
            wait_s = self._wait(model, devices)
            waits.append(wait_s)
            if wait_s <= 0:
                due.append((model.name, self._write(model, node, devices)))
        await self.attempt_all(due)
        return min(wait for wait in waits if wait > 0)

    def _devices(self, model: NodeModel, faults: NodeFaults, used: frozenset[str]) -> dict[str, str]:
        report = self._reports[model.name]
        now_ms = int(self.clock.wall() * 1000)
        report.seen = {chip: report.seen.get(chip, now_ms) for chip in faults.chips}
        switches = faults.switches if model.is_super_pod else ()
        report.seen_switches = {fault: report.seen_switches.get(fault, now_ms) for fault in switches}
        return device_list(model.card_names, faults.chips, used=used, seen=report.seen)

    def _wait(self, model: NodeModel, devices: dict[str, str]) -> float:
        """Seconds until this node has to be written; 0 or less is now."""
        report = self._reports[model.name]
        now = self.clock.monotonic()
        if report.written is None:
            return 0.0
        if devices == report.written and tuple(report.seen_switches) == report.written_switches:
            report.due_s = None
            return report.written_at_s + self._settings.refresh_s - now
        if report.due_s is None:
            delay_s = self.entropy.uniform(*self._settings.report_delay_s)
            report.due_s = max(now + delay_s, report.written_at_s + self._settings.min_gap_s)
        return report.due_s - now

    async def _write(self, model: NodeModel, node: Object, devices: dict[str, str]) -> None:
        missing = {
            key: value
            for key, value in device_annotations(model).items()
            if annotations_of(node).get(key) != value
        }
        if missing:
            await self.patch("Node", node, {"metadata": {"annotations": missing}})
        report, now_s = self._reports[model.name], int(self.clock.wall())
        switches = tuple(report.seen_switches)
        switch = switch_info(switches, seen=report.seen_switches, update_time=now_s)
        data = device_info_data(
            model, devices, update_time=now_s, switch=switch if model.is_super_pod else ""
        )
        name = PREFIX + model.name
        known = self.cache.get("ConfigMap", name, NAMESPACE)
        if known is None:
            meta = {"name": name, "namespace": NAMESPACE, "labels": {"mx-consumer-cim": "true"}}
            await self.create("ConfigMap", {"metadata": meta, "data": data})
        else:
            fresh = {key: value for key, value in data.items() if key in {"DeviceInfoCfg", "SwitchInfoCfg"}}
            await self.patch("ConfigMap", known, {"data": fresh})
        report.written, report.written_switches = devices, switches
        report.written_at_s, report.due_s = self.clock.monotonic(), None

    async def _tell(self, model: NodeModel, node: Object, faults: NodeFaults) -> None:
        report = self._reports[model.name]
        unknown = [chip.device for chip in faults.chips if chip.device not in model.card_names]
        problems = (*faults.problems, *(f"{model.name} has no card {device}" for device in unknown))
        if faults.switches and not model.is_super_pod:
            problems = (*problems, f"{model.name} has no switch: it is no A3 server")
        if problems and problems != report.told:
            await self.event("Node", node, reason="InvalidFaultAnnotation", message="; ".join(problems))
        report.told = problems


def cards_in_use(pods: list[Object]) -> dict[str, frozenset[str]]:
    """Node name to the cards that its unfinished pods hold."""
    used: dict[str, frozenset[str]] = {}
    for pod in pods:
        node = text(pod, "spec", "nodeName")
        if node and not is_finished(pod):
            used[node] = used.get(node, frozenset()) | frozenset(cards_of(pod))
    return used


def cards_of(pod: Object) -> tuple[str, ...]:
    """The cards given to a pod, as its annotation says."""
    listed = annotations_of(pod).get(REAL, "")
    return tuple(card for card in listed.split(",") if card)


__all__ = ["NAMESPACE", "REAL", "DevicePluginSettings", "DevicePlugins", "cards_in_use", "cards_of"]
