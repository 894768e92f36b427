"""The stage of a simulated history: the embedded cluster and one controller process after another.

Everything is in memory and on virtual time. A controller reaches the API server only through its `Door`; a
death shuts the door and stops its steps at the same moment, so that nothing that was under way arrives, no
clean-up included. What the judge, the digest and the diary need passes by here.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from mindie_ha.app import App, Edges
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.engine.records import DecisionRecord
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import make_log
from mindie_ha.model.settings import Settings
from mindie_ha.sim.actors.machines import a2_nodes
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.documents import Documents
from mindie_ha.sim.ms.links import LinkTarget
from mindie_ha.sim.ms.programs import MsPrograms
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.storage import Change, Kind
from mindie_ha.sim.world import World, WorldSettings
from tools.soak.links import MailboxLink, Server
from tools.soak.loops import PROCESS, Process
from tools.soak.mutations import Mutation
from tools.soak.rules import SoakJudge
from tools.soak.tenants import Service, Tenant

Object = dict[str, Any]
WALL_S = 1_800_000_000.0
WRITES = ("POST", "PUT", "PATCH", "DELETE")
QUESTIONS = (
    "/apis/authorization.k8s.io/",
    "/apis/authentication.k8s.io/",
)  # asked by POST, nothing is stored
START_S = 300.0  # for a controller to fill its caches, whatever the API server does meanwhile
DIARY_LINES = 400


class Digest:
    """A fingerprint of a history: what was stored, asked for and decided, in order and with times."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self.items = 0

    def add(self, *parts: object) -> None:
        """One thing that happened."""
        self.items += 1
        self._sum.update(orjson.dumps([str(part) for part in parts]))

    @property
    def text(self) -> str:
        """The fingerprint so far."""
        return self._sum.hexdigest()[:16]


