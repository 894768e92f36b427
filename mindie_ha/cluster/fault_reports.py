"""What the fault sources say about each node now: cards, switch, board, and the level tables in force.

Every report is parsed once per change and replaces what its source said before. One that is refused leaves
the last good state with the reason beside it. A report that only got newer is no news: only what somebody
could act on, or would be shown, touches anybody. Where the feed is ClusterD, its fused lists stand for the
reports of device plugin and NodeD; of a node in two shards the newer entry counts, and one that no shard
shows any more keeps its last state.

Source: fault input contract §1.1, §1.8, §8.1; cases 029, 031, 043, 123.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from mindie_ha.cluster.slim import SlimConfigMap
from mindie_ha.cluster.sources import DEVICE_INFO_PREFIX, NODE_INFO_PREFIX, Family
from mindie_ha.intake import (
    cluster_infos,
    device_info,
    fault_configs,
    manual_separations,
    node_info,
    node_troubles,
    switch_info,
)
from mindie_ha.intake.cluster_infos import Entries
from mindie_ha.intake.device_info import DeviceInfo
from mindie_ha.intake.fault_configs import Customization
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Fault
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.nodes import DeviceReport, NodeTrouble
from mindie_ha.model.settings import FaultFeed

FRESH_S = 300.0  # a report that only got newer wakes nobody, unless the last one was this old
NO_LIST = "no cluster-info-device ConfigMap shows the node"


@dataclass(frozen=True, slots=True)
class News:
    """The nodes about which something changed. `urgent`: something got worse."""

    nodes: frozenset[str] = frozenset()
    urgent: bool = False


NOTHING = News()
EntryT = TypeVar("EntryT")
_CONFIGS = (Family.CHIP_CONFIG, Family.NODE_CONFIG)
_SHARDS = (Family.CLUSTER_INFO, Family.CLUSTER_TROUBLES)


class FaultReports:
    """See the module. `problem` is told what was refused, for people; `refused` counts it."""

    def __init__(
        self, *, feed: FaultFeed, problem: Callable[[ObjectKey, str], None], refused: Callable[[str], None]
    ) -> None:
        self._fused = feed is FaultFeed.CLUSTERD
        self._problem = problem
        self._refused = refused
        self._custom = fault_configs.shipped()
        self._devices: dict[str, DeviceInfo] = {}
        self._separations: dict[str, tuple[Fault, ...]] = {}
        self._switches: dict[str, NodeTrouble] = {}
        self._boards: dict[str, NodeTrouble] = {}
        self._device_shards: dict[ObjectKey, Mapping[str, DeviceInfo]] = {}
        self._switch_shards: dict[ObjectKey, Mapping[str, NodeTrouble | None]] = {}
        self._kept: dict[ObjectKey, tuple[SlimConfigMap, Family]] = {}  # readable reports that tell of faults
        self._refusals = 0

    def put(self, item: SlimConfigMap, family: Family, *, now_s: float) -> News:
        """A ConfigMap of one of the fault families as it is now."""
        if family in _CONFIGS:
            return self._put_config(item, item.data, now_s)
        refusals = self._refusals
        news = self._judge(item, family, now_s)
        if self._refusals == refusals:
            self._keep(item, family)
        return news

    def _judge(self, item: SlimConfigMap, family: Family, now_s: float) -> News:
        name = item.key.name
        match family:
            case Family.DEVICE_INFO:
                return self._put_device_info(name.removeprefix(DEVICE_INFO_PREFIX), item, now_s)
            case Family.NODE_INFO:
                return self._put_node_info(name.removeprefix(NODE_INFO_PREFIX), item, now_s)
            case Family.CLUSTER_INFO | Family.CLUSTER_TROUBLES:
                return self._put_fused(item, item.data.get(name, ""), now_s)
            case _:
                return NOTHING

    def drop(self, item: SlimConfigMap, family: Family, *, now_s: float) -> News:
        """A ConfigMap of one of the fault families was deleted."""
        name = item.key.name
        self._kept.pop(item.key, None)
        match family:
            case Family.DEVICE_INFO:
                return self._drop_device_info(name.removeprefix(DEVICE_INFO_PREFIX))
            case Family.NODE_INFO:
                return self._drop_node_info(name.removeprefix(NODE_INFO_PREFIX))
            case Family.CHIP_CONFIG | Family.NODE_CONFIG:
                return self._put_config(item, {}, now_s)
            case Family.CLUSTER_INFO | Family.CLUSTER_TROUBLES:
                return self._put_fused(item, "", now_s)
            case _:
                return NOTHING

    # -- what is known -------------------------------------------------------------------------------

    @property
    def customization(self) -> Customization:
        """Level tables and rules in force."""
        return self._custom

    def report(self, node: str) -> DeviceReport | None:
        """The report to believe; None: the node has no device plugin."""
        info = self._devices.get(node)
        return info.report if info is not None else None

    def nodes(self) -> frozenset[str]:
        """The nodes of which anything is known."""
        return frozenset().union(self._devices, self._separations, self._switches, self._boards)

    def card_faults(self, node: str) -> tuple[Fault, ...]:
        """Faults of single cards."""
        info = self._devices.get(node)
        return (*(info.faults if info is not None else ()), *self._separations.get(node, ()))

    def troubles(self, node: str) -> tuple[Fault, ...]:
        """Faults of the whole node: board and switch."""
        told = (self._boards.get(node), self._switches.get(node))
        return tuple(fault for one in told if one is not None for fault in one.faults)

    # -- device plugin -------------------------------------------------------------------------------

    def _put_device_info(self, node: str, item: SlimConfigMap, now_s: float) -> News:
        """`mindx-dl-deviceinfo-<node>`: cards, separations and switch, each by itself."""
        before = self._state(node)
        self._put_separations(node, item, now_s)
        if not self._fused:
            self._put_cards(node, item, now_s)
            self._put_switch(node, item, now_s)
        return self._news({node: before})

    def _drop_device_info(self, node: str) -> News:
        """The ConfigMap is gone: nobody reports any more."""
        before = self._state(node)
        self._separations.pop(node, None)
        if not self._fused:
            self._devices.pop(node, None)
            self._switches.pop(node, None)
        return self._news({node: before})

    def _put_cards(self, node: str, item: SlimConfigMap, now_s: float) -> None:
        try:
            new = device_info.parse(node, item.data, now_s=now_s, tables=self._custom.tables.chip)
        except InputError as error:
            self._complain("device-info", item.key, error)
            self._keep_stale(node, str(error))
        else:
            self._take(node, new, now_s=now_s)

    def _put_separations(self, node: str, item: SlimConfigMap, now_s: float) -> None:
        try:
            found = manual_separations.parse(node, item.data, now_s=now_s)
        except InputError as error:
            self._complain("device-info", item.key, error)
            return
        found = device_info.continued(found, previous=self._separations.pop(node, ()))
        if found:
            self._separations[node] = found

    def _put_switch(self, node: str, item: SlimConfigMap, now_s: float) -> None:
        where = f"ConfigMap {item.key}[{switch_info.KEY}]"
        tables = self._custom.tables.switch
        new = None
        try:
            if switch_info.KEY in item.data:
                new = switch_info.parse(
                    node, item.data[switch_info.KEY], where=where, now_s=now_s, tables=tables
                )
        except InputError as error:
            self._complain("switch-info", item.key, error)
            return
        self._note(self._switches, node, new)

    # -- NodeD ---------------------------------------------------------------------------------------

    def _put_node_info(self, node: str, item: SlimConfigMap, now_s: float) -> News:
        """`mindx-dl-nodeinfo-<node>`."""
        if self._fused:
            return NOTHING
        before = self._state(node)
        try:
            new = node_info.parse(node, item.data, now_s=now_s, tables=self._custom.tables.node)
        except InputError as error:
            self._complain("node-info", item.key, error)
            return NOTHING
        self._note(self._boards, node, new)
        return self._news({node: before})

    def _drop_node_info(self, node: str) -> News:
        """NodeD deletes its ConfigMap when the board is well."""
        if self._fused:
            return NOTHING
        before = self._state(node)
        self._boards.pop(node, None)
        return self._news({node: before})

    # -- level tables --------------------------------------------------------------------------------

    def _put_config(self, item: SlimConfigMap, data: Mapping[str, str], now_s: float) -> News:
        """A cluster's own tables; the reports that told of faults are judged anew by them."""
        before = self._custom
        chip = item.key.name == fault_configs.CHIP_CONFIG
        read = fault_configs.chip_config if chip else fault_configs.node_config
        self._custom = read(data, last=self._custom)
        for error in self._custom.refused:
            self._complain("fault-config", item.key, error)
        if self._custom.findings and not self._custom.refused:
            self._problem(item.key, "; ".join(self._custom.findings[:3]))
        if replace(before, refused=(), findings=()) == replace(self._custom, refused=(), findings=()):
            return NOTHING
        return self._judge_again(now_s)

    def _judge_again(self, now_s: float) -> News:
        """Where nobody reported a fault no table matters. A change of relation rules concerns all faults."""
        found = [self._judge(item, family, now_s) for item, family in tuple(self._kept.values())]
        nodes = frozenset().union(*(news.nodes for news in found))
        return News(nodes | self.nodes_with_faults(), any(news.urgent for news in found))

    def nodes_with_faults(self) -> frozenset[str]:
        """The nodes on which a card, a switch or a board is said to be bad."""
        cards = (node for node, info in self._devices.items() if info.faults)
        return frozenset(cards).union(self._separations, self._switches, self._boards)

    def _keep(self, item: SlimConfigMap, family: Family) -> None:
        node = item.key.name.removeprefix(DEVICE_INFO_PREFIX).removeprefix(NODE_INFO_PREFIX)
        if family in _SHARDS or self.card_faults(node) or self.troubles(node):
            self._kept[item.key] = (item, family)
        else:
            self._kept.pop(item.key, None)

    # -- ClusterD ------------------------------------------------------------------------------------

    def _put_fused(self, item: SlimConfigMap, text: str, now_s: float) -> News:
        """One `cluster-info-*` ConfigMap; a deleted one is as good as an empty one."""
        if not self._fused:
            return NOTHING
        where, tables = f"ConfigMap {item.key}", self._custom.tables
        try:
            if item.key.name == cluster_infos.NODE_MAP:
                boards = cluster_infos.boards(text, where=where, now_s=now_s, tables=tables)
                self._blame(item.key, boards)
                return self._put_boards(boards.nodes)
            if item.key.name.startswith(cluster_infos.SWITCH_MAPS):
                switches = cluster_infos.switches(text, where=where, now_s=now_s, tables=tables)
                self._blame(item.key, switches)
                return self._put_switch_shard(item.key, switches.nodes)
            devices = cluster_infos.devices(text, where=where, now_s=now_s, tables=tables)
            self._blame(item.key, devices)
            return self._put_device_shard(item.key, devices.nodes, now_s)
        except InputError as error:
            self._complain("cluster-info", item.key, error)
            return NOTHING

    def _put_boards(self, nodes: Mapping[str, NodeTrouble]) -> News:
        concerned = self._boards.keys() | nodes.keys()
        before = {node: self._state(node) for node in concerned}
        for node in concerned:
            self._note(self._boards, node, nodes.get(node))
        return self._news(before)

    def _put_switch_shard(self, shard: ObjectKey, nodes: Mapping[str, NodeTrouble | None]) -> News:
        concerned = self._switch_shards.get(shard, {}).keys() | nodes.keys()
        before = {node: self._state(node) for node in concerned}
        self._switch_shards[shard] = nodes
        for node in concerned:
            found = [shown[node] for shown in self._switch_shards.values() if node in shown]
            known = [one for one in found if one is not None]
            if found:
                newest = max(known, key=lambda one: one.updated_at_s, default=None)
                self._note(self._switches, node, newest)
        return self._news(before)

    def _put_device_shard(self, shard: ObjectKey, nodes: Mapping[str, DeviceInfo], now_s: float) -> News:
        concerned = self._device_shards.get(shard, {}).keys() | nodes.keys()
        before = {node: self._state(node) for node in concerned}
        self._device_shards[shard] = nodes
        for node in concerned:
            found = [shown[node] for shown in self._device_shards.values() if node in shown]
            if found:
                self._take(node, max(found, key=lambda info: info.report.updated_at_s), now_s=now_s)
            else:
                self._keep_stale(node, NO_LIST)
        return self._news(before)

    # -- one node ------------------------------------------------------------------------------------

    def _take(self, node: str, new: DeviceInfo, *, now_s: float) -> None:
        old = self._devices.get(node)
        advanced_at_s = 0.0
        if old is not None:
            moved = new.report.updated_at_s > old.report.updated_at_s
            advanced_at_s = now_s if moved else old.report.advanced_at_s
        self._devices[node] = DeviceInfo(
            report=replace(new.report, advanced_at_s=advanced_at_s),
            faults=device_info.continued(new.faults, previous=old.faults if old is not None else ()),
        )

    def _keep_stale(self, node: str, reason: str) -> None:
        last = self._devices.get(node) or DeviceInfo(DeviceReport(node), ())
        self._devices[node] = replace(last, report=replace(last.report, stale_reason=reason))

    def _note(self, kept: dict[str, NodeTrouble], node: str, new: NodeTrouble | None) -> None:
        old = kept.pop(node, None)
        if new is not None and new.faults:
            kept[node] = node_troubles.continued(new, previous=old)

    def _state(self, node: str) -> tuple[DeviceReport | None, tuple[Fault, ...]]:
        return self.report(node), (*self.card_faults(node), *self.troubles(node))

    def _news(self, before: Mapping[str, tuple[DeviceReport | None, tuple[Fault, ...]]]) -> News:
        changed: set[str] = set()
        urgent = False
        for node, (old_report, old_faults) in before.items():
            report, faults = self._state(node)
            if _same_report(old_report, report) and _shapes(old_faults) == _shapes(faults):
                continue
            changed.add(node)
            urgent = urgent or bool(_acting(faults) - _acting(old_faults))
        return News(frozenset(changed), urgent)

    def _blame(self, key: ObjectKey, entries: Entries[EntryT]) -> None:
        for error in entries.refused:
            self._complain("cluster-info", key, error)
        if entries.findings and not entries.refused:
            self._problem(key, "; ".join(entries.findings[:3]))

    def _complain(self, source: str, key: ObjectKey, error: InputError) -> None:
        self._refusals += 1
        self._refused(source)
        self._problem(key, str(error))


def _same_report(old: DeviceReport | None, new: DeviceReport | None) -> bool:
    """Whether a report says nothing new; one that only got newer wakes nobody, unless the last was old."""
    if old is None or new is None:
        return old is new
    fresh = new.updated_at_s - old.updated_at_s < FRESH_S
    return fresh and replace(new, updated_at_s=old.updated_at_s) == old


def _shapes(faults: Iterable[Fault]) -> set[tuple[object, ...]]:
    """What of the faults somebody could act on or would be shown: not their times."""
    return {
        (
            fault.identity,
            fault.acts,
            fault.codes,
            tuple((*fact.identity, fact.level, fact.listed) for fact in fault.details),
        )
        for fault in faults
    }


def _acting(faults: Iterable[Fault]) -> set[tuple[str, str, str, str]]:
    return {fault.identity for fault in faults if fault.acts}
