"""The embedded cluster's machines and infrastructure, running against one API server.

`World` registers the nodes and the few objects that every cluster of the field has, then runs all actors in
one task group until it is cancelled. It reaches the API server only through `ApiClient`, so it also runs
against a real control plane. With the same seed and the same requests it repeats itself.

`set_faults`, `heal`, `delete_node`, `return_node` and `wait_for` are for scenarios and tests; kubectl can do
the same.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.addresses import AddressPool
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import KINDS, TRANSIENT, Cache
from mindie_ha.sim.actors.clusterds import DEVICES, NAMESPACE, Clusterd, ClusterdSettings
from mindie_ha.sim.actors.device_plugins import DevicePlugins, DevicePluginSettings
from mindie_ha.sim.actors.documents import annotations_of, condition, name_of, text, texts
from mindie_ha.sim.actors.faults import FAULTS
from mindie_ha.sim.actors.hot_resets import HotResets
from mindie_ha.sim.actors.infer_operators import InferOperator, InferOperatorSettings
from mindie_ha.sim.actors.kubelets import Kubelets, KubeletSettings
from mindie_ha.sim.actors.machines import NodeModel, a2_nodes, device_annotations, node_object
from mindie_ha.sim.actors.node_leases import NodeLeases
from mindie_ha.sim.actors.node_lifecycles import NodeLifecycle, NodeLifecycleSettings
from mindie_ha.sim.actors.nodeds import NodeDs, NodeDSettings
from mindie_ha.sim.actors.operators import AscendOperator
from mindie_ha.sim.actors.pod_sets import PodSets
from mindie_ha.sim.actors.programs import ProgramFactory
from mindie_ha.sim.actors.reschedulers import Rescheduler, ReschedulerSettings
from mindie_ha.sim.actors.schedulers import GangScheduler, SchedulerSettings
from mindie_ha.sim.actors.vcjobs import VolcanoJobs
from mindie_ha.sim.client import ApiClient, ApiError, Object

log = logging.getLogger(__name__)

NAMESPACES = ("default", "mindie", "mindx-dl", "kube-system", "volcano-system", "cluster-system")
START_ATTEMPTS = 20
START_GAP_S = 0.5


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """Timing of all actors."""

    kubelet: KubeletSettings = field(default_factory=KubeletSettings)
    device_plugin: DevicePluginSettings = field(default_factory=DevicePluginSettings)
    noded: NodeDSettings = field(default_factory=NodeDSettings)
    clusterd: ClusterdSettings = field(default_factory=ClusterdSettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    node_lifecycle: NodeLifecycleSettings = field(default_factory=NodeLifecycleSettings)
    rescheduler: ReschedulerSettings | None = None  # None: Volcano deletes nothing
    infer_operator: InferOperatorSettings = field(default_factory=InferOperatorSettings)
    pod_sets: bool = True
    """Run StatefulSets, Deployments and ReplicaSets; False where a control plane has its own controllers."""
    node_lease_s: float = 0.0
    """How often kubelets renew their Leases, for a control plane that looks at them; 0: never."""
    rest_s: float = 0.0
    """Every actor rests so long after each look, as a large cluster's do; many changes are then one look."""


