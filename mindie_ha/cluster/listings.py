"""What the scheduler has been told: the union of the shards `cluster-info-device-<i>`.

A node may move between shards at any rewrite: seen twice, the newer entry counts; seen nowhere for a moment,
the last one counts for `GAP_S` more, so that nothing is "lost" between two writes.

Source: fault input contract §1.8; case 123.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from mindie_ha.intake.listed_devices import newest
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.nodes import ListedDevices

GAP_S = 10.0


class Listings:
    """The merged list over all shards."""

    def __init__(self) -> None:
        self._shards: dict[ObjectKey, Mapping[str, ListedDevices]] = {}
        self._where: dict[str, set[ObjectKey]] = {}
        self._left: dict[str, tuple[ListedDevices, float]] = {}  # in no shard now: last entry, since (wall)

    def put(self, shard: ObjectKey, entries: Mapping[str, ListedDevices], *, now_s: float) -> set[str]:
        """Replace one shard; the nodes whose listed devices changed."""
        old = self._shards.get(shard, {})
        concerned = old.keys() | entries.keys()
        before = {node: self.of(node, now_s=now_s) for node in concerned}
        self._shards[shard] = entries
        for node in entries:
            self._where.setdefault(node, set()).add(shard)
            self._left.pop(node, None)
        for node in old.keys() - entries.keys():
            self._leave(node, shard, old[node], now_s)
        return {node for node in concerned if self.of(node, now_s=now_s) != before[node]}

    def remove(self, shard: ObjectKey, *, now_s: float) -> set[str]:
        """A shard was deleted."""
        changed = self.put(shard, {}, now_s=now_s)
        del self._shards[shard]
        return changed

    def of(self, node: str, *, now_s: float) -> ListedDevices | None:
        """What the scheduler believes of a node; None where it does not show the node."""
        entries = [self._shards[shard][node] for shard in self._where.get(node, ())]
        if entries:
            return reduce(newest, entries)
        left = self._left.get(node)
        return left[0] if left is not None and now_s - left[1] < GAP_S else None

    def _leave(self, node: str, shard: ObjectKey, entry: ListedDevices, now_s: float) -> None:
        shards = self._where[node]
        shards.discard(shard)
        if shards:
            return
        del self._where[node]
        for gone in [name for name, (_, since_s) in self._left.items() if now_s - since_s >= GAP_S]:
            del self._left[gone]
        self._left[node] = (entry, now_s)


__all__ = ["GAP_S", "Listings"]
