"""The part of the controller that sees and decides: caches, store, tables, reports.

It writes nothing by itself, so that a command that only looks is this part alone. What acts is built on it in
`parts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from mindie_ha.app.edges import Edges
from mindie_ha.cluster.client import Client
from mindie_ha.cluster.mirrors import Mirror
from mindie_ha.cluster.store import Store
from mindie_ha.engine.peer_checks import PeerCheck, Proxies
from mindie_ha.engine.reconciling import Planner
from mindie_ha.engine.records import Recorder
from mindie_ha.engine.tables import TableDesk
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.queues import KeyedQueue
from mindie_ha.kit.tasks import Supervisor
from mindie_ha.model.ids import ScopeKey
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import ROLES_BY_APP, Role
from mindie_ha.policy.planner import plan
from mindie_ha.web.explanations import Explainer
from mindie_ha.web.fault_reports import FleetReporter
from mindie_ha.web.reports import Reporter

SYNC_PATIENCE_S = 30.0  # between complaints about a cache that does not fill
FIRST_RETRY_S = 0.01  # a look that lost a race to another writer; doubles while it fails


class Core:
    """Caches, store, reporter; see the module."""

    def __init__(
        self,
        settings: Settings,
        edges: Edges,
        *,
        metrics: Metrics,
        planner: Planner = plan,
        roles: Mapping[str, Role] = ROLES_BY_APP,
    ) -> None:
        self.settings = settings
        self.clock, self.entropy = edges.clock, edges.entropy
        self.log = edges.log
        self.metrics = metrics
        self._filled, self._planner = edges.filled, planner
        self.supervisor = Supervisor(clock=edges.clock, entropy=edges.entropy, log=edges.log, metrics=metrics)
        self.queue: KeyedQueue[ScopeKey] = KeyedQueue(
            clock=edges.clock, entropy=edges.entropy.child("queue"), first_s=FIRST_RETRY_S
        )
        self.client = Client(edges.transport, request_timeout_s=settings.cluster.request_timeout_s)
        self.store = self._store(roles)
        self.mirror = Mirror(
            client=self.client,
            store=self.store,
            clock=edges.clock,
            entropy=edges.entropy.child("mirror"),
            settings=settings.cluster,
            log=edges.log,
            metrics=metrics,
        )
        self.proxies = Proxies(settings.grpc.trusted_proxies)
        self.peers = PeerCheck(
            mode=settings.grpc.peer_check, proxies=self.proxies, census=self.store, on_stranger=self._stranger
        )
        self.desk = TableDesk(
            directory=self.store,
            subscribers=self.store.roles,
            push_targets=settings.table.push_targets,
            peers=self.peers,
            touch=self.touch,
        )
        self.reporter = Reporter(
            store=self.store, tables=self.desk, planner=planner, settings=settings, clock=edges.clock
        )
        self.fleet = FleetReporter(store=self.store, settings=settings, clock=edges.clock)

    def explainer(self, recorder: Recorder | None = None) -> Explainer:
        """Who explains; without a recorder no decision is known."""
        return Explainer(
            store=self.store,
            tables=self.desk,
            planner=self._planner,
            settings=self.settings,
            clock=self.clock,
            recorder=recorder,
        )

    def _store(self, roles: Mapping[str, Role]) -> Store:
        refused = self.metrics.inputs_refused
        return Store(
            clock=self.clock,
            settings=self.settings,
            listener=self._touched,
            refused=lambda source: refused.labels(source).inc(),
            roles=roles,
        )

    def touch(self, scope: ScopeKey) -> None:
        """Look at a service or job soon."""
        self.queue.add(scope, urgent=True)

    def _touched(self, scopes: frozenset[ScopeKey], urgent: bool) -> None:
        for scope in sorted(scopes):  # a set has another order in every process, a history has to repeat
            self.queue.add(scope, urgent=urgent)

    def _stranger(self, service: ScopeKey, ip: str, served: bool) -> None:
        self.metrics.strange_peers.labels("served" if served else "refused").inc()
        self.log.warning(
            "a subscriber's address belongs to no pod or node of the service",
            service=f"{service.namespace}/{service.name}",
            address=ip,
            served=served,
            advice="docs/security.md, grpc.peer_check",
        )

    async def synced(self) -> None:
        """Fill the caches; complains by name about what does not come."""
        self.mirror.start(self.supervisor)
        while missing := await self.mirror.wait_synced(timeout_s=SYNC_PATIENCE_S):
            for source, reason in missing.items():
                self.log.warning("still waiting for the first list", source=source, reason=reason)
        self._filled()
