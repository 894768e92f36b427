"""The kubelets' heartbeat: one Lease a node in kube-node-lease, renewed while the node is not lost.

A real control plane marks a node whose Lease nobody renews; the embedded one has no such controller, so there
this actor does not run. A lost node renews nothing, and the control plane comes to its own verdict.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import name_of, uid_of
from mindie_ha.sim.actors.machines import NodeModel
from mindie_ha.sim.actors.node_lifecycles import is_frozen
from mindie_ha.sim.client import ApiClient, ApiError, Object

NAMESPACE = "kube-node-lease"
DURATION_S = 40


class NodeLeases(Actor):
    """Renews the Leases of our nodes."""

    name = "node-lease"
    kinds = ("Node",)

    def __init__(
        self, *, api: ApiClient, cache: Cache, clock: Clock, entropy: Entropy,
        models: tuple[NodeModel, ...], renew_s: float,
    ) -> None:  # fmt: skip
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._names = tuple(model.name for model in models)
        self._renew_s = renew_s
        self._renewed_s: dict[str, float] = {}

    async def reconcile(self) -> float:
        """Renew what is due."""
        now_s = self.clock.monotonic()
        nodes = {name: self.cache.get("Node", name) for name in self._names}
        living = {name: node for name, node in nodes.items() if node is not None and not is_frozen(node)}
        self._renewed_s = {name: at_s for name, at_s in self._renewed_s.items() if name in living}
        due = {
            name: node
            for name, node in living.items()
            if now_s >= self._renewed_s.get(name, float("-inf")) + self._renew_s
        }
        await self.attempt_all((name, self._renew(node)) for name, node in due.items())
        left = (at_s + self._renew_s - self.clock.monotonic() for at_s in self._renewed_s.values())
        return min(left, default=self.period_s)

    async def _renew(self, node: Object) -> None:
        moment = datetime.fromtimestamp(self.clock.wall(), UTC).isoformat(timespec="microseconds")
        spec: Object = {
            "holderIdentity": name_of(node),
            "leaseDurationSeconds": DURATION_S,
            "renewTime": moment.replace("+00:00", "Z"),
        }
        try:
            await self.api.patch("Lease", name_of(node), NAMESPACE, {"spec": spec})
        except ApiError as error:
            if error.status != 404:
                raise
            owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(node), "uid": uid_of(node)}
            meta = {"name": name_of(node), "namespace": NAMESPACE, "ownerReferences": [owner]}
            await self.api.create("Lease", {"metadata": meta, "spec": spec})
        self._renewed_s[name_of(node)] = self.clock.monotonic()


__all__ = ["NodeLeases"]
