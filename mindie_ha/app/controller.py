"""The life cycle of the controller: what starts, in which order it stops, how healthy it is.

Start: caches first, because half a picture looks like missing pods; then the servers, because a table that
is asked for before the caches are filled would look like a foreign job; then the engine. Stop: the engine
(nothing new is decided), the servers (streams end cleanly), deliveries, caches, connections.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from aiohttp import web

from mindie_ha.app.core import Core
from mindie_ha.app.edges import Edges
from mindie_ha.app.listening import Listener
from mindie_ha.app.parts import Parts
from mindie_ha.app.webhooks import WebhookServer
from mindie_ha.channels.connection_guard import PortLimits
from mindie_ha.cluster.events import About
from mindie_ha.cluster.problems import Problem
from mindie_ha.engine.events import about_of, for_event
from mindie_ha.engine.passed_reports import PassedReports
from mindie_ha.engine.reconciling import Planner
from mindie_ha.engine.records import DecisionRecord
from mindie_ha.engine.sinks import AuditFile, count, to_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import OnEnd
from mindie_ha.model.decisions import Notice
from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.ids import node_key
from mindie_ha.model.roles import Activity
from mindie_ha.model.settings import Settings
from mindie_ha.policy.activity import MS_ROLES
from mindie_ha.policy.planner import plan
from mindie_ha.web.api import Health, Sources, make_app
from mindie_ha.web.reports import ScopeReport

HTTP_STOP_S = 2.0  # answers that a reader does not take by then are cut when we stop
STUCK_S = 300.0  # a source that asked for nothing for so long is stuck, and only a restart can help


class App:
    """The controller."""

    def __init__(
        self,
        settings: Settings,
        edges: Edges,
        *,
        audit_file: Path | None = None,
        planner: Planner = plan,
    ) -> None:
        self.settings = settings
        self.started = asyncio.Event()
        self.grpc_port = 0
        self.http_port = 0
        self.webhook_port = 0
        self.metrics = Metrics()
        self._serve = edges.serve
        self._audit = AuditFile(audit_file) if audit_file is not None else None
        self.core = Core(settings, edges, metrics=self.metrics)
        self.parts = parts = Parts(self.core, edges, planner=planner)
        self.desk = self.core.desk
        self.recorder, self.writer, self.engine = parts.recorder, parts.writer, parts.engine
        self.outlets, self.public, self.signals = parts.outlets, parts.public, parts.signals
        self.isolations, self.rearm, self.pauses = parts.isolations, parts.rearm, parts.pauses
        self.adoptions = parts.adoptions
        self.recorder.listeners.append(self._spread)
        self.core.store.refusals.listeners.append(self._problem)
        self._gauge()

    def reports(self) -> list[ScopeReport]:
        """How every service and job is."""
        return self.core.reporter.all()

    async def run(self) -> None:
        """Work until cancelled, or until a part that cannot be missed fails (raises MindieHaError)."""
        core = self.core
        runner = web.AppRunner(
            self._web(), access_log=None, handler_cancellation=True, shutdown_timeout=HTTP_STOP_S
        )
        listener = Listener(
            runner, self.settings.http, clock=core.clock, heard=self.outlets.certificates_heard
        )
        hook = WebhookServer(
            self.settings.webhook,
            metrics=self.metrics,
            clock=core.clock,
            heard=self.outlets.certificates_heard,
        )
        try:
            if self._serve:
                await runner.setup()
                await self._listen(listener, hook)
            await core.synced()
            if self._serve:
                self.grpc_port = await self.outlets.start()
                self._guard_ports(http=False)
            core.supervisor.start("events", self.parts.events.run)
            core.supervisor.start("roles", self.parts.roles.run)
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
            await self.parts.roles.close()
            await runner.cleanup()
            listener.close()
            await hook.close()
            if self._audit is not None:
                self._audit.close()

    async def _listen(self, listener: Listener, hook: WebhookServer) -> None:
        """Open the ports that need no caches."""
        supervisor = self.core.supervisor
        self.http_port = await listener.start()
        self.webhook_port = await hook.start()
        self._guard_ports(http=True)
        supervisor.start("connections", self.parts.guard.run)
        if self.settings.http.tls_cert:
            supervisor.start("http certificates", listener.follow)
        if hook.enabled:
            supervisor.start("webhook certificates", hook.follow)

    def _guard_ports(self, *, http: bool) -> None:
        """Bound the connections of one address, to a port that is open now."""
        grpc, web_ = self.settings.grpc, self.settings.http
        if http:
            limits = PortLimits(per_address=web_.max_connections_per_address, total=web_.max_connections)
            self.parts.guard.watch(self.http_port, limits)
            if self.webhook_port:
                self.parts.guard.watch(self.webhook_port, limits)
        else:
            self.parts.guard.watch(self.grpc_port, PortLimits(per_address=grpc.max_connections_per_address))

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
            faults=PassedReports(self.public, self.outlets),
            fleet=self.core.fleet,
            desk=self.isolations,
            rearm=self.rearm,
            adoptions=self.adoptions,
            pauses=self.pauses,
            access=self.parts.access,
            peers=self.core.peers,
        )
        return make_app(sources, max_body_bytes=self.settings.http.max_body_bytes)

    def _gauge(self) -> None:
        """Gauges that are read from the live parts when somebody scrapes."""
        self.metrics.subscribers.set_function(lambda: self.outlets.mailboxes.open_streams)
        self.metrics.leader.set_function(lambda: float(self.started.is_set()))
        for role in sorted(MS_ROLES):
            for what in Activity:
                count_of = partial(self.core.store.roles.count, role, what)
                self.metrics.ms_pods.labels(role, what).set_function(count_of)
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
        self.parts.events.record(Notice("InputRefused", message, warning=True, key="refused"), about)

    def _spread(self, record: DecisionRecord) -> None:
        """One record, every sink."""
        to_log(record, self.core.log)
        count(record, self.metrics)
        about = about_of(record, self.core.store)
        if about is not None:
            for notice in record.notices:
                self.parts.events.record(for_event(notice, record), about)
        if self._audit is not None:
            self._audit.write(record)
