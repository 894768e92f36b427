"""Graceful fault tolerance of older device plugins (`-hotReset=1`): a card is reset under its job.

Only on nodes with the annotation `sim.mindie-ha.io/hot-reset-s`: so many seconds a reset takes, or with a
minus sign, after which it fails. The job's reset-config says of the card's ranks `Policy` reset and `Status`
unrecovered, then recovered (with `RetryTime` one higher and `restartType` hotReset) or failed; some time
later the list is cleared. Source: training contract §1.10, §3.7.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.device_plugins import cards_of
from mindie_ha.sim.actors.documents import (
    annotations_of,
    is_integer,
    items,
    load_json,
    mapping,
    name_of,
    namespace_of,
    number,
    text,
)
from mindie_ha.sim.actors.faults import FAULTS, parse_faults
from mindie_ha.sim.client import ApiClient, Object

HOT_RESET_S = "sim.mindie-ha.io/hot-reset-s"
LEVEL = "RestartNPU"
CLEARED_AFTER_S = 10.0


@dataclass(slots=True)
class _Reset:
    """One card under one pod: when its reset ends, and when that is forgotten."""

    pod: Object
    ends_s: float
    works: bool
    done: bool = False
    forgotten_s: float = float("inf")


class HotResets(Actor):
    """The resets of all nodes."""

    name = "hot-resets"
    kinds = ("Node", "Pod")

    def __init__(self, *, api: ApiClient, cache: Cache, clock: Clock, entropy: Entropy) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._resets: dict[tuple[str, str], _Reset] = {}

    async def reconcile(self) -> float:
        """Begin and end resets."""
        now_s = self.clock.monotonic()
        for node in self.cache.all("Node"):
            told = annotations_of(node).get(HOT_RESET_S, "")
            if is_integer(told.removeprefix("-")):
                await self._begin(node, float(told), now_s)
        for (node_name, card), reset in list(self._resets.items()):
            if not reset.done and now_s >= reset.ends_s:
                await self._end(node_name, card, reset, now_s)
            elif now_s >= reset.forgotten_s:
                del self._resets[node_name, card]
                await self._say(reset.pod, [], ended=False)
        times = [one.forgotten_s if one.done else one.ends_s for one in self._resets.values()]
        return max(0.01, min([self.period_s, *(at_s - now_s for at_s in times)]))

    async def _begin(self, node: Object, lasts_s: float, now_s: float) -> None:
        for chip in parse_faults(annotations_of(node).get(FAULTS, "")).chips:
            key = (name_of(node), chip.device)
            pod = self._pod_with(*key)
            if chip.level != LEVEL or key in self._resets or pod is None:
                continue
            self._resets[key] = _Reset(pod, now_s + abs(lasts_s), works=lasts_s >= 0)
            await self._say(pod, [_entry(pod, chip.device, "unrecovered", chip.code)], ended=False)

    async def _end(self, node_name: str, card: str, reset: _Reset, now_s: float) -> None:
        reset.done, reset.forgotten_s = True, now_s + CLEARED_AFTER_S
        status = "recovered" if reset.works else "failed"
        if reset.works:
            await self._mend(node_name, card)
        await self._say(reset.pod, [_entry(reset.pod, card, status, "")], ended=reset.works)

    async def _mend(self, node_name: str, card: str) -> None:
        node = self.cache.get("Node", node_name)
        listed = load_json(annotations_of(node or {}).get(FAULTS, ""))
        left = [one for one in listed if one.get("device") != card] if isinstance(listed, list) else []
        if node is not None:
            body = {"metadata": {"annotations": {FAULTS: json.dumps(left) if left else None}}}
            await self.attempt(self.patch("Node", node, body), what=node_name)

    def _pod_with(self, node: str, card: str) -> Object | None:
        pods = (pod for pod in self.cache.all("Pod") if text(pod, "spec", "nodeName") == node)
        return next((pod for pod in pods if card in cards_of(pod)), None)

    async def _say(self, pod: Object, ranks: list[Object], *, ended: bool) -> None:
        owner = next(iter(items(pod, "metadata", "ownerReferences")), {})
        name, namespace = f"reset-config-{owner.get('name', '')}", namespace_of(pod)
        found = await self.api.get("ConfigMap", name, namespace)
        content = load_json(text(found or {}, "data", "reset.json"))
        if found is None or not isinstance(content, dict):
            return
        retry_time = number(content, "RetryTime") + ended
        content |= {"RankList": ranks, "UpdateTime": int(self.clock.wall()), "RetryTime": retry_time}
        data = mapping(found, "data") | {"reset.json": json.dumps(content)}
        if ended:
            data["restartType"] = "hotReset"
        await self.attempt(
            self.api.patch("ConfigMap", name, namespace, {"data": data}), what=f"reset of {name}"
        )


def _entry(pod: Object, card: str, status: str, code: str) -> Object:
    logic, rank = int(card.rpartition("-")[2]), number(annotations_of(pod), "hccl/rankIndex")
    return {
        "RankId": rank * len(cards_of(pod)) + cards_of(pod).index(card),
        "LogicId": logic,
        "Status": status,
        "Policy": "reset",
        "InitialPolicy": "reset",
        "ErrorCode": [],
        "ErrorCodeHex": code,
    }


__all__ = ["HOT_RESET_S", "HotResets"]
