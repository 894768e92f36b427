"""Wiring and life cycle: who gets what, what starts, in which order it stops.

Start: caches first, because half a picture looks like missing pods; then the servers, because a table that
is asked for before the caches are filled would look like a foreign job; then the engine. Stop: the engine
(nothing new is decided), the servers (streams end cleanly), deliveries, caches, connections.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
from aiohttp import web

from mindie_ha.channels.http_push import open_session
from mindie_ha.cluster.client import Client
from mindie_ha.cluster.connections import connect
from mindie_ha.cluster.events import About, Events
from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.mirrors import Mirror
from mindie_ha.cluster.problems import Problem
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.transports import Transport
from mindie_ha.cluster.writer import Writer
from mindie_ha.engine.events import about_of, for_event
from mindie_ha.engine.executor import Executor
from mindie_ha.engine.isolation_desk import IsolationDesk
from mindie_ha.engine.marks import Marks
from mindie_ha.engine.node_ledgers import NodeLedgers
from mindie_ha.engine.outlets import Outlets
from mindie_ha.engine.pause_desk import PauseDesk
from mindie_ha.engine.public_reports import PublicReportDesk
from mindie_ha.engine.public_tables import load_public_codes
from mindie_ha.engine.rearm_desk import RearmDesk
from mindie_ha.engine.reconciling import Reconciler
from mindie_ha.engine.records import DecisionRecord, Recorder
from mindie_ha.engine.signal_desk import SignalDesk
from mindie_ha.engine.sinks import AuditFile, count, to_log
from mindie_ha.engine.tables import TableDesk
from mindie_ha.engine.workers import Engine
from mindie_ha.kit import heaps
from mindie_ha.kit.clock import Clock, LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log, make_log, silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.queues import KeyedQueue
from mindie_ha.kit.tasks import OnEnd, Supervisor
from mindie_ha.model.decisions import Notice
from mindie_ha.model.errors import MindieHaError, NotFound, SettingsError, Unreachable
from mindie_ha.model.ids import ObjectKey, ScopeKey, node_key, service_key
from mindie_ha.model.settings import Settings
from mindie_ha.policy.isolations import plan_node
from mindie_ha.policy.planner import plan
from mindie_ha.web.api import Health, Sources, make_app
from mindie_ha.web.fault_reports import FleetFaults, FleetReporter
from mindie_ha.web.reports import Overview, Reporter, ScopeReport

SYNC_PATIENCE_S = 30.0  # between complaints about a cache that does not fill
OBSERVE_TIMEOUT_S = 20.0
HTTP_STOP_S = 2.0  # answers that a reader does not take by then are cut when we stop
FIRST_RETRY_S = 0.01  # a look that lost a race to another writer; doubles while it fails
STUCK_S = 300.0  # a source that asked for nothing for so long is stuck, and only a restart can help


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Everything through which the outside is reached; tests and simulations swap these."""

    transport: Transport
    clock: Clock
    entropy: Entropy
    log: Log
    session: Callable[[], aiohttp.ClientSession] = open_session
    serve: bool = True  # False: no listening sockets, for simulations on virtual time
    filled: Callable[[], None] = lambda: None  # called once the caches are filled


class LeadsAlone:
    """The fence of a controller that runs as the only replica."""

    def guard(self) -> None:
        """Always lets through."""