class World:
    """Nodes and actors around one API server."""

    def __init__(
        self,
        *,
        api: ApiClient,
        clock: Clock,
        entropy: Entropy,
        nodes: tuple[NodeModel, ...] | None = None,
        settings: WorldSettings | None = None,
        programs: ProgramFactory | None = None,
    ) -> None:
        self.api = api
        self.clock = clock
        self.nodes = a2_nodes(10) if nodes is None else nodes
        self.cache = Cache(api=api, clock=clock, kinds=KINDS)
        self._actors = self._build(entropy, settings or WorldSettings(), programs)
        for actor in self._actors:
            actor.rest_s = settings.rest_s if settings else 0.0

    def _build(
        self, entropy: Entropy, settings: WorldSettings, programs: ProgramFactory | None
    ) -> tuple[Actor, ...]:
        api, cache, clock = self.api, self.cache, self.clock
        optional: list[Actor] = []
        if (tuned := settings.rescheduler) is not None:
            optional.append(Rescheduler(api=api, cache=cache, clock=clock, entropy=entropy, settings=tuned))
        if settings.pod_sets:
            optional.append(PodSets(api=api, cache=cache, clock=clock, entropy=entropy))
        if settings.node_lease_s:
            optional.append(
                NodeLeases(
                    api=api, cache=cache, clock=clock, entropy=entropy, models=self.nodes,
                    renew_s=settings.node_lease_s,
                )
            )  # fmt: skip
        return (
            Kubelets(
                api=api, cache=cache, clock=clock, entropy=entropy, models=self.nodes, programs=programs,
                addresses=AddressPool(entropy=entropy), settings=settings.kubelet,
            ),
            DevicePlugins(
                api=api, cache=cache, clock=clock, entropy=entropy, models=self.nodes,
                settings=settings.device_plugin,
            ),
            NodeDs(
                api=api, cache=cache, clock=clock, entropy=entropy, models=self.nodes, settings=settings.noded
            ),
            Clusterd(api=api, cache=cache, clock=clock, entropy=entropy, settings=settings.clusterd),
            NodeLifecycle(
                api=api, cache=cache, clock=clock, entropy=entropy, settings=settings.node_lifecycle
            ),
            GangScheduler(api=api, cache=cache, clock=clock, entropy=entropy, settings=settings.scheduler),
            AscendOperator(api=api, cache=cache, clock=clock, entropy=entropy),
            *optional,
            VolcanoJobs(api=api, cache=cache, clock=clock, entropy=entropy),
            HotResets(api=api, cache=cache, clock=clock, entropy=entropy),
            InferOperator(
                api=api, cache=cache, clock=clock, entropy=entropy, settings=settings.infer_operator
            ),
        )  # fmt: skip

    async def run(self) -> None:
        """Register everything and run the actors until cancelled; cancellation is awaited."""
        await self._register()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.cache.run(), name="sim-cache")
            for actor in self._actors:
                group.create_task(actor.run(), name=f"sim-{actor.name}")

    async def ready(self, *, deadline_s: float = 60.0) -> None:
        """Wait until all nodes are Ready and the scheduler's device list names them; TimeoutError if not."""
        await self.wait_for(self._is_ready, deadline_s=deadline_s, what="nodes Ready and listed")

    async def set_faults(self, node: str, faults: Sequence[Object]) -> None:
        """Replace the injected faults of a node, for example `[{"node": "NotReady"}]`."""
        await self._annotate(node, json.dumps(list(faults)) if faults else None)

    async def heal(self, node: str) -> None:
        """Take all injected faults of a node away."""
        await self._annotate(node, None)

    async def delete_node(self, node: str) -> None:
        """Take the Node object away, as `kubectl delete node` does."""
        await self.api.delete("Node", node)

    async def return_node(self, node: str) -> None:
        """Register the machine of this name again, healthy, as its kubelet does when it starts."""
        model = next(model for model in self.nodes if model.name == node)
        await self._ensure("Node", node_object(model))

    async def wait_for(
        self, predicate: Callable[[], bool], *, deadline_s: float, what: str = "condition"
    ) -> None:
        """Wait until `predicate` (usually over `self.cache`) holds; TimeoutError names `what`."""
        changes = self.cache.subscribe(KINDS)
        try:
            async with self.clock.timeout(deadline_s):
                while not predicate():
                    await changes.wait(self.clock, 1.0)
        except TimeoutError:
            raise TimeoutError(f"not within {deadline_s:g} s: {what}") from None
        finally:
            self.cache.unsubscribe(changes)

    async def _annotate(self, node: str, value: str | None) -> None:
        await self.api.patch("Node", node, "", {"metadata": {"annotations": {FAULTS: value}}})

    def _is_ready(self) -> bool:
        lists = [cm for cm in self.cache.all("ConfigMap", NAMESPACE) if name_of(cm).startswith(DEVICES)]
        listed = "".join(body for cm in lists for body in texts(cm, "data").values())
        for model in self.nodes:
            node = self.cache.get("Node", model.name)
            if node is None or text(condition(node, "Ready"), "status") != "True":
                return False
            if f'"mindx-dl-deviceinfo-{model.name}"' not in listed:
                return False
        return True

    async def _register(self) -> None:
        """Create what is missing; an API server that is still starting gets some time."""
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                await self._create_all()
            except TRANSIENT as error:
                if attempt == START_ATTEMPTS:
                    raise
                log.info("the API server does not take the cluster's objects yet: %s", error)
                await self.clock.sleep(START_GAP_S)
            else:
                return

    async def _create_all(self) -> None:
        for name in NAMESPACES:
            await self._ensure("Namespace", {"metadata": {"name": name}})
        await self._ensure("Queue", {"metadata": {"name": "default"}, "spec": {"weight": 1}})
        await self._ensure_clusterd_service()
        for model in self.nodes:
            await self._ensure("Node", node_object(model))
            node = await self.api.get("Node", model.name) or {}
            if any(
                annotations_of(node).get(key) != value for key, value in device_annotations(model).items()
            ):
                body = {"metadata": {"annotations": device_annotations(model)}}
                await self.api.patch("Node", model.name, "", body)

    async def _ensure_clusterd_service(self) -> None:
        spec: Object = {
            "clusterIP": "127.0.0.1",
            "ports": [{"name": "grpc", "port": 8899, "protocol": "TCP"}],
        }
        meta = {"name": "clusterd-grpc-svc", "namespace": "mindx-dl"}
        try:
            await self._ensure("Service", {"metadata": meta, "spec": spec})
        except ApiError as error:
            if error.status != 422:
                raise
            # A real control plane takes only addresses of its service range; it then chooses one itself.
            await self._ensure("Service", {"metadata": meta, "spec": {"ports": spec["ports"]}})

    async def _ensure(self, kind: str, body: Object) -> None:
        try:
            await self.api.create(kind, body)
        except ApiError as error:
            if error.status != 409:
                raise


__all__ = ["NAMESPACES", "World", "WorldSettings"]
