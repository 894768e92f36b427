"""The nodes as the scheduler knows them: Node objects, its device list, and what pods already hold.

Free cards = cards of the node - cards held by unfinished pods - Unhealthy - Recovering, and for distributed
jobs also - NetworkUnhealthy. A node that the device list does not name offers no cards.
"""

from __future__ import annotations

from collections.abc import Mapping

from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.clusterds import DEVICES, NAMESPACE, NODE_PREFIX, NODES, SWITCH_PREFIX, SWITCHES
from mindie_ha.sim.actors.device_plugins import cards_of
from mindie_ha.sim.actors.deviceinfos import read_cluster_devices
from mindie_ha.sim.actors.documents import (
    annotations_of,
    condition,
    is_finished,
    items,
    labels_of,
    load_json,
    mapping,
    name_of,
    namespace_of,
    number,
    text,
    texts,
    uid_of,
)
from mindie_ha.sim.actors.machines import RESOURCE
from mindie_ha.sim.actors.placements import Guest, Machine, Seat
from mindie_ha.sim.actors.rescheduling_rules import Hardware
from mindie_ha.sim.client import Object

UNHEALTHY = "UnHealthy"
BAD_NODE = frozenset({UNHEALTHY, "PreSeparate"})
MARK = "NodeHealthyStatus"


def read_fleet(cache: Cache, *, seats: Mapping[str, Seat], distributed: bool) -> list[Machine]:
    """All nodes; `seats` are pods (by UID) that were bound but do not show it yet."""
    lists = _cluster_infos(cache, DEVICES)
    devices = read_cluster_devices(lists)
    unhealthy = _unhealthy_nodes(cache)
    guests: dict[str, list[Guest]] = {}
    used: dict[str, set[str]] = {}
    for pod in cache.all("Pod"):
        seat = seats.get(uid_of(pod))
        node = text(pod, "spec", "nodeName") or (seat.node if seat else "")
        if not node or is_finished(pod):
            continue
        guest = Guest(name_of(pod), namespace_of(pod), labels_of(pod), mapping(pod, "spec"))
        guests.setdefault(node, []).append(guest)
        used.setdefault(node, set()).update(seat.cards if seat else cards_of(pod))
    return [
        _machine(node, devices.get(name_of(node)), used, guests, unhealthy, distributed=distributed)
        for node in cache.all("Node")
    ]


def _machine(
    node: Object,
    devices: Mapping[str, str] | None,
    used: Mapping[str, set[str]],
    guests: Mapping[str, list[Guest]],
    unhealthy: frozenset[str],
    *,
    distributed: bool,
) -> Machine:
    name = name_of(node)
    return Machine(
        name=name,
        labels=labels_of(node),
        taints=tuple(items(node, "spec", "taints")),
        refusal=_refusal(node, unhealthy),
        free=free_cards(node, devices, used.get(name, set()), distributed=distributed),
        guests=tuple(guests.get(name, ())),
        super_pod=number(annotations_of(node), "superPodID", default=-2),
    )


def free_cards(
    node: Object, devices: Mapping[str, str] | None, used: set[str], *, distributed: bool
) -> tuple[str, ...]:
    """The cards of a node that may be given out, in numeric order."""
    if devices is None:
        return ()
    lists = ["Unhealthy", "Recovering", *(["NetworkUnhealthy"] if distributed else [])]
    bad = {card for kind in lists for card in devices.get(f"{RESOURCE}-{kind}", "").split(",")}
    cards = mapping(load_json(annotations_of(node).get("baseDeviceInfos", "")))
    usable = [card for card in cards if card not in bad and card not in used]
    left = number(node, "status", "allocatable", RESOURCE) - len(used)
    usable.sort(key=lambda card: (len(card), card))
    return tuple(usable) if left >= len(usable) else tuple(usable[: max(0, left)])


def _refusal(node: Object, unhealthy: frozenset[str]) -> str:
    if text(condition(node, "Ready"), "status") != "True":
        return "node(s) were not ready"
    if mapping(node, "spec").get("unschedulable") is True:
        return "node(s) were unschedulable"
    return "node(s) are reported unhealthy" if name_of(node) in unhealthy else ""


def _unhealthy_nodes(cache: Cache, status: frozenset[str] = BAD_NODE) -> frozenset[str]:
    found = set()
    for prefix, entry in ((NODES, NODE_PREFIX), (SWITCHES, SWITCH_PREFIX)):
        for body in _cluster_infos(cache, prefix):
            decoded = mapping(load_json(body))
            found |= {
                name.removeprefix(entry) for name in decoded if text(decoded, name, "NodeStatus") in status
            }
    return frozenset(found)


def read_hardware(cache: Cache, *, first: bool) -> Hardware:
    """Nodes and cards as the rescheduler knows them; `first`: in its first session."""
    devices = read_cluster_devices(_cluster_infos(cache, DEVICES))
    nodes = cache.all("Node")
    ready = {name_of(node) for node in nodes if text(condition(node, "Ready"), "status") == "True"}
    marked = {name_of(node) for node in nodes if annotations_of(node).get(MARK) == UNHEALTHY}
    cards = {
        name: frozenset(card for card in found.get(f"{RESOURCE}-Unhealthy", "").split(",") if card)
        for name, found in devices.items()
    }
    unhealthy = _unhealthy_nodes(cache, frozenset({UNHEALTHY})) | marked
    return Hardware(frozenset(ready & devices.keys()), unhealthy, cards, first)


def _cluster_infos(cache: Cache, prefix: str) -> list[str]:
    return [
        texts(config, "data").get(name_of(config), "")
        for config in cache.all("ConfigMap", NAMESPACE)
        if name_of(config).startswith(prefix) and labels_of(config).get("mx-consumer-volcano") == "true"
    ]


__all__ = ["free_cards", "read_fleet", "read_hardware"]
