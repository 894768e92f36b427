"""Between decisions and channels: which table a service has now, and who has received it.

Implements the channels' `TablePort` on the service ledgers, so a restarted controller replays the very bytes
it published before, and the engine's `Tables` on the publisher. Nothing here decides what a table contains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import quote

from mindie_ha.channels.ports import (
    ConfigMapTarget,
    DeliveryReceipt,
    GrpcPeer,
    HttpTarget,
    Owed,
    ServiceRef,
    SubscriberKind,
    TableVersion,
    Target,
    Unresolved,
)
from mindie_ha.model.decisions import TableDecision
from mindie_ha.model.ids import ScopeKey, service_key
from mindie_ha.model.ledgers import ServiceLedger


class Directory(Protocol):
    """What the store knows of services and addresses."""

    def services_named(self, job_id: str) -> tuple[ScopeKey, ...]:
        """Services that carry this jobID, one per namespace."""
        ...

    def namespace_of_ip(self, ip: str) -> str | None:
        """The namespace of the pod with this address; None when there is no one answer."""
        ...

    def service_ledger(self, scope: ScopeKey) -> ServiceLedger | None:
        """The remembered table of a service."""
        ...


class Peers(Protocol):
    """`engine.peer_checks.PeerCheck`."""

    def refusal(self, service: ScopeKey, ip: str) -> str:
        """Why an address gets nothing of a service; empty where it does."""
        ...

    def belongs(self, service: ScopeKey, ip: str) -> bool:
        """Whether an address is one of the service's own."""
        ...


class Publishing(Protocol):
    """`channels.publishing.Publisher`."""

    async def publish(self, table: TableVersion, destinations: Sequence[Target]) -> None:
        """Give every channel the table to deliver; returns within a bounded time, delivered or not."""
        ...

    def pending(self, service: ServiceRef) -> tuple[Owed, ...]:
        """What is still owed."""
        ...

    def subscribers(self, service: ServiceRef) -> tuple[GrpcPeer, ...]:
        """gRPC subscribers that are connected now."""
        ...

    async def forget(self, service: ServiceRef) -> None:
        """The service is gone."""
        ...


Touch = Callable[[ScopeKey], None]
ReceiptListener = Callable[[DeliveryReceipt], None]


class Subscribers(Protocol):
    """Who wants to know from where table streams come."""

    def joined(self, scope: ScopeKey, ip: str) -> None:
        """A stream was opened."""
        ...

    def left(self, scope: ScopeKey, ip: str) -> None:
        """A stream ended."""
        ...


