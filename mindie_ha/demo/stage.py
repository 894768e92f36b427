"""The stage: embedded cluster, MS programs, receivers, controller and observer in one process.

The controller reaches the API server through its own client and the in-memory link; the MS Controllers
reach the controller by real gRPC from their pods' own addresses, and the push target by real HTTP. Everything
but the network's time-outs runs on one clock, `speed` times faster than life.

Promise: whatever happens, leaving the stage ends every task and closes every socket. A part that ends by
itself ends the stage with a clear error; nothing waits without a bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mindie_ha.app import App, Edges
from mindie_ha.demo.journal import Journal
from mindie_ha.demo.links import AnsweringPods, ExchangeTransport
from mindie_ha.demo.observations import OUR_AGENT
from mindie_ha.demo.scenarios import Object, Scenario
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import OnEnd, Supervisor
from mindie_ha.model.errors import InputError, MindieHaError
from mindie_ha.model.settings import Settings
from mindie_ha.sim.actors.clusterds import ClusterdSettings
from mindie_ha.sim.actors.infer_operators import InferOperatorSettings
from mindie_ha.sim.actors.machines import NodeModel, a2_nodes, a3_nodes
from mindie_ha.sim.actors.reschedulers import ReschedulerSettings
from mindie_ha.sim.client import ApiClient, ApiError
from mindie_ha.sim.ms.programs import program_factory
from mindie_ha.sim.ms.receivers import PushReceiver
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.world import World, WorldSettings

if TYPE_CHECKING:
    from mindie_ha.kit.logs import Log

START_S = 30.0  # real seconds for the controller to listen
READY_S = 120.0  # of the cluster, for its nodes
ANY_PORT = "127.0.0.1:0"


class Stage:
    """Everything that runs. Made by `staged`; the actors of a play use these parts."""

    def __init__(self, scenario: Scenario, *, speed: float, log: Log, http_listen: str = ANY_PORT) -> None:
        self.scenario = scenario
        starts_at = scenario.cluster.starts_at
        self.clock = LoopClock(speed=speed, wall_origin_s=starts_at.timestamp() if starts_at else None)
        self._log = log
        self._http_listen = http_listen
        self._entropy = Entropy(scenario.cluster.seed)
        self.server = ApiServer(clock=self.clock, entropy=self._entropy.child("server"))
        self.api = ApiClient(self.server)
        self._endpoints = AnsweringPods()
        self.push = PushReceiver(clock=self.clock)
        self.supervisor = Supervisor(
            clock=self.clock, entropy=self._entropy.child("tasks"), log=log, metrics=Metrics()
        )
        self.app: App
        self.world: World
        self.journal: Journal

    async def open(self) -> None:
        """Start everything and wait until the empty cluster is ready. Raises MindieHaError."""
        await self.push.start()
        self.supervisor.start("api-server", self.server.run, on_end=OnEnd.FAIL)
        self.app = self._controller()
        self.supervisor.start("controller", self.app.run, on_end=OnEnd.FAIL)
        await self.unless_failed(self.app.started.wait(), within_s=START_S, what="the controller listens")
        programs = program_factory(
            MsSettings(
                cluster_port=self.app.grpc_port,
                serve_http=False,
                leads_first=self.scenario.cluster.leads_first,
                stale_links=self.scenario.cluster.stale_links,
            ),
            clock=self.clock,
        )
        self._endpoints.programs = programs
        self.world = World(
            api=self.api,
            clock=self.clock,
            entropy=self._entropy.child("world"),
            nodes=nodes_of(self.scenario.cluster.model, self.scenario.cluster.nodes),
            settings=replace(
                world_settings(
                    volcano_reschedules=self.scenario.cluster.volcano_reschedules,
                    infer_operator_reschedules=self.scenario.cluster.infer_operator_reschedules,
                ),
                clusterd=ClusterdSettings(lag_s=self.scenario.cluster.clusterd_lag_s),
            ),
            programs=programs,
        )
        self.journal = Journal(
            api=self.api, clock=self.clock, audit=self.server.audit, programs=programs, push=self.push
        )
        self.supervisor.start("observer", self.journal.run, on_end=OnEnd.FAIL)
        self.supervisor.start("world", self.world.run, on_end=OnEnd.FAIL)
        await self.unless_failed(
            self.world.ready(deadline_s=READY_S), within_s=START_S + READY_S, what="the cluster is ready"
        )

    async def close(self) -> None:
        """End everything, the controller first."""
        for name in ("controller", "world"):
            await self.supervisor.stop(name)
        await self.supervisor.close()
        await self.push.close()

    async def unless_failed(self, waiting: Any, *, within_s: float, what: str) -> None:
        """Await something; MindieHaError when a part of the stage fails, or after `within_s` real seconds."""
        body = asyncio.ensure_future(waiting)
        failed = asyncio.ensure_future(self.supervisor.failed.wait())
        try:
            done, _ = await asyncio.wait(
                {body, failed}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (body, failed):
                if not task.done():
                    task.cancel()
            await asyncio.gather(body, failed, return_exceptions=True)
        if body in done:
            try:
                body.result()
            except TimeoutError as error:
                raise MindieHaError(str(error)) from error
        elif failed in done:
            raise MindieHaError(f"a part of the demo failed before {what}: {self.supervisor.failure}")
        else:
            raise MindieHaError(f"waited {within_s:.0f} s in vain until {what}; try a smaller --speed")

    async def apply(self, objects: tuple[Object, ...], *, where: str) -> None:
        """Create objects; InputError names the one that the API server refuses."""
        for each in objects:
            await create(self.api, each, where=where)

    def _controller(self) -> App:
        edges = Edges(
            transport=ExchangeTransport(self.server, user_agent=OUR_AGENT),
            clock=self.clock,
            entropy=self._entropy.child("controller"),
            log=self._log,
            endpoints=self._endpoints,
        )
        return App(self._settings(), edges)

    def _settings(self) -> Settings:
        wanted = {
            key: dict(value) for key, value in self.scenario.settings.items() if isinstance(value, dict)
        }
        stage: dict[str, dict[str, object]] = {
            "grpc": {"listen": ANY_PORT},
            "http": {"listen": self._http_listen},
            "table": {"push_targets": (self.push.url,)},
        }
        for section, values in stage.items():
            wanted.setdefault(section, {}).update(values)
        try:
            return Settings.model_validate({**self.scenario.settings, **wanted})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise InputError(first["msg"], where=f"scenario {self.scenario.name}: settings.{place}") from None


@asynccontextmanager
async def staged(
    scenario: Scenario, *, speed: float, log: Log, http_listen: str = ANY_PORT
) -> AsyncIterator[Stage]:
    """A running stage; everything ends with the context."""
    stage = Stage(scenario, speed=speed, log=log, http_listen=http_listen)
    try:
        await stage.open()
        yield stage
    finally:
        await stage.close()


async def create(api: ApiClient, obj: Object, *, where: str) -> None:
    """Create one object. Raises InputError: which object, why the API server refused it."""
    kind, name = obj["kind"], obj["metadata"]["name"]
    try:
        await api.create(kind, obj)
    except KeyError:
        raise InputError(f"the embedded cluster serves no kind {kind}", where=f"{where}: {name}") from None
    except ApiError as error:
        raise InputError(str(error), where=f"{where}: {kind} {name}") from None


def world_settings(*, volcano_reschedules: bool, infer_operator_reschedules: bool = True) -> WorldSettings:
    """How the actors work; Volcano's rescheduler only where it is asked for."""
    return WorldSettings(
        rescheduler=ReschedulerSettings() if volcano_reschedules else None,
        infer_operator=InferOperatorSettings(reschedules=infer_operator_reschedules),
    )


def nodes_of(model: str, count: int) -> tuple[NodeModel, ...]:
    """The servers of a cluster: `a2`, or `a3` in super pods of four."""
    return a3_nodes(count) if model == "a3" else a2_nodes(count)


__all__ = ["ANY_PORT", "Stage", "create", "nodes_of", "staged", "world_settings"]
