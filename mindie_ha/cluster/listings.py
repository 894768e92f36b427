"""What the scheduler has been told: the union of the shards `cluster-info-device-<i>`.

A shard may be an empty string (ClusterD never deletes one), and a node may move between shards at any
rewrite: seen twice, the newer report counts; seen nowhere for a moment, the last one counts for `GAP_S`
more, so that nothing is "lost" between two writes. A malformed shard keeps its last good content.

Source: fault input contract §1.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.nodes import ListedDevices

GAP_S = 10.0
MAX_SHARD_BYTES = 4 << 20
_NODE_PREFIX = "mindx-dl-deviceinfo-"


@dataclass(frozen=True, slots=True)
class Entry:
    """One node in one shard."""

    devices: ListedDevices
    updated_at_s: float


def parse_shard(text: str, *, where: str) -> dict[str, Entry]:
    """Node name -> entry. Empty text is an empty shard; a malformed entry costs its node only."""
    if not text.strip():
        return {}
    if len(text) > MAX_SHARD_BYTES:
        raise InputError(f"is larger than {MAX_SHARD_BYTES} bytes", where=where)
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error}", where=where) from error
    if not isinstance(content, dict):
        raise InputError("is no JSON object", where=where)
    found = {}
    for name, body in content.items():
        node = name.removeprefix(_NODE_PREFIX)
        devices = body.get("DeviceList") if isinstance(body, dict) else None
        if node and isinstance(devices, dict):
            updated = body.get("UpdateTime")
            is_time = isinstance(updated, (int, float)) and not isinstance(updated, bool)
            found[node] = Entry(ListedDevices(node, _unhealthy(devices)), float(updated) if is_time else 0.0)
    return found


def _unhealthy(devices: dict[str, Any]) -> frozenset[str]:
    names: set[str] = set()
    for key, value in devices.items():
        if key.endswith("-Unhealthy") and isinstance(value, str):
            names.update(part.strip() for part in value.split(",") if part.strip())
    return frozenset(names)


class Listings:
    """The merged list over all shards."""

    def __init__(self) -> None:
        self._shards: dict[ObjectKey, dict[str, Entry]] = {}
        self._where: dict[str, set[ObjectKey]] = {}
        self._left: dict[str, tuple[Entry, float]] = {}  # in no shard now: last entry, since (wall)

    def put(self, shard: ObjectKey, entries: dict[str, Entry], *, now_s: float) -> set[str]:
        """Replace one shard; the nodes whose listed devices changed."""
        old = self._shards.get(shard, {})
        concerned = old.keys() | entries.keys()
        before = {node: self.of(node, now_s=now_s) for node in concerned}
        for node in old.keys() - entries.keys():
            self._leave(node, shard, old[node], now_s)
        for node in entries:
            self._where.setdefault(node, set()).add(shard)
            self._left.pop(node, None)
        self._shards[shard] = entries
        return {node for node in concerned if self.of(node, now_s=now_s) != before[node]}

    def remove(self, shard: ObjectKey, *, now_s: float) -> set[str]:
        """A shard was deleted."""
        changed = self.put(shard, {}, now_s=now_s)
        self._shards.pop(shard, None)
        return changed

    def of(self, node: str, *, now_s: float) -> ListedDevices | None:
        """What the scheduler believes of a node; None where it does not show the node."""
        entries = [self._shards[shard][node] for shard in self._where.get(node, ())]
        if entries:
            return max(entries, key=lambda entry: entry.updated_at_s).devices
        left = self._left.get(node)
        return left[0].devices if left is not None and now_s - left[1] < GAP_S else None

    def _leave(self, node: str, shard: ObjectKey, entry: Entry, now_s: float) -> None:
        shards = self._where[node]
        shards.discard(shard)
        if not shards:
            del self._where[node]
            self._left[node] = (entry, now_s)
            for gone in [name for name, (_, since_s) in self._left.items() if now_s - since_s >= GAP_S]:
                del self._left[gone]


__all__ = ["GAP_S", "Entry", "Listings", "parse_shard"]
