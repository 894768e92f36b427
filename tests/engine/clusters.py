"""A whole cluster in memory with the controller beside it, on virtual time: the stage of every test here.

`cluster()` brings up the embedded API server, its actors and one service; `start` runs the controller as
`mindie-ha run` would, without sockets. The judge watches all the while and has the last word. `kill` ends
the controller as a crash does: what is under way never arrives.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mindie_ha.app import App, Edges
from mindie_ha.demo import manifests
from mindie_ha.demo.links import AnsweringPods, ExchangeTransport
from mindie_ha.engine.reconciling import Planner
from mindie_ha.engine.records import DecisionRecord
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import make_log
from mindie_ha.model.settings import GrpcSettings, HttpSettings, PhaseSettings, Settings, TableSettings
from mindie_ha.model.workloads import ROLES_BY_APP, Role
from mindie_ha.policy.planner import plan
from mindie_ha.sim.actors.clusterds import ClusterdSettings
from mindie_ha.sim.actors.infer_operators import InferOperatorSettings
from mindie_ha.sim.actors.machines import NodeModel, a2_nodes
from mindie_ha.sim.actors.reschedulers import ReschedulerSettings
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.documents import Documents
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.world import World, WorldSettings
from tools.soak.judges import TAINT, Judge

from .doors import Door
from .ms_pods import programs_of

Object = dict[str, Any]
NAMESPACE = "mindie"
CHIP = {"device": "Ascend910-2", "code": "80E18005", "level": "SeparateNPU"}
NOT_READY = {"node": "NotReady"}
SMALL = ("p0", "d0")  # the instances of the smallest service that serves
_DOCUMENTS: list[Documents] = []


@dataclass(slots=True)
class Run:
    """One life of the controller."""

    app: App
    door: Door
    task: asyncio.Task[None]
    log: io.StringIO
    records: list[DecisionRecord] = field(default_factory=list)


class Cluster:
    """See the module."""

    def __init__(
        self,
        *,
        nodes: tuple[NodeModel, ...],
        seed: int,
        lag_s: tuple[float, float],
        speed: float,
        serve: bool,
        volcano_reschedules: bool = False,
        rest_s: float = 0.0,
        ms: MsSettings | None = None,
        infer_operator: InferOperatorSettings | None = None,
    ) -> None:
        if not _DOCUMENTS:
            _DOCUMENTS.append(Documents())  # read once: the descriptions of all kinds never change
        self.serve = serve
        self.clock = LoopClock(wall_origin_s=1_800_000_000, speed=speed)
        self.entropy = Entropy(seed)
        self.server = ApiServer(clock=self.clock, entropy=self.entropy.child("api"), documents=_DOCUMENTS[0])
        self.api = ApiClient(self.server)
        self.programs = programs_of(self, ms) if ms is not None else None
        self.endpoints = AnsweringPods()
        self.endpoints.programs = self.programs
        self.world = World(
            programs=self.programs,
            api=self.api,
            clock=self.clock,
            entropy=self.entropy.child("world"),
            nodes=nodes,
            settings=WorldSettings(
                clusterd=ClusterdSettings(lag_s=lag_s),
                rescheduler=ReschedulerSettings() if volcano_reschedules else None,
                rest_s=rest_s,
                infer_operator=infer_operator or InferOperatorSettings(),
            ),
        )
        self.judge = Judge(self.server)
        self.runs: list[Run] = []
        self.planner: Planner = plan
        self.roles: Mapping[str, Role] = ROLES_BY_APP

    # -- the controller -----------------------------------------------------------------------------

    @property
    def app(self) -> App:
        """The controller that runs now, or ran last."""
        return self.runs[-1].app

    @property
    def records(self) -> list[DecisionRecord]:
        """What the controllers decided, all lives together."""
        return [record for run in self.runs for record in run.records]

    async def start(
        self,
        settings: Settings | None = None,
        *,
        cut_before: int = 0,
        cut_after: int = 0,
        behind_s: float = 0.0,
    ) -> Run:
        """Run a controller; the cuts are those of `Door`. `behind_s`: so late is the clock of its machine."""
        door = Door(self.server, self.judge, cut_before=cut_before, cut_after=cut_after)
        run = self._run(settings, door, behind_s=behind_s)
        await self._waited(run, run.app.started)
        return run

    async def stand_by(self, settings: Settings | None = None) -> Run:
        """Run a controller beside the one that leads; `app` is the newest, `runs` has both."""
        run = self._run(settings, Door(self.server, self.judge))
        await self._waited(run, run.app.ready)
        return run

    def _run(self, settings: Settings | None, door: Door, *, behind_s: float = 0.0) -> Run:
        log = io.StringIO()
        clock = LoopClock(wall_origin_s=self.clock.wall() - behind_s) if behind_s else self.clock
        app = App(
            settings or Settings(),
            Edges(
                transport=ExchangeTransport(door),
                clock=clock,
                entropy=self.entropy.child(f"app-{len(self.runs)}"),
                log=make_log(log, as_json=True),
                serve=self.serve,
                endpoints=self.endpoints if self.programs is not None else None,
            ),
            planner=self.planner,
            roles=self.roles,
        )
        run = Run(app, door, asyncio.create_task(app.run()), log)
        app.recorder.listeners.append(run.records.append)
        self.runs.append(run)
        return run

    async def _waited(self, run: Run, event: asyncio.Event) -> None:
        waiting = asyncio.ensure_future(event.wait())
        await asyncio.wait((waiting, run.task), timeout=60, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def kill(self, run: Run | None = None, *, at_once: bool = True) -> None:
        """End the controller at once: nothing that is under way arrives any more.

        `at_once`: whoever is started next need not wait until the dead one's Lease has run out.
        """
        run = run or self.runs[-1]
        run.door.shut.set()
        run.task.cancel()
        with suppress(asyncio.CancelledError):
            await run.task
        run.app.outlets.mailboxes.close()  # its connections end with the process
        if at_once and self.get("Lease", "mindie-ha", "mindx-dl") is not None:
            await self.api.delete("Lease", "mindie-ha", "mindx-dl")

    def crashes(self) -> float:
        """How many tasks of the controllers ended by a bug."""
        return sum(metric(run.app, "mindie_ha_task_crashes_total") for run in self.runs)

    # -- what is done to the cluster ----------------------------------------------------------------

    async def apply(self, objects: Iterable[Object]) -> None:
        """Create objects."""
        for obj in objects:
            await self.api.create(obj["kind"], obj)

    async def delete_pod(self, name: str, *, grace_s: int = 0) -> None:
        """As a person would."""
        await self.api.delete("Pod", name, NAMESPACE, grace_s=grace_s)

    async def exit_container(self, pod: str, code: int = 1) -> None:
        """Let a pod's container end."""
        note = {"sim.mindie-ha.io/exit": json.dumps({"code": code})}
        await self.api.patch("Pod", pod, NAMESPACE, {"metadata": {"annotations": note}})

    async def label_job(self, job: str, **labels: str | None) -> None:
        """Change labels of an AscendJob; `_` stands for `-`."""
        changed = {name.replace("_", "-"): value for name, value in labels.items()}
        await self.api.patch("AscendJob", job, NAMESPACE, {"metadata": {"labels": changed}})

    async def untaint(self, node: str) -> None:
        """Take our taint off, as a person would."""
        found = self.get("Node", node, "")
        assert found is not None
        kept = [one for one in found["spec"].get("taints", ()) if one["key"] != TAINT]
        await self.api.patch("Node", node, "", {"spec": {"taints": kept or None}})

    async def fail_job(self, job: str) -> None:
        """Let the operator's verdict stand: the AscendJob is Failed for good."""
        condition = {"type": "Failed", "status": "True", "reason": "JobFailed", "message": "gave up"}
        body = {"status": {"conditions": [condition]}}
        await self.api.patch("AscendJob", job, NAMESPACE, body, subresource="status")

    async def scale(self, job: str, *, workers: int) -> None:
        """Change the number of workers of an AscendJob, and what its gang needs."""
        spec = {
            "replicaSpecs": {"Worker": {"replicas": workers}},
            "runPolicy": {"schedulingPolicy": {"minAvailable": workers + 1}},
        }
        await self.api.patch("AscendJob", job, NAMESPACE, {"spec": spec})

    # -- what can be read ---------------------------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str = NAMESPACE) -> Object | None:
        """An object as stored now."""
        stored = self.server.core.store.get(by_kind(kind), namespace, name)
        return stored.obj if stored is not None else None

    def all(self, kind: str, namespace: str = NAMESPACE) -> list[Object]:
        """All objects of a kind as stored now."""
        resource = by_kind(kind)
        collection = self.server.core.store.collection((resource.group, resource.plural))
        return [stored.obj for _, stored in collection.iterate(namespace)]

    def pods(self, job: str = "", *, namespace: str = NAMESPACE) -> dict[str, Object]:
        """Pods by name; only those of an AscendJob if given."""
        found = {pod["metadata"]["name"]: pod for pod in self.all("Pod", namespace)}
        return {name: pod for name, pod in found.items() if _owner(pod) == job or not job}

    def uids(self, job: str = "", *, namespace: str = NAMESPACE) -> dict[str, str]:
        """UIDs of pods by name."""
        found = self.pods(job, namespace=namespace)
        return {name: pod["metadata"]["uid"] for name, pod in found.items()}

    def node_of(self, pod: str) -> str:
        """Where a pod runs."""
        return str(self.pods()[pod]["spec"].get("nodeName", ""))

    def ledger(self, job: str, *, namespace: str = NAMESPACE) -> Object:
        """The workload ledger as stored; empty where there is none."""
        found: Object = self.judge.ledger_of(namespace, job)
        return found

    def table(self, job_id: str = "mindie-ms", *, namespace: str = NAMESPACE) -> Object:
        """The service ledger as stored; generation 0 where there is none that can be read."""
        for config_map in self.all("ConfigMap", namespace):
            if config_map["metadata"]["name"].startswith("mindie-ha-service-"):
                with suppress(ValueError, KeyError):
                    ledger: Object = json.loads(config_map["data"]["ledger.json"])
                    if ledger["job_id"] == job_id:
                        return ledger
        return {"generation": 0, "ids": {}, "text": ""}

    def published(self, job_id: str = "mindie-ms", *, namespace: str = NAMESPACE) -> set[str]:
        """The AscendJobs whose instances the published table holds."""
        ledger = self.table(job_id, namespace=namespace)
        groups = json.loads(ledger["text"])["server_group_list"] if ledger["text"] else []
        names = {str(number): name for name, number in ledger["ids"].items()}
        return {names[group["group_id"]] for group in groups if int(group["group_id"]) >= 2}

    def published_ips(self) -> set[str]:
        """The addresses of all server pods in the published table."""
        groups = json.loads(self.table()["text"])["server_group_list"]
        servers = [group for group in groups if int(group["group_id"]) >= 2]
        return {server["server_ip"] for group in servers for server in group["server_list"]}

    def podgroup(self, job: str) -> str:
        """The name of an AscendJob's PodGroup."""
        found = self.get("AscendJob", job)
        assert found is not None
        return f"{job}-{found['metadata']['uid']}"

    def is_failed(self, job: str) -> bool:
        """Whether the operator gave an AscendJob up."""
        found = self.get("AscendJob", job) or {}
        conditions = found.get("status", {}).get("conditions", ())
        return any(one["type"] == "Failed" and one["status"] == "True" for one in conditions)

    def taints(self, node: str) -> set[str]:
        """Keys of a node's taints."""
        found = self.get("Node", node, "")
        assert found is not None
        return {taint["key"] for taint in found["spec"].get("taints") or ()}

    def events(self, reason: str = "") -> list[Object]:
        """Kubernetes Events that the controller created."""
        ours = [event for event in self.all("Event", "") if event["source"]["component"] == "mindie-ha"]
        return [event for event in ours if reason in ("", event["reason"])]

    def log(self) -> str:
        """Everything that the controllers logged."""
        return "".join(run.log.getvalue() for run in self.runs)

    def state(self, job: str) -> str:
        """The state of a workload as `status` shows it."""
        for report in self.app.reports():
            for workload in report.workloads:
                if workload.name == job:
                    return workload.state
        return "unknown"

    # -- waiting ------------------------------------------------------------------------------------

    async def until(
        self, holds: Callable[[], object], what: str, *, deadline_s: float = 120.0, every_s: float = 0.1
    ) -> None:
        """Wait on virtual time."""
        ends_s = self.clock.monotonic() + deadline_s
        while not holds():
            if self.clock.monotonic() > ends_s:
                raise AssertionError(f"not within {deadline_s:g} s: {what}\n{self.story()}")
            await self.clock.sleep(every_s)

    async def serving(self, jobs: Iterable[str] = SMALL) -> None:
        """Wait until every pod is Ready and the table holds exactly these instances."""
        names = {f"mindie-server-{job}" for job in jobs}
        await self.until(lambda: all(map(self._is_up, self.pods().values())), "every pod Ready")
        await self.until(lambda: self.published() == names, f"table with {sorted(names)}")

    async def recovered(self, job: str, *, closed: int = 1, deadline_s: float = 200.0) -> Object:
        """Wait until so many recoveries of an instance have closed; the newest one's record."""

        def done() -> bool:
            ledger = self.ledger(job)
            return bool(ledger) and ledger["recovery"] is None and len(ledger["closed"]) >= closed

        await self.until(done, f"{closed} recoveries of {job}", deadline_s=deadline_s)
        record: Object = self.ledger(job)["closed"][-1]
        return record

    async def quiet(self, *, for_s: float = 60.0, within_s: float = 60.0) -> None:
        """Give the controller `within_s` to finish what it began; then it may not write for `for_s`."""
        await self.clock.sleep(within_s)
        count = len(self.judge.writes)
        await self.clock.sleep(for_s)
        late = self.judge.writes[count:]
        assert not late, [(write.method, write.path, write.body) for write in late]

    def _is_up(self, pod: Object) -> bool:
        """Ready, or a Coordinator that may stand by beside the one that leads."""
        leads = self.programs is not None and f"{NAMESPACE}/{_owner(pod)}" in self.programs.leaders()
        return _ready(pod) or (leads and "coordinator" in _owner(pod))

    def active(self, job: str) -> list[str]:
        """The pods of an MS job that the status calls active."""
        found = [each for report in self.app.reports() for each in report.workloads if each.name == job]
        return [pod.name for each in found for pod in each.pods if pod.ms_state == "active"]

    def story(self) -> str:
        """What was decided, for people who read a failure."""
        return "\n".join(
            f"{record.at_s - 1_800_000_000:8.2f} {record.subject:30} {record.rule:12} {record.sentence}"
            for record in self.records[-40:]
        )


