"""Between what we see and the fault streams: whose faults a client means, and what they are now.

Implements the channels' `SignalPort` on the store. Every look at a scope, also one that only time brought
about, wakes the streams that tell of it; what they then say is computed from a fresh view, so that a message
and a decision never differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mindie_ha.channels.fault_signals import CLUSTER, FaultSubject, NodeFaults
from mindie_ha.channels.ports import ServiceRef, Unresolved
from mindie_ha.channels.signal_streams import SignalStreams
from mindie_ha.cluster.store import Store
from mindie_ha.engine.fault_messages import node_faults
from mindie_ha.intake.nodes import node_fault
from mindie_ha.kit.clock import Clock
from mindie_ha.model.faults import Fault
from mindie_ha.model.ids import ScopeKey, ScopeKind, job_key, service_key
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.model.workloads import LABEL_APP


class Resolver(Protocol):
    """Which service a peer means."""

    def resolve(self, job_id: str, peer_ip: str) -> ServiceRef | Unresolved:
        """One jobID in several namespaces is told apart by the peer's pod IP."""
        ...


class SignalDesk:
    """See the module."""

    def __init__(self, *, store: Store, resolver: Resolver, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._resolver = resolver
        self._settings = settings
        self._clock = clock
        self._streams: SignalStreams | None = None

    def attach(self, streams: SignalStreams) -> None:
        """Connect the streams; they need this desk as their port, so they come second."""
        self._streams = streams

    def looked(self, scope: ScopeKey, view: ScopeView | None) -> None:
        """A scope was looked at."""
        if self._streams is None:
            return
        subjects = [CLUSTER]
        if scope.kind is ScopeKind.SERVICE:
            subjects.append(_service(ServiceRef(scope.namespace, scope.name)))
        if view is not None:
            subjects.extend(FaultSubject("job", each.workload.uid) for each in view.workloads)
        self._streams.changed(subjects)

    # -- the channels' side (SignalPort) -------------------------------------------------------------

    def subject(self, job_id: str, peer_ip: str) -> FaultSubject | None:
        """The cluster for an empty jobId, else a service by its jobID label, else a job by its UID."""
        if not job_id:
            return CLUSTER
        found = self._resolver.resolve(job_id, peer_ip)
        if isinstance(found, ServiceRef):
            return _service(found)
        return FaultSubject("job", job_id) if self._store.workload_of_uid(job_id) is not None else None

    def role_refusal(self, job_id: str, role: str) -> str:
        """A service may be asked for by the `app` label of one of its jobs only."""
        apps = {
            workload.labels.get(LABEL_APP, "")
            for scope in self._store.services_named(job_id)
            for workload in self._store.workloads_of(scope)
        }
        if not apps or role in apps:
            return ""
        return f"no job with jobID={job_id} has the label app={role}; send one of {', '.join(sorted(apps))}"

    def faults_of(self, subject: FaultSubject) -> tuple[NodeFaults, ...]:
        """What is wrong now."""
        if subject == CLUSTER:
            return self._of_cluster()
        if subject.kind == "service":
            namespace, _, job_id = subject.name.partition("/")
            view = self._store.view(service_key(namespace, job_id), now_s=self._clock.wall())
            return _told(view, view.workloads if view is not None else ())
        workload = self._store.workload_of_uid(subject.name)
        if workload is None:
            return ()
        scope = workload.scope if workload.scope.kind is ScopeKind.SERVICE else job_key(workload.key)
        view = self._store.view(scope, now_s=self._clock.wall())
        own = [each for each in view.workloads if each.workload.uid == workload.uid] if view else []
        return _told(view, own)

    def _of_cluster(self) -> tuple[NodeFaults, ...]:
        now_s = self._clock.wall()
        found: list[Fault] = []
        nodes = {}
        for name in self._store.node_names() | self._store.reported_nodes():
            node = self._store.node_view(name, now_s=now_s).node
            lost, _ = node_fault(node, settings=self._settings.faults, now_s=now_s)
            if lost is not None and node.uid:
                found.append(lost)
            found.extend(self._store.card_faults(name, now_s=now_s))
            nodes[name] = node
        return node_faults(found, nodes=nodes, pods=())


def _told(view: ScopeView | None, workloads: Iterable[WorkloadView]) -> tuple[NodeFaults, ...]:
    if view is None:
        return ()
    chosen = tuple(workloads)
    return node_faults(
        (fault for each in chosen for fault in each.faults),
        nodes={name: each.node for name, each in view.nodes.items()},
        pods=(pod for each in chosen for pod in each.pods),
    )


def _service(service: ServiceRef) -> FaultSubject:
    return FaultSubject("service", str(service))


__all__ = ["SignalDesk"]
