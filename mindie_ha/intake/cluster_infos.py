"""`cluster-info-*` of a running ClusterD as input: devices, switches and boards of many nodes at once.

ClusterD has merged public faults in, and has taken out what it filtered; there is no checksum. A shard it no
longer needs becomes the empty string: no data, except for the one board list, where it means that every node
is well. The outer key says whose entry it is and must have the prefix of its kind; an inner `CmName` that
disagrees is named and changes nothing. One malformed node hurts only itself.

Source: fault input contract §1.8, §4.2, §8.1, §8.2 item 3; cases 039, 123.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from mindie_ha.intake import bodies, device_info, device_lists, node_info, switch_info
from mindie_ha.intake.code_tables import CodeTables
from mindie_ha.intake.device_info import DeviceInfo
from mindie_ha.intake.stamps import to_seconds
from mindie_ha.model.errors import InputError
from mindie_ha.model.nodes import NodeTrouble

DEVICE_PREFIX = device_info.CONFIG_MAP_PREFIX
SWITCH_PREFIX = "mindx-dl-switchinfo-"
NODE_PREFIX = node_info.CONFIG_MAP_PREFIX
NODE_MAP = "cluster-info-node-cm"
SWITCH_MAPS = "cluster-info-switch-"

EntryT = TypeVar("EntryT")


@dataclass(frozen=True, slots=True)
class Entries(Generic[EntryT]):
    """One ConfigMap's nodes, those that could not be read, and what looks odd."""

    nodes: Mapping[str, EntryT]
    refused: tuple[InputError, ...] = ()
    findings: tuple[str, ...] = ()


def devices(text: str, *, where: str, now_s: float, tables: CodeTables) -> Entries[DeviceInfo]:
    """`cluster-info-device-<i>`. Raises InputError if it is no object at all."""

    def read(node: str, body: Mapping[str, object], place: str) -> DeviceInfo:
        listed = device_lists.device_list(body.get("DeviceList"), where=f"{place}.DeviceList")
        if not listed:
            raise InputError("no device is listed", where=place)
        return device_info.from_list(
            node,
            listed,
            updated_at_s=to_seconds(body.get("UpdateTime")),
            now_s=now_s,
            tables=tables.chip,
            where=place,
            told_by=f"ConfigMap {where}, entry {DEVICE_PREFIX}{node}",
        )

    return _entries(text, DEVICE_PREFIX, read, where=where)


def switches(text: str, *, where: str, now_s: float, tables: CodeTables) -> Entries[NodeTrouble | None]:
    """`cluster-info-switch-<i>`; None: nothing is known of that switch."""

    def read(node: str, body: Mapping[str, object], place: str) -> NodeTrouble | None:
        return switch_info.read(node, body, where=place, now_s=now_s, tables=tables.switch)

    return _entries(text, SWITCH_PREFIX, read, where=where)


def boards(text: str, *, where: str, now_s: float, tables: CodeTables) -> Entries[NodeTrouble]:
    """`cluster-info-node-cm`: every node that it does not name is well."""

    def read(node: str, body: Mapping[str, object], place: str) -> NodeTrouble:
        updated_at_s = to_seconds(body.get("UpdateTime"))
        return node_info.read(
            node, body, where=place, updated_at_s=updated_at_s, now_s=now_s, tables=tables.node
        )

    return _entries(text, NODE_PREFIX, read, where=where)


def _entries(
    text: str, prefix: str, read: Callable[[str, Mapping[str, object], str], EntryT], *, where: str
) -> Entries[EntryT]:
    if not text.strip():
        return Entries({})
    nodes: dict[str, EntryT] = {}
    refused: list[InputError] = []
    findings: list[str] = []
    for key, entry in bodies.parse_object(text, where=where).items():
        place = f"{where}.{key[:300]}"
        node = key.removeprefix(prefix)
        if not key.startswith(prefix) or not node:
            refused.append(InputError(f"unknown entry, expected {prefix}<node>", where=place))
            continue
        try:
            body = bodies.as_object(entry, where=place)
            nodes[node] = read(node, body, place)
        except InputError as error:
            refused.append(error)
            continue
        inner = body.get("CmName")
        if isinstance(inner, str) and inner and inner != key:
            findings.append(f"{place}: CmName is {inner[:300]!r}; the outer key counts")
    return Entries(nodes, tuple(refused), tuple(findings))
