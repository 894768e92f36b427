"""Cluster addresses of Services: a fresh one from 10.96.0.0/16 where none is asked for, kept for life.

`None` (headless) and addresses that the client chose are taken as they are; an address in use is refused.
"""

from __future__ import annotations

from mindie_ha.sim.core import Core
from mindie_ha.sim.resources import Resource, by_kind
from mindie_ha.sim.statuses import Cause, Object
from mindie_ha.sim.storage import kind_of

SERVICES = by_kind("Service")
_FIRST = 2  # .0 is the network, .1 the API server's own


def allocate(core: Core, resource: Resource, obj: Object) -> list[Cause]:
    """Give a new Service its address; causes where the wanted one is taken."""
    spec = obj.get("spec")
    if resource is not SERVICES or not isinstance(spec, dict) or spec.get("type") == "ExternalName":
        return []
    wanted = spec.get("clusterIP")
    if wanted == "None":
        spec["clusterIPs"] = ["None"]
        return []
    taken = {_address(stored.obj) for _, stored in core.store.collection(kind_of(SERVICES)).iterate("")}
    if wanted and wanted in taken:
        text = (
            f'Invalid value: ["{wanted}"]: failed to allocate IP {wanted}: provided IP is already allocated'
        )
        return [Cause("FieldValueInvalid", text, "spec.clusterIPs")]
    if not wanted:
        numbers = (f"10.96.{number >> 8}.{number & 255}" for number in range(_FIRST, 1 << 16))
        spec["clusterIP"] = next(address for address in numbers if address not in taken)
    spec["clusterIPs"] = [spec["clusterIP"]]
    return []


def keep(new: Object, old: Object) -> None:
    """An update that leaves the address out keeps it."""
    spec, before = new.get("spec"), old.get("spec")
    if isinstance(spec, dict) and isinstance(before, dict):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and field in before:
                spec[field] = before[field]


def _address(obj: Object) -> object:
    spec = obj.get("spec")
    return spec.get("clusterIP") if isinstance(spec, dict) else None
