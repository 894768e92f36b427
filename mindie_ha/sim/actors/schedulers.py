"""The gang scheduler: Volcano as far as recovery can tell.

A PodGroup goes Pending -> Inqueue -> Running, and back to Pending when fewer pods than its minimum are
placed. Nothing of a group is placed while one of its pods terminates, and not before enough pods exist to
reach the minimum. Which cards are healthy is read from `mindx-dl/cluster-info-device-<i>` and from nowhere
else: a card that ClusterD has not listed yet is given out, however broken it is. (The allocatable number of
cards on the Node stays that of the hardware for the same reason.)

A session runs every second and shortly after any change. CPU and memory are not counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import TRANSIENT, Cache
from mindie_ha.sim.actors.device_plugins import REAL
from mindie_ha.sim.actors.documents import (
    annotations_of,
    condition,
    is_finished,
    is_terminating,
    items,
    key_of,
    load_json,
    mapping,
    name_of,
    namespace_of,
    number,
    phase_of,
    text,
    uid_of,
    with_condition,
)
from mindie_ha.sim.actors.fleets import read_fleet
from mindie_ha.sim.actors.hccl_tables import CONFIGURATION
from mindie_ha.sim.actors.job_objects import GROUP, RANK
from mindie_ha.sim.actors.machines import RESOURCE
from mindie_ha.sim.actors.placements import Gang, Guest, Machine, Seat, place
from mindie_ha.sim.client import ApiClient, Object

REMEMBERED = 10_000  # pods whose previous node is kept


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How the scheduler works."""

    session_s: float = 1.0
    """Longest time between two sessions."""
    gather_s: float = 0.05
    """Pause after a wake-up, so that one session sees a whole burst of changes."""
    prefer_previous_node: bool = True
    scheduler_names: frozenset[str] = frozenset({"volcano", "default-scheduler", ""})
    """Pods of these schedulers are placed; leave out the default one where a real one runs."""


