"""Workloads, pods, nodes and PodGroups with their indexes; each change says whom it touches.

Nothing here knows of versions or of watches: `store.py` lets only news pass. The cost of a change is the size
of what it touches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mindie_ha.cluster import convert
from mindie_ha.cluster.fleets import Fleet
from mindie_ha.cluster.indexes import Index
from mindie_ha.cluster.replica_sets import ReplicaSets
from mindie_ha.cluster.slim import SlimNode
from mindie_ha.cluster.touches import Touched, nothing
from mindie_ha.kit.clock import Clock
from mindie_ha.model.ids import ObjectKey, ScopeKey, ScopeKind
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import Turn
from mindie_ha.model.workloads import PodGroup, Workload
from mindie_ha.policy import flaps
from mindie_ha.policy.ownership import claim

REBUILT_WITHIN_S = 60.0  # a workload that comes so soon after one of its name takes its place


class Facts:
    """Tables and indexes, read directly by the store."""

    def __init__(self, *, clock: Clock, fleet: Fleet) -> None:
        self._clock = clock
        self._fleet = fleet
        self.workloads: dict[str, Workload] = {}  # by UID
        self.uid_of: dict[ObjectKey, str] = {}
        self.by_scope: Index[ScopeKey, str] = Index()
        self.by_job_id: Index[str, str] = Index()
        self.by_table_map: Index[ObjectKey, str] = Index()
        self.pods: dict[ObjectKey, Pod] = {}
        self.by_owner: Index[str, ObjectKey] = Index()
        self.by_node: Index[str, ObjectKey] = Index()
        self.by_ip: Index[str, ObjectKey] = Index()
        self.nodes: dict[str, Node] = {}
        self.by_serial: dict[str, str] = {}
        self.podgroups: dict[ObjectKey, PodGroup] = {}
        self.replica_sets = ReplicaSets()
        self.ended_s: dict[ObjectKey, float] = {}  # workloads that are made anew: when the last one went

    def acted_on(self, turns: Iterable[Turn], settings: Settings) -> tuple[Turn, ...]:
        """Those of workloads that we act on, where recoveries are limited: whom we only watch, or whom their
        owner takes away, must not keep others waiting."""
        budgets = settings.budgets
        limits = (
            budgets.max_concurrent_recoveries_per_service,
            budgets.max_concurrent_recoveries_per_cluster,
        )
        if not any(limits):
            return ()
        found = []
        for turn in turns:
            workload = self.workloads.get(self.uid_of.get(ObjectKey.parse(turn.workload), ""))
            if workload is None or workload.deleting:
                continue
            if claim(workload, self.podgroups.get(workload.podgroup), settings=settings).acts:
                found.append(turn)
        return tuple(found)

    def put_pod(self, pod: Pod) -> Touched:
        """A pod as it is now."""
        old = self.pods.get(pod.key)
        if old == pod:
            return nothing()
        touched = self.drop_pod(pod.key) if old is not None else nothing()
        self.pods[pod.key] = pod
        self.by_owner.add(pod.owner_uid, pod.key)
        self.by_node.add(pod.node, pod.key)
        self.by_ip.add(pod.ip, pod.key)
        touched.scopes |= self.scopes_of_owner(pod.owner_uid)
        touched.urgent = pod.phase is PodPhase.FAILED or bool(pod.waiting_reason) or pod.terminating
        return touched

    def drop_pod(self, key: ObjectKey) -> Touched:
        """A pod is gone."""
        pod = self.pods.pop(key, None)
        if pod is None:
            return nothing()
        self.by_owner.discard(pod.owner_uid, key)
        self.by_node.discard(pod.node, key)
        self.by_ip.discard(pod.ip, key)
        return Touched(self.scopes_of_owner(pod.owner_uid), set(), urgent=True)

    def put_node(self, item: SlimNode) -> Touched:
        """A Node as it is now; a heartbeat touches nobody."""
        now_s = self._clock.wall()
        name = item.metadata.name
        old = self.nodes.get(name)
        same = old is not None and old.uid == item.metadata.uid
        since_s = old.not_ready_since_s if same and old is not None else None
        node = convert.node(item, not_ready_since_s=now_s if since_s is None else since_s)
        node = replace(node, losses=flaps.counted(old, node, now_s=now_s))
        self.nodes[name] = node
        self._note_serial(old, node)
        lost_s = node.not_ready_since_s or now_s
        if old is None:  # first sight: the server knows since when
            told = next((one for one in item.status.conditions if one.type == "Ready"), None)
            lost_s = min(now_s, (told.last_transition_time if told else None) or now_s)
        lifted = self._fleet.put(name, ready=node.ready, since_s=lost_s, now_s=now_s, is_open=node.open)
        if old is not None and replace(node, resource_version=old.resource_version) == old:
            return nothing()  # a heartbeat
        return Touched(self._held(lifted), {name}, urgent=not node.ready)

    def drop_node(self, name: str) -> Touched:
        """A Node object is gone."""
        self._note_serial(self.nodes.pop(name, None), None)
        lifted = self._fleet.remove(name, now_s=self._clock.wall())
        return Touched(self._held(lifted), {name}, urgent=True)

    def _held(self, lifted: bool) -> set[ScopeKey]:
        """Whom the brake may have held: everybody, wherever the node is that lifted it."""
        return set(self.by_scope) if lifted else set()

    def _note_serial(self, old: Node | None, new: Node | None) -> None:
        if old is not None and self.by_serial.get(old.serial) == old.name:
            del self.by_serial[old.serial]
        if new is not None and new.serial:
            self.by_serial[new.serial] = new.name

    def put_workload(self, workload: Workload) -> Touched:
        """A workload as it is now."""
        old = self.workloads.get(workload.uid)
        if old == workload:
            return nothing()
        touched = self.drop_workload(workload.uid)
        before = self.uid_of.get(workload.key, workload.uid)
        if before != workload.uid:  # a watch that fell silent did not tell of its end
            touched.scopes |= self.drop_workload(before).scopes
        self.workloads[workload.uid] = workload
        self.uid_of[workload.key] = workload.uid
        self.by_scope.add(workload.scope, workload.uid)
        if workload.job_id:
            self.by_job_id.add(workload.job_id, workload.uid)
        if workload.table_config_map:
            self.by_table_map.add(ObjectKey(workload.key.namespace, workload.table_config_map), workload.uid)
        touched.scopes |= {workload.scope} | self.sharers(workload) | self.namesakes(workload)
        touched.urgent = workload.failed
        return touched

    def drop_workload(self, uid: str) -> Touched:
        """A workload is gone."""
        workload = self.workloads.get(uid)
        if workload is None:
            return nothing()
        sharers = self.sharers(workload) | self.namesakes(workload)
        del self.workloads[uid]
        self._note_end(workload)
        if self.uid_of.get(workload.key) == uid:
            del self.uid_of[workload.key]
        self.by_scope.discard(workload.scope, uid)
        self.by_job_id.discard(workload.job_id, uid)
        self.by_table_map.discard(ObjectKey(workload.key.namespace, workload.table_config_map), uid)
        return Touched({workload.scope} | sharers, set())

    def _note_end(self, workload: Workload) -> None:
        if workload.maker is None:
            return
        now_s = self._clock.wall()
        kept = {key: at_s for key, at_s in self.ended_s.items() if now_s - at_s <= REBUILT_WITHIN_S}
        self.ended_s = {**kept, workload.key: now_s}

    def was_rebuilt(self, workload: Workload) -> bool:
        """Whether one of its name was seen to go just before it came."""
        at_s = self.ended_s.get(workload.key)
        return at_s is not None and self._clock.wall() - at_s <= REBUILT_WITHIN_S

    def put_replica_set(self, uid: str, maker_uid: str) -> Touched:
        """A ReplicaSet as it is now."""
        if not self.replica_sets.put(uid, maker_uid):
            return nothing()
        return Touched(self.scopes_of_owner(uid), set())

    def drop_replica_set(self, uid: str) -> Touched:
        """A ReplicaSet is gone."""
        return Touched(self.scopes_of_owner(self.replica_sets.drop(uid)), set())

    def workload_behind(self, owner_uid: str) -> Workload | None:
        """The workload that a pod with this owner belongs to."""
        return self.workloads.get(self.replica_sets.maker_of(owner_uid))

    def pods_of(self, workload_uid: str) -> list[Pod]:
        """All pod objects of a workload."""
        owners = self.replica_sets.owners_for(workload_uid)
        return [self.pods[key] for uid in owners for key in self.by_owner.of(uid)]

    def put_podgroup(self, group: PodGroup) -> Touched:
        """A PodGroup as it is now."""
        old = self.podgroups.get(group.key)
        self.podgroups[group.key] = group
        if old is not None and replace(group, resource_version=old.resource_version) == old:
            return nothing()
        return self._podgroup_touch(group)

    def drop_podgroup(self, key: ObjectKey) -> Touched:
        """A PodGroup is gone."""
        group = self.podgroups.pop(key, None)
        return self._podgroup_touch(group) if group is not None else nothing()

    def _podgroup_touch(self, group: PodGroup) -> Touched:
        uid = group.key.name[-36:]  # "<job>-<job uid>"
        return Touched(self.scopes_of_owner(uid), set())

    def scopes_of_owner(self, uid: str) -> set[ScopeKey]:
        """The scope of a workload, by the UID of what owns its pods."""
        workload = self.workload_behind(uid)
        return {workload.scope} if workload is not None else set()

    def namesakes(self, workload: Workload) -> set[ScopeKey]:
        """The services, one per namespace, that carry the same jobID."""
        return set(self.services_named(workload.job_id))

    def services_named(self, job_id: str) -> tuple[ScopeKey, ...]:
        """The services that carry a jobID, one per namespace, in order."""
        scopes = {self.workloads[uid].scope for uid in self.by_job_id.of(job_id)}
        return tuple(sorted(scope for scope in scopes if scope.kind is ScopeKind.SERVICE))

    def sharers(self, workload: Workload) -> set[ScopeKey]:
        """The services whose pods mount the same table ConfigMap."""
        if not workload.table_config_map:
            return set()
        uids = self.by_table_map.of(ObjectKey(workload.key.namespace, workload.table_config_map))
        scopes = {self.workloads[uid].scope for uid in uids}
        return {scope for scope in scopes if scope.kind is ScopeKind.SERVICE}


__all__ = ["Facts"]