@asynccontextmanager
async def cluster(
    *,
    servers: Iterable[str] = SMALL,
    nodes: int | tuple[NodeModel, ...] = 6,
    seed: int = 1,
    lag_s: tuple[float, float] = (0.0, 5.0),
    settings: Settings | None = None,
    start: bool = True,
    speed: float = 1.0,
    serve: bool = False,
    service: Iterable[Object] | None = None,
    volcano_reschedules: bool = False,
    rest_s: float = 0.0,
    ms: MsSettings | None = None,
    infer_operator: InferOperatorSettings | None = None,
) -> AsyncIterator[Cluster]:
    """A cluster with one service that serves, and (unless `start` is False) the controller on it.

    `ms`: Controllers and Coordinators run their programs, which elect, subscribe and answer in memory.

    `serve`: with its sockets; then on a real loop, with a clock that is `speed` times as fast.
    """
    machines = a2_nodes(nodes) if isinstance(nodes, int) else nodes
    made = Cluster(
        nodes=machines,
        seed=seed,
        lag_s=lag_s,
        speed=speed,
        serve=serve,
        volcano_reschedules=volcano_reschedules,
        rest_s=rest_s,
        ms=ms,
        infer_operator=infer_operator,
    )
    tasks = [asyncio.create_task(made.server.run()), asyncio.create_task(made.world.run())]
    try:
        await made.world.ready()
        await made.apply(small_service(servers) if service is None else service)
        if start:
            await made.start(settings)
            await made.serving(servers)
        yield made
        assert made.crashes() == 0, made.log()
        made.judge.verdict()
    finally:
        for run in made.runs:
            run.task.cancel()
        await asyncio.gather(*(run.task for run in made.runs), return_exceptions=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def small_service(
    servers: Iterable[str] = SMALL, *, namespace: str = NAMESPACE, job_id: str = "mindie-ms"
) -> list[Object]:
    """The A2 service with only these instances."""
    wanted = {f"mindie-server-{name}" for name in servers}
    found = []
    for obj in manifests.load("pd-a2"):
        name = obj["metadata"]["name"].removeprefix("rings-config-")
        if name.startswith("mindie-server-") and name not in wanted:
            continue
        text = json.dumps(obj).replace('"jobID": "mindie-ms"', f'"jobID": "{job_id}"')
        moved = json.loads(text.replace('"namespace": "mindie"', f'"namespace": "{namespace}"'))
        found.append(moved)
    return found


def quick(**phases: float) -> Settings:
    """Settings whose recoveries settle in 5 s."""
    return Settings(phases=PhaseSettings(**{"settle_s": 5.0, **phases}))


def listening(*, push_targets: tuple[str, ...] = ()) -> Settings:
    """Quick settings for a controller that serves on free ports of this machine."""
    return quick().model_copy(
        update={
            "http": HttpSettings(listen="127.0.0.1:0"),
            "grpc": GrpcSettings(listen="127.0.0.1:0"),
            "table": TableSettings(push_targets=push_targets),
        }
    )


def metric(app: App, name: str, **labels: str) -> float:
    """The sum of a metric's samples with these labels."""
    found = 0.0
    for family in app.metrics.factory.registry.collect():
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                found += sample.value
    return found


def _owner(pod: Object) -> str:
    owners: list[Object] = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))


def _ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