class GangScheduler(Actor):
    """Places pods."""

    name = "volcano"
    kinds = ("Pod", "PodGroup", "Node", "ConfigMap", "Queue")

    def __init__(
        self,
        *,
        api: ApiClient,
        cache: Cache,
        clock: Clock,
        entropy: Entropy,
        settings: SchedulerSettings | None = None,
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._settings = settings or SchedulerSettings()
        self._assumed: dict[str, Seat] = {}
        self._previous: dict[str, str] = {}

    async def reconcile(self) -> float:
        """One session."""
        await self.clock.sleep(self._settings.gather_s)
        pods = [pod for pod in self.cache.all("Pod") if self._is_ours(pod)]
        alive = {uid_of(pod) for pod in pods if not text(pod, "spec", "nodeName")}
        self._assumed = {uid: seat for uid, seat in self._assumed.items() if uid in alive}
        for pod in pods:
            if self._node_of(pod):
                self._remember(pod, self._node_of(pod))
        groups = self.cache.all("PodGroup")
        for group in sorted(groups, key=lambda g: (text(g, "metadata", "creationTimestamp"), key_of(g))):
            members = [pod for pod in pods if group_of(pod) == key_of(group)]
            await self.attempt(self._serve(group, members), what=name_of(group))
        for pod in pods:
            if group_of(pod) is None and self._waits(pod):
                await self.attempt(self._allocate([pod], 1), what=name_of(pod))
        return self._settings.session_s

    def _is_ours(self, pod: Object) -> bool:
        return text(pod, "spec", "schedulerName") in self._settings.scheduler_names

    def _node_of(self, pod: Object) -> str:
        seat = self._assumed.get(uid_of(pod))
        return text(pod, "spec", "nodeName") or (seat.node if seat else "")

    def _waits(self, pod: Object) -> bool:
        return not self._node_of(pod) and not is_terminating(pod) and not is_finished(pod)

    async def _serve(self, group: Object, pods: list[Object]) -> None:
        """Enqueue, allocate and close one group."""
        phase = phase_of(group)
        minimum = number(group, "spec", "minMember", default=1)
        if is_terminating(group):
            return
        if phase == "":
            await self._set_phase(group, "Pending", pods)
            return
        if phase == "Pending":
            queue = text(group, "spec", "queue") or "default"
            if self.cache.get("Queue", queue) is None:
                return
            phase = "Inqueue"
        if any(self._waits(pod) for pod in pods):
            await self._allocate(pods, minimum)
        placed = sum(bool(self._node_of(pod)) and counts_as_allocated(pod) for pod in pods)
        if placed >= minimum and pods:
            phase = "Running"
        elif phase != "Inqueue":
            phase = "Pending"
        await self._set_phase(group, phase, pods)

    async def _set_phase(self, group: Object, phase: str, pods: list[Object]) -> None:
        phases = Counter(phase_of(pod) for pod in pods)
        status: Object = {
            "phase": phase,
            "running": phases["Running"],
            "succeeded": phases["Succeeded"],
            "failed": phases["Failed"],
        }
        if any(mapping(group, "status").get(key) != value for key, value in status.items()):
            await self.patch_status("PodGroup", group, status)

    async def _allocate(self, pods: list[Object], minimum: int) -> None:
        """Place the waiting pods of a group if it is allowed to and fits."""
        waiting = sorted((pod for pod in pods if self._waits(pod)), key=rank_of)
        valid = sum(not is_terminating(pod) and phase_of(pod) != "Failed" for pod in pods)
        if any(is_terminating(pod) for pod in pods) or valid < minimum:
            reason = f"pod group is not ready, {len(waiting)} Pending, {minimum} minAvailable"
            await self._refuse(waiting, dict.fromkeys(map(name_of, waiting), reason))
            return
        placed = sum(bool(self._node_of(pod)) and counts_as_allocated(pod) for pod in pods)
        distributed = sum(guest_of(pod).cards > 0 for pod in pods) > 1
        fleet = read_fleet(self.cache, seats=self._assumed, distributed=distributed)
        gang = self._gang(waiting, pods, fleet, need=minimum - placed)
        placement = place(gang, fleet)
        order = {name_of(pod): index for index, pod in enumerate(sorted(pods, key=rank_of))}
        for pod in waiting:
            seat = placement.seats.get(name_of(pod))
            if seat is not None:
                logical = order[name_of(pod)] // gang.block if gang.block else 0
                notes = self._notes(pod, seat, distributed=distributed, logical=logical)
                await self.attempt(self._bind(pod, seat, notes), what=name_of(pod))
        await self._refuse(waiting, placement.refusals)

    def _gang(self, waiting: list[Object], pods: list[Object], fleet: list[Machine], *, need: int) -> Gang:
        previous = {}
        if self._settings.prefer_previous_node:
            previous = {name_of(pod): self._previous.get("/".join(key_of(pod)), "") for pod in waiting}
        ordered = [pod for pod in sorted(pods, key=rank_of) if not is_terminating(pod)]
        positions = {name_of(pod): index for index, pod in enumerate(ordered)}
        cards = guest_of(waiting[0]).cards
        block = self._block(waiting[0], cards) if cards else 0
        homes = {machine.name: machine.super_pod for machine in fleet}
        fixed = {
            positions[name_of(pod)] // block: homes[self._node_of(pod)]
            for pod in ordered
            if block and self._node_of(pod) in homes
        }
        guests = tuple(guest_of(pod) for pod in waiting)
        return Gang(guests, need, previous, block=block, fixed=fixed, positions=positions)

    def _block(self, pod: Object, cards: int) -> int:
        """Pods per logical super pod; 0 where the job is not for A3 super pods."""
        if not text(pod, "spec", "nodeSelector", "accelerator-type").endswith("super-pod"):
            return 0
        group = self.cache.get("PodGroup", annotations_of(pod).get(GROUP, ""), namespace_of(pod)) or {}
        size = number(annotations_of(group), "sp-block") or number(annotations_of(pod), "sp-block")
        return max(1, size // cards) if size else 0

    def _notes(self, pod: Object, seat: Seat, *, distributed: bool, logical: int) -> dict[str, str]:
        """The annotations of a pod that got cards."""
        if not seat.cards:
            return {}
        node = self.cache.get("Node", seat.node) or {}
        notes = {
            REAL: ",".join(seat.cards),
            RESOURCE: ",".join(seat.cards),
            "predicate-time": str(int(self.clock.wall() * 1e9)),
            "distributed-job": "true" if distributed else "false",
            CONFIGURATION: configuration(pod, node, seat.cards),
        }
        super_pod = number(annotations_of(node), "superPodID", default=-2)
        if super_pod >= 0:
            notes |= {"super-pod-id": str(super_pod), "super-pod-rank": str(logical)}
        return notes

    async def _bind(self, pod: Object, seat: Seat, notes: Mapping[str, str]) -> None:
        self._assumed[uid_of(pod)] = seat
        try:
            if notes:
                await self.patch("Pod", pod, {"metadata": {"annotations": dict(notes)}})
            body: Object = {
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)},
                "target": {"apiVersion": "v1", "kind": "Node", "name": seat.node},
            }  # fmt: skip
            await self.api.post("Pod", name_of(pod), namespace_of(pod), "binding", body)
        except TRANSIENT:  # if it was bound all the same, the cache will say so
            del self._assumed[uid_of(pod)]
            raise
        self._remember(pod, seat.node)

    def _remember(self, pod: Object, node: str) -> None:
        self._previous.pop("/".join(key_of(pod)), None)
        self._previous["/".join(key_of(pod))] = node
        while len(self._previous) > REMEMBERED:
            del self._previous[next(iter(self._previous))]

    async def _refuse(self, waiting: list[Object], refusals: Mapping[str, str]) -> None:
        for pod in waiting:
            message = refusals.get(name_of(pod), "")
            known = condition(pod, "PodScheduled")
            if not message or known.get("message") == message:
                continue
            new: Object = {
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message
            }  # fmt: skip
            conditions = with_condition(items(pod, "status", "conditions"), new, self.now())
            await self.attempt(
                self.patch_status("Pod", pod, {"conditions": conditions}), what=f"condition of {name_of(pod)}"
            )