class TableDesk:
    """Knows the current table of every service and who listens."""

    def __init__(
        self,
        *,
        directory: Directory,
        subscribers: Subscribers,
        push_targets: tuple[str, ...],
        touch: Touch,
        peers: Peers,
    ) -> None:
        self._subscribers = subscribers
        self._directory = directory
        self._peers = peers
        self._push_targets = push_targets
        self._touch = touch
        self._publisher: Publishing | None = None
        self._given: dict[ServiceRef, tuple[int, tuple[Target, ...]]] = {}
        self.receipt_listeners: list[ReceiptListener] = []

    def attach(self, publisher: Publishing) -> None:
        """Connect a publisher, which needs this desk as its port; a new one has got nothing yet."""
        self._publisher = publisher
        self._given.clear()

    # -- the engine's side -------------------------------------------------------------------------

    def facts(self, scope: ScopeKey) -> tuple[int, bool]:
        """Number of table subscribers, and whether none of them is owed the newest table."""
        service = _ref(scope)
        owed = self._publisher.pending(service) if self._publisher is not None else ()
        handed = not any(isinstance(each.destination, GrpcPeer) for each in owed)
        subscribers = self._publisher.subscribers(service) if self._publisher is not None else ()
        return len(subscribers), handed

    def strangers(self, scope: ScopeKey) -> tuple[str, ...]:
        """Addresses of table subscribers that are no pod and no node of the service, each once."""
        if self._publisher is None:
            return ()
        ips = {_ip(each.peer) for each in self._publisher.subscribers(_ref(scope))}
        return tuple(sorted(ip for ip in ips if not self._peers.belongs(scope, ip)))

    async def publish(self, scope: ScopeKey, decision: TableDecision) -> None:
        """Hand the recorded table over once per generation and set of destinations."""
        ledger = decision.ledger
        if self._publisher is None or ledger.generation == 0:
            return
        service = _ref(scope)
        targets = self._targets(service, decision)
        if self._given.get(service) == (ledger.generation, targets):
            return
        self._given[service] = (ledger.generation, targets)
        await self._publisher.publish(_version(service, ledger), targets)

    async def forget(self, scope: ScopeKey) -> None:
        """The service is gone: nothing is owed any more."""
        if self._given.pop(_ref(scope), None) is not None and self._publisher is not None:
            await self._publisher.forget(_ref(scope))

    def owed(self, scope: ScopeKey) -> tuple[Owed, ...]:
        """What has not been handed over yet."""
        return self._publisher.pending(_ref(scope)) if self._publisher is not None else ()

    def _targets(self, service: ServiceRef, decision: TableDecision) -> tuple[Target, ...]:
        targets: list[Target] = []
        if decision.config_map is not None:
            targets.append(ConfigMapTarget(decision.config_map.namespace, decision.config_map.name))
        for pattern in self._push_targets:
            url = pattern.replace("{namespace}", service.namespace).replace(
                "{job_id}", quote(service.job_id, safe="")
            )
            targets.append(HttpTarget(url))
        return tuple(targets)

    # -- the channels' side (TablePort) ------------------------------------------------------------

    def resolve(self, job_id: str, peer_ip: str) -> ServiceRef | Unresolved:
        """The service of a peer; one jobID in several namespaces is told apart by the peer's pod IP."""
        scopes = self._directory.services_named(job_id)
        if not scopes:
            return Unresolved(f"no AscendJob carries the label jobID={job_id}")
        if len(scopes) == 1:
            refusal = self._peers.refusal(scopes[0], peer_ip)
            return Unresolved(refusal) if refusal else _ref(scopes[0])
        namespace = self._directory.namespace_of_ip(peer_ip)
        for scope in scopes:
            if scope.namespace == namespace:
                return _ref(scope)
        names = ", ".join(sorted(scope.namespace for scope in scopes))
        return Unresolved(
            f"jobID={job_id} exists in the namespaces {names}, and {peer_ip} is the address of a pod"
            " in none of them; give each service its own jobID"
        )

    def current(self, service: ServiceRef) -> TableVersion | None:
        """The table published last, from memory that survives us."""
        ledger = self._directory.service_ledger(service_key(service.namespace, service.job_id))
        if ledger is None or ledger.generation == 0:
            return None
        return _version(service, ledger)

    def is_ours(self, job_id: str) -> bool:
        """Whether any service carries this jobID."""
        return bool(self._directory.services_named(job_id))

    def on_receipt(self, receipt: DeliveryReceipt) -> None:
        """Somebody has a table: the recovery that waits for it may go on."""
        for listener in self.receipt_listeners:
            listener(receipt)
        self._touch(service_key(receipt.service.namespace, receipt.service.job_id))

    def subscriber_joined(self, service: ServiceRef, *, role: str, peer: str, kind: SubscriberKind) -> None:
        """A stream was opened: a recovery that announces may count it."""
        del role
        scope = service_key(service.namespace, service.job_id)
        if kind == "ranktable":
            self._subscribers.joined(scope, _ip(peer))
        self._touch(scope)

    def subscriber_left(self, service: ServiceRef, *, role: str, peer: str, kind: SubscriberKind) -> None:
        """A stream ended: nobody waits for it any more."""
        del role
        scope = service_key(service.namespace, service.job_id)
        if kind == "ranktable":
            self._subscribers.left(scope, _ip(peer))
        self._touch(scope)


def _ip(peer: str) -> str:
    return peer.rpartition(":")[0].strip("[]")


def _ref(scope: ScopeKey) -> ServiceRef:
    return ServiceRef(scope.namespace, scope.name)


def _version(service: ServiceRef, ledger: ServiceLedger) -> TableVersion:
    return TableVersion(
        service=service,
        generation=ledger.generation,
        digest=ledger.digest,
        text=ledger.text,
        at_s=ledger.published_at_s,
    )
