"""Everything of the controller that acts, built on the core: writer, ledgers, desks, channels, engine.

Here is who gets what. Nothing runs yet: `controller.py` starts and stops it. `desks.py` builds single parts
for commands that ask for one thing and go.
"""

from __future__ import annotations

import math

from mindie_ha.app.core import Core
from mindie_ha.app.edges import Edges
from mindie_ha.channels import ms_endpoints
from mindie_ha.channels.connection_guard import ConnectionGuard
from mindie_ha.cluster.events import Events
from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.permissions import Permissions, needed
from mindie_ha.cluster.reviews import Reviews
from mindie_ha.cluster.writer import Fence, Writer
from mindie_ha.engine.adoption_desk import AdoptionDesk
from mindie_ha.engine.executor import Executor
from mindie_ha.engine.isolation_desk import IsolationDesk
from mindie_ha.engine.marks import Marks
from mindie_ha.engine.node_ledgers import NodeLedgers
from mindie_ha.engine.outlets import Outlets
from mindie_ha.engine.pause_desk import PauseDesk
from mindie_ha.engine.permits import Permits
from mindie_ha.engine.public_reports import PublicReportDesk
from mindie_ha.engine.public_tables import load_public_codes
from mindie_ha.engine.rearm_desk import RearmDesk
from mindie_ha.engine.reconciling import Planner, Reconciler
from mindie_ha.engine.records import Recorder
from mindie_ha.engine.request_desk import RequestDesk
from mindie_ha.engine.role_desk import RoleDesk
from mindie_ha.engine.signal_desk import SignalDesk
from mindie_ha.engine.workers import Engine
from mindie_ha.policy.isolations import plan_node
from mindie_ha.policy.planner import plan
from mindie_ha.web.access import Access, AccessRules


class LeadsAlone:
    """The fence of whoever needs no Lease: a dry run, and a command that records what a person asks for."""

    def guard(self) -> float:
        """Always lets through."""
        return math.inf


class Parts:
    """What acts; see the module."""

    def __init__(self, core: Core, edges: Edges, *, fence: Fence, planner: Planner = plan) -> None:
        self._core = core
        self._planner = planner
        settings, store, clock = core.settings, core.store, core.clock
        self.recorder = Recorder()
        self._fence = fence
        self.writer = writer_of(core, fence=fence)
        self.permissions = Permissions(
            needed(settings, labels_itself=edges.pod is not None),
            client=core.client,
            clock=clock,
            log=core.log,
            metrics=core.metrics,
        )
        ledgers = Ledgers(store=store, writer=self.writer, namespace=settings.cluster.namespace)
        self.nodes = NodeLedgers(store=store, ledgers=ledgers, clock=clock)
        self.isolations = IsolationDesk(store=store, nodes=self.nodes, clock=clock, settings=settings)
        self.rearm = RearmDesk(store=store, ledgers=ledgers, clock=clock, settings=settings)
        self.requests = RequestDesk(store=store, ledgers=ledgers, clock=clock, settings=settings)
        self.adoptions = AdoptionDesk(store=store, writer=self.writer, settings=settings)
        self.pauses = PauseDesk(store=store, ledgers=ledgers, clock=clock, settings=settings)
        self.events = Events(
            writer=self.writer, clock=clock, entropy=core.entropy.child("events"), metrics=core.metrics
        )
        self.public = self._public(ledgers)
        self.signals = SignalDesk(store=store, resolver=core.desk, settings=settings, clock=clock)
        self.access = self._access(in_pod=edges.in_pod)
        self.guard = ConnectionGuard(clock=clock, on_cut=self._cut, exempt=core.proxies.__contains__)
        self.outlets = self._outlets(edges)
        self.roles = self._roles(edges)
        self.engine = self._engine(ledgers)

    def _access(self, *, in_pod: bool) -> Access:
        http = self._core.settings.http
        rules = AccessRules(
            auth=http.auth,
            in_pod=in_pod,
            open_reads=http.open_reads,
            client_certificates=bool(http.tls_client_ca),
            rate_per_s=http.max_requests_per_s,
        )
        clock = self._core.clock
        return Access(rules, judge=Reviews(self._core.client, clock=clock), clock=clock)

    def _cut(self, port: int, ip: str, number: int) -> None:
        self._core.metrics.connections_cut.labels("grpc" if port == self.outlets.port else "http").inc(number)
        self._core.log.warning("connections of one address cut", port=port, address=ip, number=number)

    def _public(self, ledgers: Ledgers) -> PublicReportDesk:
        return PublicReportDesk(
            memory=self._core.store,
            paper=ledgers,
            codes=load_public_codes(self._core.settings.faults.public_codes_file),
            clock=self._core.clock,
            log=self._core.log,
            metrics=self._core.metrics,
        )

    def _engine(self, ledgers: Ledgers) -> Engine:
        core = self._core
        marks = Marks(writer=self.writer, settings=self._core.settings, clock=core.clock)
        permits = Permits(facts=core.store, settings=core.settings)
        reconciler = Reconciler(
            store=core.store,
            ledgers=ledgers,
            executor=Executor(writer=self.writer, nodes=self.nodes, marks=marks, permits=permits),
            tables=core.desk,
            recorder=self.recorder,
            planner=self._planner,
            node_planner=plan_node,
            public=self.public,
            on_look=(self.signals.looked, self.roles.looked),
            settings=self._core.settings,
            clock=core.clock,
            log=core.log,
        )
        return Engine(
            reconciler=reconciler,
            queue=core.queue,
            supervisor=core.supervisor,
            clock=core.clock,
            metrics=self._core.metrics,
        )

    def _outlets(self, edges: Edges) -> Outlets:
        core = self._core
        return Outlets(
            settings=core.settings,
            desk=core.desk,
            signals=self.signals,
            reports=self.public,
            writer=self.writer,
            fence=self._fence,
            session=edges.session,
            clock=core.clock,
            entropy=core.entropy.child("outlets"),
            supervisor=core.supervisor,
            log=core.log,
            metrics=core.metrics,
        )

    def _roles(self, edges: Edges) -> RoleDesk:
        core, endpoints = self._core, edges.endpoints
        if endpoints is None and edges.serve and core.settings.roles.ask:
            endpoints = ms_endpoints.HttpEndpoints(core.settings.roles, session=ms_endpoints.open_session)
        return RoleDesk(
            memory=core.store.roles,
            endpoints=endpoints,
            touch=core.touch,
            settings=core.settings.roles,
            coupled=core.settings.coupled,
            clock=core.clock,
            entropy=core.entropy.child("roles"),
            metrics=core.metrics,
        )


def writer_of(core: Core, *, fence: Fence) -> Writer:
    """Where every write of a process goes through."""
    return Writer(
        client=core.client,
        answers=core.store,
        fence=fence,
        clock=core.clock,
        entropy=core.entropy.child("writer"),
        settings=core.settings.cluster,
        log=core.log,
        metrics=core.metrics,
        dry_run=core.settings.dry_run,
    )