def group_of(pod: Object) -> tuple[str, str] | None:
    """Namespace and name of the pod's PodGroup."""
    name = annotations_of(pod).get(GROUP, "")
    return (namespace_of(pod), name) if name else None


def counts_as_allocated(pod: Object) -> bool:
    """A placed pod counts towards the minimum until it terminates or fails."""
    return not is_terminating(pod) and phase_of(pod) != "Failed"


def rank_of(pod: Object) -> tuple[int, str]:
    """Order of pods inside a gang."""
    return number(annotations_of(pod), RANK), name_of(pod)


def guest_of(pod: Object) -> Guest:
    """The pod as placement sees it."""
    spec = mapping(pod, "spec")
    cards = sum(
        number(container, "resources", "requests", RESOURCE)
        or number(container, "resources", "limits", RESOURCE)
        for container in items(spec, "containers")
    )
    return Guest(name_of(pod), namespace_of(pod), mapping(pod, "metadata", "labels"), spec, cards)


def configuration(pod: Object, node: Object, cards: tuple[str, ...]) -> str:
    """The annotation that the operator builds the rank table from, in the scheduler's key order."""
    infos = load_json(annotations_of(node).get("baseDeviceInfos", ""))
    super_pod = number(annotations_of(node), "superPodID", default=-2)
    address = next((text(a, "address") for a in items(node, "status", "addresses")), "")
    devices = []
    for card in cards:
        device: Object = {"device_id": card.rpartition("-")[2], "device_ip": text(infos, card, "IP")}
        if super_pod >= 0:
            device["super_device_id"] = str(number(infos, card, "SuperDeviceID"))
        devices.append(device)
    return json.dumps({
        "pod_name": name_of(pod), "server_id": uid_of(pod), "server_ip": address, "host_ip": address,
        "super_pod_id": super_pod, "rack_id": 0, "devices": devices,
        "server_index": annotations_of(node).get("serverIndex", ""),
    }, separators=(",", ":"))  # fmt: skip


__all__ = [
    "GangScheduler",
    "SchedulerSettings",
    "configuration",
    "counts_as_allocated",
    "group_of",
    "guest_of",
]
