"""The node lifecycle controller: what the control plane does about a node that stopped reporting.

A node with the injected fault `NotReady` becomes Ready=Unknown after `grace_s`, gets the two `unreachable`
taints, and its pods become not ready. Pods are evicted once a NoExecute taint outlasts their toleration
(300 s where they name none for the two node taints, as the admission plugin would have added); they then
stay Terminating, because the kubelet that would confirm is gone. Pods of a deleted Node are removed.
The kubelet's next report of Ready=True takes the taints away, also the `not-ready` one that a real API server
puts on every new Node.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import (
    annotations_of,
    condition,
    has_condition,
    is_finished,
    is_terminating,
    items,
    key_of,
    name_of,
    namespace_of,
    number,
    text,
    uid_of,
    unstamp,
    with_condition,
)  # fmt: skip
from mindie_ha.sim.actors.faults import FAULTS, parse_faults
from mindie_ha.sim.client import ApiClient, Object

UNREACHABLE = "node.kubernetes.io/unreachable"
DEFAULTED = frozenset({UNREACHABLE, "node.kubernetes.io/not-ready"})
DEFAULT_TOLERATION_S = 300


@dataclass(frozen=True, slots=True)
class NodeLifecycleSettings:
    """Timing of the controller."""

    grace_s: float = 0.0
    """Between the last report of a kubelet and Ready=Unknown (40 s in a real cluster)."""
    orphan_s: float = 40.0
    """Pods whose Node object is gone are removed after this."""


class NodeLifecycle(Actor):
    """Marks lost nodes and evicts from them."""

    name = "node-controller"
    kinds = ("Node", "Pod")

    def __init__(
        self,
        *,
        api: ApiClient,
        cache: Cache,
        clock: Clock,
        entropy: Entropy,
        settings: NodeLifecycleSettings | None = None,
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._settings = settings or NodeLifecycleSettings()
        self._silent_since: dict[str, float] = {}
        self._orphan_since: dict[str, float] = {}

    async def reconcile(self) -> float:
        """Mark and unmark nodes, then evict what is due."""
        waits = [self.period_s]
        work = []
        for node in self.cache.all("Node"):
            wait_s = self._silence(node)
            waits.append(wait_s)
            if wait_s <= 0 or name_of(node) not in self._silent_since:
                work.append((name_of(node), self._mark(node, lost=wait_s <= 0)))
        await self.attempt_all(work)
        evictions = []
        for pod in self.cache.all("Pod"):
            wait_s = self._time_left(pod)
            waits.append(wait_s)
            if wait_s <= 0:
                evictions.append((name_of(pod), self._evict(pod)))
        await self.attempt_all(evictions)
        return min((wait for wait in waits if wait > 0), default=self.period_s)

    def _silence(self, node: Object) -> float:
        """Seconds until the node counts as lost; 0 or less: it does."""
        name = name_of(node)
        if not is_frozen(node):
            self._silent_since.pop(name, None)
            return self.period_s
        since = self._silent_since.setdefault(name, self.clock.monotonic())
        return since + self._settings.grace_s - self.clock.monotonic()

    async def _mark(self, node: Object, *, lost: bool) -> None:
        if lost:
            await self._mark_lost(node)
        elif text(condition(node, "Ready"), "status") == "True":
            kept = [taint for taint in items(node, "spec", "taints") if text(taint, "key") not in DEFAULTED]
            if kept != items(node, "spec", "taints"):
                await self.patch("Node", node, {"spec": {"taints": kept or None}}, checked=True)

    async def _mark_lost(self, node: Object) -> None:
        unknown: Object = {
            "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }  # fmt: skip
        if not has_condition(node, unknown):
            conditions = with_condition(items(node, "status", "conditions"), unknown, self.now())
            node = await self.patch_status("Node", node, {"conditions": conditions})
        taints = items(node, "spec", "taints")
        missing = [
            {"key": UNREACHABLE, "effect": effect, "timeAdded": self.now()}
            for effect in ("NoSchedule", "NoExecute")
            if not any(t.get("key") == UNREACHABLE and t.get("effect") == effect for t in taints)
        ]
        if missing:
            await self.patch("Node", node, {"spec": {"taints": [*taints, *missing]}}, checked=True)
        for pod in self.cache.all("Pod"):
            if text(pod, "spec", "nodeName") == name_of(node) and not is_finished(pod):
                await self._mark_pod(pod)

    async def _mark_pod(self, pod: Object) -> None:
        lost: Object = {"type": "Ready", "status": "False"}
        if condition(pod, "Ready") and not has_condition(pod, lost):
            conditions = with_condition(items(pod, "status", "conditions"), lost, self.now())
            await self.patch_status("Pod", pod, {"conditions": conditions})

    def _time_left(self, pod: Object) -> float:
        """Seconds until the pod must leave its node; infinite where it may stay."""
        name = text(pod, "spec", "nodeName")
        node = self.cache.get("Node", name) if name else None
        if not name or node is not None:
            self._orphan_since.pop(uid_of(pod), None)
        if not name:
            return float("inf")
        if node is None:
            since = self._orphan_since.setdefault(uid_of(pod), self.clock.monotonic())
            return since + self._settings.orphan_s - self.clock.monotonic()
        if is_terminating(pod) or is_finished(pod):
            return float("inf")
        return eviction_due_s(pod, node, now_s=self.clock.wall()) - self.clock.wall()

    async def _evict(self, pod: Object) -> None:
        orphan = self.cache.get("Node", text(pod, "spec", "nodeName")) is None
        if not orphan:
            await self.event("Pod", pod, reason="TaintManagerEviction", message=f"Deleting pod {key_of(pod)}")
        await self.api.delete(
            "Pod", name_of(pod), namespace_of(pod), uid=uid_of(pod), grace_s=0 if orphan else None
        )


def is_frozen(node: Object) -> bool:
    """The node is lost: its kubelet and everything else on it is silent."""
    return parse_faults(annotations_of(node).get(FAULTS, "")).not_ready


def eviction_due_s(pod: Object, node: Object, *, now_s: float) -> float:
    """Unix time at which NoExecute taints drive the pod away; infinite where they do not."""
    due = float("inf")
    for taint in items(node, "spec", "taints"):
        if taint.get("effect") == "NoExecute":
            added = unstamp(text(taint, "timeAdded"))
            due = min(due, (now_s if added is None else added) + toleration_s(pod, taint))
    return due


def toleration_s(pod: Object, taint: Object) -> float:
    """How long the pod endures a NoExecute taint; 0 where it does not, infinite where it always does."""
    matching = [t for t in items(pod, "spec", "tolerations") if tolerates(t, taint)]
    if not matching:
        return DEFAULT_TOLERATION_S if text(taint, "key") in DEFAULTED else 0
    limits = [number(t, "tolerationSeconds") for t in matching if t.get("tolerationSeconds") is not None]
    return min(limits) if limits else float("inf")


def tolerates(toleration: Object, taint: Object) -> bool:
    """Whether one toleration covers one taint, by the rules of the API."""
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration.get("key") != taint.get("key"):
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


__all__ = [
    "UNREACHABLE",
    "NodeLifecycle",
    "NodeLifecycleSettings",
    "eviction_due_s",
    "is_frozen",
    "tolerates",
    "toleration_s",
]  # fmt: skip