@dataclass(slots=True)
class Door:
    """Between one controller and the API server. Shut, it lets nothing through in either direction."""

    server: ApiServer
    judge: SoakJudge
    digest: Digest
    who: str
    mutation: Mutation
    shut: bool = False

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Answer one request, or never."""
        if self.shut:
            await asyncio.get_running_loop().create_future()
        if "/leases" in request.path:  # no mutation is about who leads, and no judge counts renewals
            return await self.server.handle(request)
        changed = self.mutation.request(request)
        self.digest.add(self.server.core.clock.monotonic(), self.who, request.method, request.path)
        if request.method not in WRITES or request.path.startswith(QUESTIONS):
            return self.mutation.response(changed, await self.server.handle(changed))
        swallowed = self.mutation.swallow(changed, self.server)
        if swallowed is not None:
            return swallowed
        self.judge.sent(self.who, changed)
        self.judge.before(changed)
        response: ApiResponse | None = None
        try:
            response = await self.server.handle(changed)
        finally:
            self.judge.after(changed, response)
        return response


@dataclass(slots=True)
class Life:
    """One controller process."""

    process: Process
    door: Door
    app: App
    task: asyncio.Task[None]
    server: Server
    log: io.StringIO

    @property
    def dead(self) -> bool:
        """Whether it was stopped for good."""
        return self.door.shut

    def die(self) -> None:
        """Stop it here and now, in the middle of whatever it does."""
        self.door.shut = True
        self.process.disarm()
        self.process.freeze()
        self.server.die()

    async def bury(self) -> None:
        """Take away what is left of a dead one; nothing of that reaches the cluster."""
        self.task.cancel()
        self.process.thaw()
        with suppress(asyncio.CancelledError):
            await self.task

    def crashes(self) -> float:
        """How many of its tasks ended by a bug."""
        family = self.app.metrics.task_crashes.collect()
        return sum(sample.value for one in family for sample in one.samples if sample.name.endswith("_total"))


@dataclass(slots=True)
class Diary:
    """What happened, for people; the newest lines."""

    clock: LoopClock
    lines: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """One line with the time."""
        self.lines.append(f"{self.clock.monotonic():9.2f}  {text}")
        del self.lines[:-DIARY_LINES]


class Stage:
    """See the module. Made by `staged`."""

    def __init__(
        self,
        tenants: tuple[Tenant, ...],
        *,
        seed: int,
        nodes: int,
        replicas: int,
        world: WorldSettings,
        settings: Settings,
        mutation: Mutation,
        documents: Documents,
    ) -> None:
        self.tenants = tenants
        self.replicas = replicas
        self.settings = settings
        self.mutation = mutation
        self.clock = LoopClock(wall_origin_s=WALL_S)
        self.entropy = Entropy(seed)
        self.digest = Digest()
        self.diary = Diary(self.clock)
        self.server = ApiServer(clock=self.clock, entropy=self.entropy.child("api"), documents=documents)
        self.api = ApiClient(self.server)
        self.server.core.store.listen(self._stored)
        self.judge = SoakJudge(self.server)
        ms = MsSettings(serve_http=False)
        self.programs = MsPrograms(clock=self.clock, settings=ms, link_factory=self._link)
        self.world = World(
            api=self.api,
            clock=self.clock,
            entropy=self.entropy.child("world"),
            nodes=a2_nodes(nodes),
            settings=world,
            programs=self.programs,
        )
        self.node_names = tuple(model.name for model in self.world.nodes)
        self.lives: list[Life] = []

    # -- controllers --------------------------------------------------------------------------------

    @property
    def alive(self) -> list[Life]:
        """The controllers that run."""
        return [life for life in self.lives if not life.dead]

    @property
    def leader(self) -> Life | None:
        """The controller that leads by its own account."""
        return next((life for life in self.alive if life.app.started.is_set()), None)

    async def staff(self) -> None:
        """Run as many controllers as there are to be; returns when one leads, or all died."""
        while len(self.alive) < self.replicas:
            self.launch()
        ends_s = self.clock.monotonic() + START_S
        while self.leader is None and any(not life.task.done() for life in self.alive):
            if self.clock.monotonic() > ends_s:
                self.judge.wrong(9, f"no controller leads within {START_S:g} s")
                break
            await self.clock.sleep(0.1)

    def launch(self) -> Life:
        """Run another controller."""
        name = f"controller-{len(self.lives)}"
        process = Process(name)
        door = Door(self.server, self.judge, self.digest, name, self.mutation.another_life())
        log = io.StringIO()
        context = copy_context()
        context.run(PROCESS.set, process)
        edges = Edges(
            transport=ExchangeTransport(door),
            clock=self.clock,
            entropy=self.entropy.child(name),
            log=make_log(log, as_json=False, level="error"),
            serve=False,
            identity=name,
        )
        app = context.run(
            partial(App, planner=self.mutation.planner, fence_of=self.mutation.fence), self.settings, edges
        )
        task = asyncio.get_running_loop().create_task(app.run(), context=context, name=name)
        life = Life(process, door, app, task, Server(app.outlets), log)
        app.recorder.listeners.append(lambda record: self._decided(life, record))
        self.lives.append(life)
        self.diary.note(f"{name} starts")
        return life

    def serving(self) -> Server | None:
        """Who answers Controllers now."""
        ready = [life for life in self.alive if life.app.started.is_set() and not life.process.frozen]
        return ready[0].server if ready else None

    def _link(self, target: LinkTarget) -> MailboxLink:
        return MailboxLink(target, serving=self.serving, received=self.judge.received)

    def _decided(self, life: Life, record: DecisionRecord) -> None:
        if life.dead:
            return
        self.digest.add(record.at_s, record.subject, record.rule, record.sentence)
        self.diary.note(f"{record.subject}  {record.rule}: {record.sentence}")

    def _stored(self, kind: Kind, change: Change) -> None:
        self.digest.add(self.clock.monotonic(), *kind, change.type, *change.key, change.version)
        self.digest.add(orjson.dumps(change.now.obj))

    # -- the cluster --------------------------------------------------------------------------------

    async def apply(self, tenant: Tenant) -> None:
        """Create its jobs and what they need."""
        if self.get("Namespace", tenant.namespace, "") is None:
            await self.api.create("Namespace", {"metadata": {"name": tenant.namespace}})
        for obj in tenant.objects():
            await self.api.create(obj["kind"], obj)

    def get(self, kind: str, name: str, namespace: str) -> Object | None:
        """An object as stored now."""
        stored = self.server.core.store.get(by_kind(kind), namespace, name)
        return stored.obj if stored is not None else None

    def all(self, kind: str, namespace: str = "") -> list[Object]:
        """All objects of a kind as stored now."""
        resource = by_kind(kind)
        collection = self.server.core.store.collection((resource.group, resource.plural))
        return [stored.obj for _, stored in collection.iterate(namespace)]

    def pods(self, tenant: Tenant, job: str = "") -> list[Object]:
        """Its pods, or those of one of its jobs."""
        found = self.all("Pod", tenant.namespace)
        return [pod for pod in found if job in ("", owner_of(pod))]

    def ledger(self, tenant: Tenant, job: str) -> Object:
        """A workload ledger as stored; empty where there is none."""
        return self.judge.ledger_of(tenant.namespace, job)

    def table(self, service: Service) -> Object:
        """The service ledger as stored; generation 0 where there is none that can be read."""
        for config_map in self.all("ConfigMap", service.namespace):
            if config_map["metadata"]["name"].startswith("mindie-ha-service-"):
                with suppress(ValueError, KeyError):
                    ledger: Object = json.loads(config_map["data"]["ledger.json"])
                    if ledger["job_id"] == service.job_id:
                        return ledger
        return {"generation": 0, "ids": {}, "text": ""}


def owner_of(pod: Object) -> str:
    """The AscendJob of a pod."""
    owners: list[Object] = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))


@asynccontextmanager
async def staged(stage: Stage) -> AsyncIterator[Stage]:
    """The empty cluster, its nodes ready, for the time of the block."""
    tasks = [asyncio.create_task(stage.server.run()), asyncio.create_task(stage.world.run())]
    try:
        await stage.world.ready()
        yield stage
        for task in tasks:
            if task.done():
                task.result()  # a bug of the embedded cluster ends the run loudly
    finally:
        for life in stage.lives:
            if not life.dead:
                life.die()
            await life.bury()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


__all__ = ["Diary", "Digest", "Door", "Life", "Object", "Stage", "owner_of", "staged"]
