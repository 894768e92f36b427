"""The life cycle of the controller: what starts, in which order it stops, how healthy it is.

Start: the HTTP face, then caches, because half a picture looks like missing pods; then it stands for the
Lease. While it waits it is a standby: caches warm, the API readable, nothing written. Once it leads, a term
(`terms.py`) begins; when the Lease is lost the term ends, and the process stands again: its caches are warm,
and a new process would be no safer, because the fence does not depend on anything having ended.

Stop: whatever writes, then the Lease is given up so that another takes it at once, then streams, caches and
connections.
A dry run writes nothing, so it needs no Lease and stands beside whoever leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from mindie_ha.app import gauges
from mindie_ha.app.core import Core
from mindie_ha.app.edges import Edges
from mindie_ha.app.listening import Listener
from mindie_ha.app.parts import LeadsAlone, Parts
from mindie_ha.app.terms import Terms
from mindie_ha.app.webhooks import WebhookServer
from mindie_ha.channels.connection_guard import PortLimits
from mindie_ha.cluster.events import About
from mindie_ha.cluster.leases import Candidate
from mindie_ha.cluster.problems import Problem
from mindie_ha.cluster.writer import Fence
from mindie_ha.engine.events import about_of, for_event
from mindie_ha.engine.passed_reports import PassedReports
from mindie_ha.engine.reconciling import Planner
from mindie_ha.engine.records import DecisionRecord
from mindie_ha.engine.sinks import AuditFile, count, to_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import OnEnd
from mindie_ha.model.decisions import Notice
from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import ROLES_BY_APP, Role
from mindie_ha.policy.planner import plan
from mindie_ha.web.api import Health, Sources, make_app
from mindie_ha.web.reports import ScopeReport

HTTP_STOP_S = 2.0  # answers that a reader does not take by then are cut when we stop
LEASE_STUCK_S = 60.0  # the loop of the Lease turns every few seconds
STANDBY_S = 1.0  # of waiting for the Lease before it is said
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
        fence_of: Callable[[Fence], Fence] = lambda candidate: candidate,
        roles: Mapping[str, Role] = ROLES_BY_APP,
    ) -> None:
        self.settings = settings
        self.ready = asyncio.Event()  # the caches are filled, and it leads or stands by
        self.http_port = 0
        self.webhook_port = 0
        self.metrics = Metrics()
        self._serve = edges.serve
        self._audit = AuditFile(audit_file) if audit_file is not None else None
        self.core = Core(settings, edges, metrics=self.metrics, planner=planner, roles=roles)
        self.candidate = self._candidate(edges)
        fence = LeadsAlone() if settings.dry_run else fence_of(self.candidate)
        self.parts = parts = Parts(self.core, edges, fence=fence, planner=planner)
        self.terms = Terms(self.core, parts, edges)
        self.started = self.terms.begun  # it leads, and serves
        self.desk = self.core.desk
        self.recorder, self.writer, self.engine = parts.recorder, parts.writer, parts.engine
        self.outlets, self.public, self.signals = parts.outlets, parts.public, parts.signals
        self.isolations, self.rearm, self.pauses = parts.isolations, parts.rearm, parts.pauses
        self.adoptions, self.requests = parts.adoptions, parts.requests
        self.recorder.listeners.append(self._spread)
        self.core.store.refusals.listeners.append(self._problem)
        gauges.watch(
            self.metrics,
            store=self.core.store,
            outlets=self.outlets,
            candidate=self.candidate,
            leads=lambda: self.started.is_set() and self._leads(),
        )

    @property
    def grpc_port(self) -> int:
        """Where rank tables are served; 0 before we led."""
        return self.terms.grpc_port

    def _candidate(self, edges: Edges) -> Candidate:
        return Candidate(
            client=self.core.client,
            namespace=self.settings.cluster.namespace,
            identity=edges.identity or f"mindie-ha_{edges.entropy.uuid()[:8]}",
            settings=self.settings.lease,
            steady=edges.steady,
            wall=edges.clock.wall,
            entropy=edges.entropy.child("lease"),
            log=edges.log,
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
            core.supervisor.start("permissions", self.parts.permissions.run, on_end=OnEnd.ACCEPT)
            await core.synced()
            if self.settings.dry_run:
                await self._term()
            core.supervisor.start("lease", self.candidate.run)
            while True:
                await self._stand()
                await self._term()
        finally:
            self.ready.clear()
            await self.terms.silence()
            await core.supervisor.stop("lease")
            if not self.settings.dry_run:
                await self.candidate.release()
            await self.terms.end()
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
        web_ = self.settings.http
        limits = PortLimits(per_address=web_.max_connections_per_address, total=web_.max_connections)
        for port in filter(None, (self.http_port, self.webhook_port)):
            self.parts.guard.watch(port, limits)
        supervisor.start("connections", self.parts.guard.run)
        if self.settings.http.tls_cert:
            supervisor.start("http certificates", listener.follow)
        if hook.enabled:
            supervisor.start("webhook certificates", hook.follow)

    async def _stand(self) -> None:
        """Wait until we lead."""
        self.candidate.stand()
        with suppress(TimeoutError):  # a Lease that is free is taken before anybody is told
            async with asyncio.timeout(STANDBY_S):
                await self._until(self.candidate.acquired.wait())
                return
        self.ready.set()
        self.core.log.info("standing by", leader=self.candidate.leader, http_port=self.http_port)
        await self._until(self.candidate.acquired.wait())

    async def _term(self) -> None:
        """Lead until it is lost."""
        lost = None if self.settings.dry_run else self.candidate.lost
        await self._until(self._lead(), unless=lost)
        await self.terms.silence()
        await self.terms.end()

    async def _lead(self) -> None:
        await self.terms.begin()
        self.ready.set()
        self.core.log.info("started", grpc_port=self.grpc_port, http_port=self.http_port)
        await asyncio.get_running_loop().create_future()

    async def _until(
        self, body: Coroutine[object, object, object], *, unless: asyncio.Event | None = None
    ) -> None:
        """Await something, for as long as `unless` does not come. MindieHaError when a part of us fails."""
        failed = self.core.supervisor.failed
        waits = [asyncio.ensure_future(event.wait()) for event in (failed, unless) if event is not None]
        task = asyncio.ensure_future(body)
        try:
            await asyncio.wait({task, *waits}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            elif failed.is_set():
                raise MindieHaError(self.core.supervisor.failure)
        finally:
            for one in (task, *waits):
                one.cancel()
            await asyncio.gather(task, *waits, return_exceptions=True)

    def health(self) -> Health:
        """Live: no source is stuck, the Lease is looked after. Ready: caches filled, and who leads serves.

        A server that does not answer makes us neither: a restart would end streams whose tables we still
        have, and clients must reach us all the while. `reasons` names it.
        """
        problems = self.core.mirror.problems()
        reasons = [f"{source}: {reason}" for source, reason in sorted(problems.items())]
        label = self.terms.label
        reasons += [text for text in (self.candidate.problem, label.problem if label else "") if text]
        reasons += [f"permission is missing: {each}" for each in self.parts.permissions.missing]
        ready = self.ready.is_set()
        idle = ready and self.core.mirror.idlest_s() > STUCK_S
        if idle:
            reasons.append(f"a source asked for nothing for more than {STUCK_S:g} s")
        stalled = ready and not self.settings.dry_run and self.candidate.idle_s > LEASE_STUCK_S
        if stalled:
            reasons.append(f"the lease was not looked after for more than {LEASE_STUCK_S:g} s")
        serves = self.started.is_set() or not self._leads()
        leader = self.candidate.leader
        return Health(
            live=not (idle or stalled),
            ready=ready and serves,
            reasons=tuple(reasons),
            leads=self.started.is_set() and self._leads(),
            leader=leader,
            dry_run=self.settings.dry_run,
            absent=frozenset(f"{name}: {problems[name]}" for name in self.core.mirror.absent()),
            away_at_s=self.core.mirror.away_at_s(),
        )

    def _leads(self) -> bool:
        return self.settings.dry_run or self.candidate.leads

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
            requests=self.requests,
            pauses=self.pauses,
            explainer=self.core.explainer(self.recorder),
            access=self.parts.access,
            peers=self.core.peers,
        )
        return make_app(sources, max_body_bytes=self.settings.http.max_body_bytes)

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