class Core:
    """The part that sees and decides: caches, store, reporter. Writes nothing by itself."""

    def __init__(self, settings: Settings, edges: Edges, *, metrics: Metrics) -> None:
        self.settings = settings
        self.clock = edges.clock
        self.entropy = edges.entropy
        self.log = edges.log
        self.metrics = metrics
        self._filled = edges.filled
        self.supervisor = Supervisor(clock=edges.clock, entropy=edges.entropy, log=edges.log, metrics=metrics)
        self.queue: KeyedQueue[ScopeKey] = KeyedQueue(
            clock=edges.clock, entropy=edges.entropy.child("queue"), first_s=FIRST_RETRY_S
        )
        self.client = Client(edges.transport, request_timeout_s=settings.cluster.request_timeout_s)
        self.store = Store(
            clock=edges.clock,
            settings=settings,
            listener=self._touched,
            refused=lambda source: metrics.inputs_refused.labels(source).inc(),
        )
        self.mirror = Mirror(
            client=self.client,
            store=self.store,
            clock=edges.clock,
            entropy=edges.entropy.child("mirror"),
            settings=settings.cluster,
            log=edges.log,
            metrics=metrics,
        )
        self.desk = TableDesk(
            directory=self.store,
            push_targets=settings.table.push_targets,
            touch=lambda scope: self._touched(frozenset((scope,)), True),
        )
        self.reporter = Reporter(
            store=self.store, tables=self.desk, planner=plan, settings=settings, clock=edges.clock
        )
        self.fleet = FleetReporter(store=self.store, settings=settings, clock=edges.clock)

    def _touched(self, scopes: frozenset[ScopeKey], urgent: bool) -> None:
        for scope in scopes:
            self.queue.add(scope, urgent=urgent)

    async def synced(self) -> None:
        """Fill the caches; complains by name about what does not come."""
        self.mirror.start(self.supervisor)
        while missing := await self.mirror.wait_synced(timeout_s=SYNC_PATIENCE_S):
            for source, reason in missing.items():
                self.log.warning("still waiting for the first list", source=source, reason=reason)
        self._filled()


