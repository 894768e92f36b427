"""`cluster-info-device-<i>` -> what the scheduler believes about the cards of each node.

ClusterD splits the map over ConfigMaps by size and moves nodes between them at will; a shard it no longer
needs becomes the empty string, which is no JSON and no error. One malformed node hurts only itself.

Source: fault input contract §1.8, §8.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mindie_ha.intake import bodies, device_lists
from mindie_ha.intake.device_info import CONFIG_MAP_PREFIX
from mindie_ha.model.errors import InputError
from mindie_ha.model.nodes import ListedDevices


@dataclass(frozen=True, slots=True)
class Shard:
    """One ConfigMap's nodes, and the entries that could not be read."""

    nodes: Mapping[str, ListedDevices]
    refused: tuple[InputError, ...] = ()


def parse(text: str, *, where: str) -> Shard:
    """Read one value. Raises InputError if it is no object at all."""
    if not text.strip():
        return Shard({})
    nodes: dict[str, ListedDevices] = {}
    refused: list[InputError] = []
    for key, entry in bodies.parse_object(text, where=where).items():
        if not key.startswith(CONFIG_MAP_PREFIX):
            refused.append(InputError(f"unknown entry {key[:80]!r}", where=where))
            continue
        node = key.removeprefix(CONFIG_MAP_PREFIX)
        try:
            nodes[node] = _listed(node, entry, where=f"{where}.{key}")
        except InputError as error:
            refused.append(error)
    return Shard(nodes, tuple(refused))


def merge(shards: Iterable[Shard]) -> dict[str, ListedDevices]:
    """All nodes, each once, by `newest`."""
    merged: dict[str, ListedDevices] = {}
    for shard in shards:
        for node, listed in shard.nodes.items():
            merged[node] = newest(merged.get(node, listed), listed)
    return merged


def newest(one: ListedDevices, other: ListedDevices) -> ListedDevices:
    """Of a node that stands in two shards while it moves: the newer; of equal age, bad if either says so."""
    if one.updated_at_s != other.updated_at_s:
        return max(one, other, key=lambda entry: entry.updated_at_s)
    return replace(one, unhealthy=one.unhealthy | other.unhealthy)


def _listed(node: str, entry: object, *, where: str) -> ListedDevices:
    body = bodies.as_object(entry, where=where)
    devices = device_lists.device_list(body.get("DeviceList"), where=f"{where}.DeviceList") or {}
    unhealthy = device_lists.names(devices, device_lists.UNHEALTHY, where=where)
    updated = body.get("UpdateTime")
    number = updated if isinstance(updated, int) and abs(updated) < 1 << 53 else 0
    return ListedDevices(node=node, unhealthy=unhealthy, updated_at_s=float(number))
