"""The kubelets of all simulated nodes.

Each pod that is bound to one of our nodes gets a `PodRun`; every reconcile moves all of them on, writes the
statuses that changed, and confirms the deletion of pods whose containers have stopped. On a lost node
(`NotReady`) nothing happens: no status, no start, no confirmation, and its programs are cut off; when the
node comes back they start again and pending deletions are confirmed.

Programs run as tasks of this actor; a pod is confirmed gone, or its program started anew, only when the
cancelled one has ended.
Exec probes are answered here, without any command being run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.addresses import AddressPool
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import TRANSIENT, Cache
from mindie_ha.sim.actors.documents import (
    annotations_of,
    condition,
    dig,
    is_finished,
    items,
    labels_of,
    name_of,
    namespace_of,
    phase_of,
    text,
    uid_of,
    with_condition,
)
from mindie_ha.sim.actors.machines import NodeModel, node_capacity
from mindie_ha.sim.actors.node_lifecycles import is_frozen
from mindie_ha.sim.actors.pod_runs import EXIT, Act, PodRun, State, advance, injected_exit, status_of
from mindie_ha.sim.actors.pod_sandboxes import (
    Lookup,
    missing_volumes,
    read_volumes,
    resolve_env,
    volume_files,
    volume_sources,
)
from mindie_ha.sim.actors.programs import PodSandbox, Program, ProgramError, ProgramFactory
from mindie_ha.sim.client import ApiClient, Object

log = logging.getLogger(__name__)
STOP_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """How long things take on a node; ranges are drawn anew for each pod."""

    start_s: tuple[float, float] = (0.2, 1.0)
    """From the binding to running containers (image, mounts)."""
    ready_s: tuple[float, float] = (2.0, 4.0)
    """From running to ready, for containers with a readinessProbe and no program."""
    stop_s: tuple[float, float] = (0.5, 1.5)
    """What a container needs to stop; cut off by the grace period."""
    heartbeat_s: float = 300.0
    """The node status is written again after this, as real kubelets do."""


class Kubelets(Actor):
    """All nodes' kubelets in one actor."""

    name = "kubelet"
    kinds = ("Pod", "Node", "ConfigMap")

    def __init__(
        self,
        *,
        api: ApiClient,
        cache: Cache,
        clock: Clock,
        entropy: Entropy,
        models: tuple[NodeModel, ...],
        addresses: AddressPool,
        programs: ProgramFactory | None = None,
        settings: KubeletSettings | None = None,
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._models = {model.name: model for model in models}
        self._addresses = addresses
        self._programs = programs
        self._settings = settings or KubeletSettings()
        self._runs: dict[str, PodRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asked: set[str] = set()  # pods whose present container start was offered to the programs
        self._unmounted: set[str] = set()  # pods whose missing volume was told
        self._resting: dict[str, Object] = {}  # running pods as they were when nothing was left to do
        self._ending: dict[str, tuple[asyncio.Task[None], float]] = {}
        self._node_ips: dict[str, str] = {}
        self._beats: dict[str, float] = {}

    async def run(self) -> None:
        """Reconcile until cancelled; programs end with it."""
        async with asyncio.TaskGroup() as self._group:
            await super().run()

    async def reconcile(self) -> float:
        """Nodes first, then every pod on them."""
        nodes = {name: node for name in self._models if (node := self.cache.get("Node", name)) is not None}
        frozen = {name for name, node in nodes.items() if is_frozen(node)}
        await self.attempt_all(
            (name, self._report_node(self._models[name], node))
            for name, node in nodes.items()
            if name not in frozen
        )
        mine = [pod for pod in self.cache.all("Pod") if text(pod, "spec", "nodeName") in nodes]
        self._drop_gone({uid_of(pod) for pod in mine})
        for pod in mine:
            if text(pod, "spec", "nodeName") in frozen:
                self._stop(uid_of(pod))
        live = [pod for pod in mine if text(pod, "spec", "nodeName") not in frozen]
        await self.attempt_all((name_of(pod), self._sync(pod)) for pod in live if not self._rests(pod))
        waits = [self._runs[uid].wait_s for pod in live if (uid := uid_of(pod)) in self._runs]
        return min([self.period_s, *waits])

    async def _report_node(self, model: NodeModel, node: Object) -> None:
        now = self.clock.monotonic()
        ready = text(condition(node, "Ready"), "status") == "True"
        if ready and model.name in self._beats and now < self._beats[model.name] + self._settings.heartbeat_s:
            return
        conditions = items(node, "status", "conditions")
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
            conditions = with_condition(conditions, {"type": kind, "status": "False"}, self.now())
        new = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": self.now()}
        conditions = with_condition(conditions, new, self.now())
        capacity, allocatable = node_capacity(model)
        status: Object = {
            "conditions": conditions,
            "capacity": capacity,
            "allocatable": allocatable,
            "addresses": [
                {"type": "InternalIP", "address": self._host_ip(node)},
                {"type": "Hostname", "address": model.name},
            ],
            "nodeInfo": {
                "architecture": "arm64", "operatingSystem": "linux", "kubeletVersion": "v1.31.0-sim",
                "kubeProxyVersion": "v1.31.0-sim", "containerRuntimeVersion": "sim://1",
                "osImage": "simulated", "kernelVersion": "", "machineID": "", "systemUUID": "", "bootID": "",
            },
        }  # fmt: skip
        await self.patch_status("Node", node, status)
        self._beats[model.name] = now

    def _host_ip(self, node: Object) -> str:
        name = name_of(node)
        if name not in self._node_ips:
            known = next((text(a, "address") for a in items(node, "status", "addresses")), "")
            if known:
                self._addresses.reserve(known)
            self._node_ips[name] = known or self._addresses.allocate()
        return self._node_ips[name]

    def _rests(self, pod: Object) -> bool:
        """Nothing to do and nothing to show: as at the last look, whose status stands."""
        run = self._runs.get(uid_of(pod))
        if run is None or self._resting.get(uid_of(pod)) is not pod:
            return False
        return run.exit_code is None and run.wait_s == float("inf") and run.program_ready == run.shown_ready

    def _drop_gone(self, alive: set[str]) -> None:
        for uid in [uid for uid in self._runs if uid not in alive]:
            self._stop(uid)
            self._unmounted.discard(uid)
            self._addresses.release(self._runs.pop(uid).ip)

    async def _sync(self, pod: Object) -> None:
        """Move one pod on, and show it."""
        run = self._run_of(pod)
        if run is None:
            return
        uid = uid_of(pod)
        missing = missing_volumes(pod, self._lookup(pod))
        if missing and uid not in self._unmounted:
            self._unmounted.add(uid)
            message = f'MountVolume.SetUp failed: configmap "{missing[0]}" not found'
            await self.event("Pod", pod, reason="FailedMount", message=message)
        if not self._has_ended(uid):
            # The next program may need the same address, and a pod is gone only when its process is.
            run.wait_s = STOP_DEADLINE_S
            return
        act = advance(run, pod, now_s=self.clock.monotonic(), wall_s=self.clock.wall(), mounted=not missing)
        if act is Act.CONFIRM:
            await self.api.delete("Pod", name_of(pod), namespace_of(pod), grace_s=0, uid=uid)
            run.confirmed = True
            return
        if act is Act.STOP:
            self._stop(uid)
        elif run.state is State.RUNNING and uid not in self._asked and run.stop_at_s is None:
            self._start_program(pod, run)
        await self._show(pod, run)

    async def _show(self, pod: Object, run: PodRun) -> None:
        host_ip = self._host_ip(self.cache.get("Node", text(pod, "spec", "nodeName")) or {})
        status = status_of(run, pod, host_ip=host_ip, now_s=self.clock.monotonic(), wall_s=self.clock.wall())
        if any(dig(pod, "status", key) != value for key, value in status.items()):
            await self.patch_status("Pod", pod, status)
        elif run.state is State.RUNNING and uid_of(pod) in self._asked:
            run.shown_ready = run.program_ready
            self._resting[uid_of(pod)] = pod
        if injected_exit(pod)[1] is not None and run.state is State.WAITING:
            await self.patch("Pod", pod, {"metadata": {"annotations": {EXIT: None}}})

    def _run_of(self, pod: Object) -> PodRun | None:
        """The pod's run; a pod that was running before this kubelet came is taken over as it is."""
        uid = uid_of(pod)
        if uid in self._runs:
            return self._runs[uid]
        finished = is_finished(pod)
        if finished and dig(pod, "metadata", "deletionTimestamp") is None:
            return None
        now = self.clock.monotonic()
        known_ip = text(pod, "status", "podIP")
        if known_ip:
            self._addresses.reserve(known_ip)
        run = PodRun(
            ip=known_ip or self._addresses.allocate(),
            start_at_s=now + self.entropy.uniform(*self._settings.start_s),
            ready_delay_s=self.entropy.uniform(*self._settings.ready_s),
            stop_delay_s=self.entropy.uniform(*self._settings.stop_s),
        )
        if finished:
            run.state = State.EXITED
        elif phase_of(pod) == "Running" and known_ip:
            run.state, run.started_wall_s = State.RUNNING, self.clock.wall()
            run.ready_at_s = (
                now if text(condition(pod, "Ready"), "status") == "True" else now + run.ready_delay_s
            )
        self._runs[uid] = run
        return run

    def _lookup(self, pod: Object) -> Lookup:
        namespace = namespace_of(pod)
        return lambda name: self.cache.get("ConfigMap", name, namespace)

    def _start_program(self, pod: Object, run: PodRun) -> None:
        self._asked.add(uid_of(pod))
        if self._programs is None:
            return
        program = self._programs(self._sandbox(pod, run))
        run.has_program = program is not None
        if program is not None:
            task = self._group.create_task(self._execute(program, run), name=f"sim-program-{name_of(pod)}")
            self._tasks[uid_of(pod)] = task

    async def _execute(self, program: Program, run: PodRun) -> None:
        try:
            run.exit_code = await program.run()
        except (ProgramError, *TRANSIENT) as error:
            log.warning("the program at %s failed: %s", run.ip, error)
            run.exit_code = 1
        self.wakeup.set()

    def _sandbox(self, pod: Object, run: PodRun) -> PodSandbox:
        lookup = self._lookup(pod)
        host_ip = self._host_ip(self.cache.get("Node", text(pod, "spec", "nodeName")) or {})
        sources = volume_sources(pod)

        def set_ready(ready: bool) -> None:
            run.program_ready = ready
            self.wakeup.set()

        async def annotate(notes: Mapping[str, str | None]) -> None:
            await self.patch("Pod", pod, {"metadata": {"annotations": dict(notes)}})

        return PodSandbox(
            namespace=namespace_of(pod),
            name=name_of(pod),
            uid=uid_of(pod),
            ip=run.ip,
            host_ip=host_ip,
            node=text(pod, "spec", "nodeName"),
            labels=labels_of(pod),
            annotations=annotations_of(pod),
            env=resolve_env(pod, lookup, pod_ip=run.ip, host_ip=host_ip),
            volumes=read_volumes(pod, lookup),
            set_ready=set_ready,
            annotate=annotate,
            read_volume=lambda name: volume_files(sources[name], lookup) if name in sources else {},
        )

    def _stop(self, uid: str) -> None:
        """Cancel the pod's program; `_has_ended` tells when it is over."""
        self._asked.discard(uid)
        self._resting.pop(uid, None)
        task = self._tasks.pop(uid, None)
        if task is not None and not task.done():
            task.cancel()
            task.add_done_callback(lambda _: self.wakeup.set())
            self._ending[uid] = (task, self.clock.monotonic() + STOP_DEADLINE_S)

    def _has_ended(self, uid: str) -> bool:
        """No program of this pod is running or stopping; one that does not stop in time is left behind."""
        task, deadline_s = self._ending.get(uid, (None, 0.0))
        if task is None:
            return True
        if not task.done() and self.clock.monotonic() < deadline_s:
            return False
        if not task.done():
            log.warning("%s did not stop within %s s; it is left behind", task.get_name(), STOP_DEADLINE_S)
        del self._ending[uid]
        return True


__all__ = ["KubeletSettings", "Kubelets"]
