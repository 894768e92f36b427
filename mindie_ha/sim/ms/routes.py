"""Where a connection to a Service ends: what kube-proxy does on every machine.

All pods and machines of the simulation are this machine, so a pod's address can be dialled as it is; only
cluster IPs lead nowhere. One is replaced by a Ready pod that the Service selects, or, where there is none, by
127.0.0.1: that is where a controller listens that runs beside the simulation.
"""

from __future__ import annotations

from collections.abc import Callable

from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import condition, items, labels_of, mapping, namespace_of, number, text
from mindie_ha.sim.client import Object

Route = Callable[[str, int], tuple[str, int]]
HERE = "127.0.0.1"


def straight(host: str, port: int) -> tuple[str, int]:
    """The address itself."""
    return host, port


def through_services(cache: Cache, host: str, port: int) -> tuple[str, int]:
    """The end of a connection to this address, as the Services stand now."""
    for service in cache.all("Service"):
        if text(service, "spec", "clusterIP") == host:
            return _endpoint(cache, service, port) or (HERE, port)
    return host, port


def _endpoint(cache: Cache, service: Object, port: int) -> tuple[str, int] | None:
    selector = mapping(service, "spec", "selector")
    target = next((one for one in items(service, "spec", "ports") if one.get("port") == port), {})
    for pod in cache.all("Pod", namespace_of(service)) if selector else ():
        chosen = all(labels_of(pod).get(key) == value for key, value in selector.items())
        address = text(pod, "status", "podIP")
        if chosen and address and text(condition(pod, "Ready"), "status") == "True":
            return address, _port(pod, target.get("targetPort"), port)
    return None


def _port(pod: Object, target: object, port: int) -> int:
    """The pod's port that a Service means by number or by name."""
    if isinstance(target, int):
        return target
    for container in items(pod, "spec", "containers"):
        for one in items(container, "ports"):
            if text(one, "name") == target:
                return number(one, "containerPort", default=port)
    return port


__all__ = ["Route", "straight", "through_services"]
