"""What a real API server's admission does to new objects, beyond defaults.

A pod gets the priority of its class, and is refused where there is no such class; a new Node is tainted
`not-ready` until the node controller has seen it Ready.
"""

from __future__ import annotations

from mindie_ha.sim.core import Core
from mindie_ha.sim.resources import Resource, by_kind
from mindie_ha.sim.statuses import Object, forbidden

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has."""
NOT_READY: Object = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
CLASSES = by_kind("PriorityClass")


def admit(core: Core, resource: Resource, obj: Object) -> None:
    """Change a new object as admission does; raises StatusError 403."""
    spec = obj.get("spec")
    if resource.custom or not isinstance(spec, dict):
        return
    if resource.kind == "Pod" and spec.get("priorityClassName"):
        _prioritise(core, resource, obj, str(spec["priorityClassName"]))
    if resource.kind == "Node":
        taints = spec.get("taints") or []
        if not any(each.get("key") == NOT_READY["key"] for each in taints if isinstance(each, dict)):
            spec["taints"] = [*taints, dict(NOT_READY)]


def _prioritise(core: Core, resource: Resource, obj: Object, name: str) -> None:
    if name in SYSTEM_PRIORITIES:
        obj["spec"]["priority"] = SYSTEM_PRIORITIES[name]
        return
    found = core.store.get(CLASSES, "", name)
    if found is None:
        raise forbidden(
            resource, obj["metadata"].get("name", ""), f"no PriorityClass with name {name} was found"
        )
    obj["spec"]["priority"] = found.obj.get("value", 0)


__all__ = ["admit"]