class App:
    """The controller."""

    def __init__(self, settings: Settings, edges: Edges, *, audit_file: Path | None = None) -> None:
        self.settings = settings
        self.started = asyncio.Event()
        self.grpc_port = 0
        self.http_port = 0
        self.metrics = Metrics()
        self._serve = edges.serve
        self.core = Core(settings, edges, metrics=self.metrics)
        self.desk = self.core.desk
        self.recorder = Recorder()
        self._audit = AuditFile(audit_file) if audit_file is not None else None
        core = self.core
        self.writer = _writer(core)
        ledgers = Ledgers(store=core.store, writer=self.writer, namespace=settings.cluster.namespace)
        self.nodes = NodeLedgers(store=core.store, ledgers=ledgers, clock=core.clock)
        self.isolations = IsolationDesk(
            store=core.store, nodes=self.nodes, clock=core.clock, settings=settings
        )
        self.rearm = RearmDesk(store=core.store, ledgers=ledgers, clock=core.clock, settings=settings)
        self.pauses = PauseDesk(store=core.store, ledgers=ledgers, clock=core.clock, settings=settings)
        self._events = Events(
            writer=self.writer, clock=core.clock, entropy=core.entropy.child("events"), metrics=self.metrics
        )
        self.public = self._public(ledgers)
        self.signals = SignalDesk(store=core.store, resolver=core.desk, settings=settings, clock=core.clock)
        self.outlets = Outlets(
            settings=settings,
            desk=core.desk,
            signals=self.signals,
            reports=self.public,
            writer=self.writer,
            session=edges.session,
            clock=core.clock,
            entropy=core.entropy.child("outlets"),
            supervisor=core.supervisor,
            log=core.log,
            metrics=self.metrics,
        )
        self.engine = self._engine(ledgers)
        self.recorder.listeners.append(self._spread)
        core.store.refusals.listeners.append(self._problem)
        self._gauge()

    def _public(self, ledgers: Ledgers) -> PublicReportDesk:
        return PublicReportDesk(
            memory=self.core.store,
            paper=ledgers,
            codes=load_public_codes(self.settings.faults.public_codes_file),
            clock=self.core.clock,
            log=self.core.log,
            metrics=self.metrics,
        )

    def _engine(self, ledgers: Ledgers) -> Engine:
        core = self.core
        marks = Marks(writer=self.writer, settings=self.settings, clock=core.clock)
        reconciler = Reconciler(
            store=core.store,
            ledgers=ledgers,
            executor=Executor(writer=self.writer, nodes=self.nodes, marks=marks),
            tables=core.desk,
            recorder=self.recorder,
            planner=plan,
            node_planner=plan_node,
            public=self.public,
            on_look=self.signals.looked,
            settings=self.settings,
            clock=core.clock,
            log=core.log,
        )
        return Engine(
            reconciler=reconciler,
            queue=core.queue,
            supervisor=core.supervisor,
            clock=core.clock,
            metrics=self.metrics,
        )

    def reports(self) -> list[ScopeReport]:
        """How every service and job is."""
        return self.core.reporter.all()

    async def run(self) -> None:
        """Work until cancelled, or until a part that cannot be missed fails (raises MindieHaError)."""
        core = self.core
        runner = web.AppRunner(
            self._web(), access_log=None, handler_cancellation=True, shutdown_timeout=HTTP_STOP_S
        )
        try:
            if self._serve:
                await runner.setup()
                self.http_port = await _listen(runner, self.settings.http.listen)
            await core.synced()
            if self._serve:
                self.grpc_port = await self.outlets.start()
            core.supervisor.start("events", self._events.run)
            core.supervisor.start("engine", self.engine.run, on_end=OnEnd.FAIL)
            self.engine.touch(core.store.scopes())
            self.engine.touch(node_key(name) for name in core.store.node_names())
            self.started.set()
            core.log.info("started", grpc_port=self.grpc_port, http_port=self.http_port)
            await core.supervisor.failed.wait()
            raise MindieHaError(core.supervisor.failure)
        finally:
            self.started.clear()
            await core.supervisor.stop("engine")
            await self.outlets.stop()
            await core.supervisor.close()
            await runner.cleanup()
            if self._audit is not None:
                self._audit.close()

    def health(self) -> Health:
        """Live: no source is stuck. Ready: caches filled and servers listening.

        A server that does not answer makes us neither: a restart would end streams whose tables we still
        have, and clients must reach us all the while. `reasons` names it.
        """
        problems = self.core.mirror.problems()
        reasons = tuple(f"{source}: {reason}" for source, reason in sorted(problems.items()))
        started = self.started.is_set()
        stuck = started and self.core.mirror.idlest_s() > STUCK_S
        if stuck:
            reasons = (*reasons, f"a source asked for nothing for more than {STUCK_S:g} s")
        return Health(live=not stuck, ready=started, reasons=reasons)

    def _web(self) -> web.Application:
        sources = Sources(
            reports=self.core.reporter,
            tables=self.outlets,
            recorder=self.recorder,
            registry=self.metrics.factory.registry,
            health=self.health,
            faults=self.public,
            fleet=self.core.fleet,
            desk=self.isolations,
            rearm=self.rearm,
            pauses=self.pauses,
        )
        return make_app(sources, max_body_bytes=self.settings.http.max_body_bytes)

    def _gauge(self) -> None:
        """Gauges that are read from the live parts when somebody scrapes."""
        self.metrics.subscribers.set_function(lambda: self.outlets.mailboxes.open_streams)
        self.metrics.leader.set_function(lambda: float(self.started.is_set()))
        for kind in ("workload", "service", "node", "pauses"):
            gauge = self.metrics.ledgers_unreadable.labels(kind)
            gauge.set_function(partial(self.core.store.ledgers_unreadable, kind))

    def _problem(self, problem: Problem) -> None:
        """An object that cannot be understood: log, metric and Event; `status` asks for it."""
        source = problem.source
        if not problem.counted:
            self.metrics.inputs_refused.labels(source.name).inc()
            self.core.log.warning("object refused", object=str(problem.key), error=problem.text)
        about = About(source.resource.api_version, source.resource.kind, problem.key, problem.uid)
        message = f"{problem.key} is not understood: {problem.text}"
        self._events.record(Notice("InputRefused", message, warning=True, key="refused"), about)

    def _spread(self, record: DecisionRecord) -> None:
        """One record, every sink."""
        to_log(record, self.core.log)
        count(record, self.metrics)
        about = about_of(record, self.core.store)
        if about is not None:
            for notice in record.notices:
                self._events.record(for_event(notice, record), about)
        if self._audit is not None:
            self._audit.write(record)


def _writer(core: Core) -> Writer:
    return Writer(
        client=core.client,
        answers=core.store,
        fence=LeadsAlone(),
        clock=core.clock,
        entropy=core.entropy.child("writer"),
        settings=core.settings.cluster,
        log=core.log,
        metrics=core.metrics,
        dry_run=core.settings.dry_run,
    )


