"""The infer-operator: an InferServiceSet becomes instances, and a faulty instance is rebuilt as a whole.

Promises of the real one that recovery depends on: a pod that Volcano marked (`huawei.com/pod-status`) makes
it delete the pod's workload, which it then makes anew; a further mark of a recorded workload is merged into
the first; a failed program takes one of the workload's retries and does nothing without; with `gang-schedule`
any deleted pod rebuilds its workload; pods on a node that stops being Ready are deleted at once. Its memory
is lost with its process. With nothing to reschedule it is harmless; `reschedules` switches that part off.

Source: rescheduling contract §2.10, vectors I1-I7; fault input contract §5. Left out: priorities.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import (
    Key,
    annotations_of,
    condition,
    is_integer,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    number,
    text,
    uid_of,
)
from mindie_ha.sim.actors.instance_objects import (
    KINDS,
    OPERATOR,
    SCHEDULING,
    Instance,
    group_object,
    instance_sets,
    instances,
    workload_object,
)
from mindie_ha.sim.actors.pod_sets import is_ready, owned_by
from mindie_ha.sim.client import ApiClient, Object

MARK = "huawei.com/pod-status"
UNHEALTHY, FAILED = "Unhealthy", "pod-failed"
RETRIES = "fault-retry-times"
DEFAULT_GRACE_S = 30


@dataclass(frozen=True, slots=True)
class InferOperatorSettings:
    """How it works."""

    reschedules: bool = True
    """False: it makes instances and nothing more; faults and lost nodes are left to others."""


@dataclass(slots=True)
class Workload:
    """An instance's object and its pods as they are now."""

    instance: Instance
    obj: Object
    pods: list[Object]


class InferOperator(Actor):
    """Makes instances and rebuilds them."""

    name = "infer-operator"
    kinds = ("InferServiceSet", "InstanceSet", "StatefulSet", "Deployment", "Pod", "PodGroup", "Node")

    def __init__(
        self,
        *,
        api: ApiClient,
        cache: Cache,
        clock: Clock,
        entropy: Entropy,
        settings: InferOperatorSettings | None = None,
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._settings = settings or InferOperatorSettings()
        self._faults: dict[Key, str] = {}  # recorded and not answered yet
        self._retries: dict[Key, int] = {}
        self._seen: dict[str, set[str]] = {}  # by workload UID: its pods, as last looked at
        self._forced: dict[str, tuple[Key, float]] = {}  # pods to be forced, and when
        self._lost: set[str] = set()  # nodes whose pods were deleted

    async def reconcile(self) -> float:
        """Everything once."""
        sets, owners = self.cache.all("InferServiceSet"), self.cache.all("InstanceSet")
        if not sets and not owners:
            return self.period_s
        for one in sets:
            if not is_terminating(one):
                await self.attempt(self._make_sets(one), what=name_of(one))
        workloads = [found for owner in owners if not is_terminating(owner) for found in self._present(owner)]
        if self._settings.reschedules:
            await self._clean_nodes()
            self._record(workloads)
            for workload in workloads:
                await self.attempt(self._reschedule(workload), what=name_of(workload.obj))
        for owner in owners:
            if not is_terminating(owner):
                await self.attempt(self._keep(owner), what=name_of(owner))
        return await self._force()

    # -- making --------------------------------------------------------------------------------------

    async def _make_sets(self, one: Object) -> None:
        for body in instance_sets(one):
            if self.cache.get("InstanceSet", *reversed(key_of(body))) is None:
                await self.create("InstanceSet", body)

    async def _keep(self, owner: Object) -> None:
        wanted = instances(owner)
        for one in wanted:
            namespace = namespace_of(owner)
            if one.gang and self.cache.get("PodGroup", f"pg-{one.name}", namespace) is None:
                await self.create("PodGroup", group_object(one))
            if self.cache.get(one.kind, one.name, namespace) is None:
                await self.create(one.kind, workload_object(one))
        present = self._present(owner, all_=True)
        names = {one.name for one in wanted}
        for each in present:
            if name_of(each.obj) not in names and not is_terminating(each.obj):
                await self._delete(each.instance.kind, each.obj)
        ready = sum(bool(each.pods) and all(map(is_ready, each.pods)) for each in present)
        status = {"replicas": len(wanted), "readyReplicas": ready}
        if any(number(owner, "status", name, default=-1) != value for name, value in status.items()):
            await self.patch_status("InstanceSet", owner, status)

    def _present(self, owner: Object, *, all_: bool = False) -> list[Workload]:
        made = [
            (kind, obj) for kind in KINDS for obj in owned_by(self.cache.all(kind)).get(uid_of(owner), [])
        ]
        pods = owned_by(self.cache.all("Pod")) if made else {}
        replica_sets = owned_by(self.cache.all("ReplicaSet")) if made else {}
        found = []
        for _, obj in made:
            uids = [uid_of(obj), *map(uid_of, replica_sets.get(uid_of(obj), []))]
            index = name_of(obj).rpartition("-")[2]
            instance = Instance(owner, int(index) if is_integer(index) else 0)
            mine = [pod for uid in uids for pod in pods.get(uid, [])]
            if all_ or not is_terminating(obj):
                found.append(Workload(instance, obj, mine))
        return found

    # -- rebuilding ----------------------------------------------------------------------------------

    def _record(self, workloads: list[Workload]) -> None:
        """Note marked pods; the first mark of a workload stands for all."""
        for workload in workloads:
            key = key_of(workload.obj)
            for pod in workload.pods:
                if key in self._faults or not is_fault(pod):
                    continue
                self._faults[key] = annotations_of(pod)[MARK]
                if self._faults[key].endswith(FAILED):
                    self._retries.setdefault(key, int(labels_of(pod)[RETRIES]))

    async def _reschedule(self, workload: Workload) -> None:
        key, kind = key_of(workload.obj), workload.instance.kind
        before = self._seen.get(uid_of(workload.obj), set())
        stays = {uid_of(pod) for pod in workload.pods if not is_terminating(pod)}
        reason = self._faults.get(key)
        failed = reason is not None and reason.endswith(FAILED)
        paid = not failed or self._retries.get(key, 0) > 0
        torn = workload.instance.gang and not before <= stays
        if (reason is not None and paid) or torn:
            await self._delete(kind, workload.obj)
            await self._end(workload)
            self._seen.pop(uid_of(workload.obj), None)
        else:
            self._seen[uid_of(workload.obj)] = stays
        if failed and paid:
            self._retries[key] -= 1
        self._faults.pop(key, None)

    async def _delete(self, kind: str, obj: Object) -> None:
        await self.api.delete(kind, name_of(obj), namespace_of(obj), uid=uid_of(obj))
        self.cache.forget(kind, obj)

    async def _end(self, workload: Workload) -> None:
        """The pods go with their workload; by force at once, or where they outlive their grace."""
        mode = labels_of(workload.obj).get(SCHEDULING, "")
        for pod in workload.pods:
            if mode == "external-force":
                await self.api.delete("Pod", name_of(pod), namespace_of(pod), uid=uid_of(pod), grace_s=0)
            elif mode == "external-grace":
                grace_s = number(pod, "spec", "terminationGracePeriodSeconds") or DEFAULT_GRACE_S
                self._forced[uid_of(pod)] = (key_of(pod), self.clock.monotonic() + grace_s)

    async def _force(self) -> float:
        now_s = self.clock.monotonic()
        for uid, (key, at_s) in list(self._forced.items()):
            pod = self.cache.get("Pod", *reversed(key))
            if pod is None or uid_of(pod) != uid:
                del self._forced[uid]
            elif now_s >= at_s:
                done = await self.attempt(
                    self.api.delete("Pod", *reversed(key), uid=uid, grace_s=0), what=key[1]
                )
                if done:
                    del self._forced[uid]
        waits = [at_s - now_s for _, at_s in self._forced.values()]
        return max(0.0, min(waits, default=self.period_s))

    async def _clean_nodes(self) -> None:
        """On the way from Ready to anything else, every pod of ours on the node is forced."""
        nodes = {name_of(node): node for node in self.cache.all("Node")}
        down = {name for name, node in nodes.items() if text(condition(node, "Ready"), "status") != "True"}
        self._lost &= down
        for name in sorted(down - self._lost):
            pods = [
                pod
                for pod in self.cache.all("Pod")
                if text(pod, "spec", "nodeName") == name and labels_of(pod).get(OPERATOR) == "true"
            ]
            done = [
                await self.attempt(
                    self.api.delete("Pod", name_of(pod), namespace_of(pod), uid=uid_of(pod), grace_s=0),
                    what=name_of(pod),
                )
                for pod in pods
            ]
            if all(done):
                self._lost.add(name)


def is_fault(pod: Object) -> bool:
    """The pod is marked, is not being deleted, and a failed program has a retry label that can be read."""
    status = annotations_of(pod).get(MARK, "")
    if not status.startswith(UNHEALTHY) or is_terminating(pod):
        return False
    retries = labels_of(pod).get(RETRIES, "")
    return not status.endswith(FAILED) or (is_integer(retries) and int(retries) >= 0)


__all__ = ["InferOperator", "InferOperatorSettings", "is_fault"]