async def _listen(runner: web.AppRunner, listen: str) -> int:
    """Serve on `[HOST]:PORT`; the port."""
    where, advice = f"http.listen {listen}", "give [HOST]:PORT with a free port"
    host, colon, port = listen.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        raise SettingsError("not [HOST]:PORT", where=where, advice=advice)
    try:
        site = web.TCPSite(runner, host.strip("[]") or None, int(port))
        await site.start()
    except OSError as error:
        raise SettingsError(f"cannot listen: {error.strerror or error}", where=where, advice=advice) from None
    addresses = runner.addresses
    return int(addresses[0][1])


async def serve(
    settings: Settings, *, kubeconfig: Path | None, audit_file: Path | None, log_level: str
) -> None:
    """Run the controller on a real cluster until SIGTERM or SIGINT."""
    log = make_log(sys.stderr, level=log_level)
    transport = await connect(str(kubeconfig) if kubeconfig else None)
    heaps.relax()
    edges = Edges(transport=transport, clock=LoopClock(), entropy=Entropy(), log=log, filled=heaps.freeze)
    try:
        app = App(settings, edges, audit_file=audit_file)
        task = asyncio.create_task(app.run(), name="app")
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            log.info("stopped")
    finally:
        await transport.close()


@asynccontextmanager
async def looking(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[Core]:
    """Caches filled once, for a command that looks and goes. Raises Unreachable and other ClusterErrors."""
    transport = await connect(str(kubeconfig) if kubeconfig else None)
    try:
        edges = Edges(transport=transport, clock=LoopClock(), entropy=Entropy(), log=silent_log())
        core = Core(settings, edges, metrics=Metrics())
        try:
            core.mirror.start(core.supervisor)
            missing = await core.mirror.wait_synced(timeout_s=OBSERVE_TIMEOUT_S)
            if missing:
                source, reason = next(iter(missing.items()))
                raise Unreachable(f"could not list {source} within {OBSERVE_TIMEOUT_S:g} s: {reason}")
            yield core
        finally:
            await core.supervisor.close()
    finally:
        await transport.close()


async def observe(settings: Settings, *, kubeconfig: Path | None) -> Overview:
    """Look at the cluster once, without a running controller."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        return core.reporter.overview()


async def observe_faults(settings: Settings, *, node: str, kubeconfig: Path | None) -> FleetFaults:
    """Every current fault (of one node, if given), without a running controller."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        if node and not core.fleet.knows(node):
            raise NotFound(f"there is no node {node}", status=404)
        return await core.fleet.faults(node=node)


@asynccontextmanager
async def isolation_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[IsolationDesk]:
    """Where isolations are asked for without the API of a controller; the one that runs sets the taint."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledgers = Ledgers(store=core.store, writer=_writer(core), namespace=settings.cluster.namespace)
        nodes = NodeLedgers(store=core.store, ledgers=ledgers, clock=core.clock)
        yield IsolationDesk(store=core.store, nodes=nodes, clock=core.clock, settings=settings)


@asynccontextmanager
async def rearm_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[RearmDesk]:
    """Where a parked workload is re-armed without the API of a controller; the one that runs acts on it."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledgers = Ledgers(store=core.store, writer=_writer(core), namespace=settings.cluster.namespace)
        yield RearmDesk(store=core.store, ledgers=ledgers, clock=core.clock, settings=settings)


@asynccontextmanager
async def pause_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[PauseDesk]:
    """Where people pause and resume without the API of a controller; the one that runs obeys."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledgers = Ledgers(store=core.store, writer=_writer(core), namespace=settings.cluster.namespace)
        yield PauseDesk(store=core.store, ledgers=ledgers, clock=core.clock, settings=settings)


async def published_table(settings: Settings, service: ObjectKey, *, kubeconfig: Path | None) -> str:
    """The table that a service's ledger says was published last."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledger = core.store.service_ledger(service_key(service.namespace, service.name))
        if ledger is None or not ledger.text:
            raise NotFound(f"no table was published for {service}; `mindie-ha status` says why", status=404)
        return ledger.text
