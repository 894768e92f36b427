"""Who is subscribed to which tables, and the newest table of every service.

* Register ends nobody's stream and outlives its own; any number of subscribers per job; each has its own
  latest-value mailbox and gets the current table at once when it subscribes.
* Which service a subscriber belongs to is asked again before every hand-over, because a jobID can appear
  in a second namespace while the stream is open. While nobody can say, the stream stays open and empty.
* What a stream needs is bounded: one table, one seat. What a service needs is its newest table.

Source: rank table contract §4.3, with the faults of §8.1 (2, 3, 5-8, 23) as the reasons to differ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from mindie_ha.channels.errors import LimitReached, NotRegistered
from mindie_ha.channels.latest_values import Mailbox
from mindie_ha.channels.ports import (
    DeliveryReceipt,
    GrpcPeer,
    Owed,
    ServiceRef,
    TablePort,
    TableVersion,
    Unresolved,
)
from mindie_ha.channels.registrations import Registrations, Seats
from mindie_ha.channels.settings import MailboxLimits
from mindie_ha.kit.clock import Clock

K = TypeVar("K")


class Subscription:
    """One open stream of rank tables."""

    def __init__(self, registry: Mailboxes, *, job_id: str, role: str, peer: str, peer_ip: str) -> None:
        self._registry = registry
        self._box: Mailbox[TableVersion] = Mailbox()
        self._last_service: ServiceRef | None = None
        self.job_id = job_id
        self.role = role
        self.peer = peer
        self.peer_ip = peer_ip
        self.service: ServiceRef | None = None
        self.unresolved = ""

    @property
    def owed(self) -> TableVersion | None:
        """The table that this subscriber has not been given yet."""
        return self._box.owed

    async def next(self) -> TableVersion | None:
        """Wait for the next table to send; None when the stream has to end."""
        while not self._box.closed:
            self._follow()
            if self.service is None:
                with suppress(TimeoutError):
                    async with self._registry.clock.timeout(self._registry.limits.resolve_retry_s):
                        await self._box.poked()
            elif self._box.pending is None:
                await self._box.poked()
            else:
                return await self._box.take()
        return None

    def confirm(self, table: TableVersion) -> None:
        """`table` has been written to the stream."""
        table = self._box.confirm() or table
        receipt = DeliveryReceipt(
            service=table.service,
            generation=table.generation,
            digest=table.digest,
            peer=self.peer,
            channel="grpc",
            at_s=self._registry.clock.wall(),
        )
        self._registry.tables.on_receipt(receipt)

    def offer(self, table: TableVersion) -> None:
        """A new table of some service with this jobID exists."""
        if table.service == self.service:
            self._box.offer(table)
        self._box.poke()

    def start_over(self) -> None:
        """The service begins anew, its generations too."""
        self._box.reset()
        self._box.poke()

    def close(self) -> None:
        """End the stream; what it stood for is reported as left."""
        self._bind(None)
        self._box.close()

    def _follow(self) -> None:
        """Bind to the service that the peer belongs to now, and take over its newest table."""
        found = self._registry.tables.resolve(self.job_id, self.peer_ip)
        if isinstance(found, Unresolved):
            self.unresolved = found.reason
            self._bind(None)
            return
        self.unresolved = ""
        self._bind(found)
        table = self._registry.current(found)
        if table is not None:
            self._box.offer(table)

    def _bind(self, service: ServiceRef | None) -> None:
        if service == self.service:
            return
        tables = self._registry.tables
        if self.service is not None:
            tables.subscriber_left(self.service, role=self.role, peer=self.peer, kind="ranktable")
        self.service = service
        if service is None:
            return
        if service != self._last_service:
            self._box.reset()
            self._last_service = service
        tables.subscriber_joined(service, role=self.role, peer=self.peer, kind="ranktable")


class Mailboxes:
    """The registry of registrations, subscriptions and long polls."""

    def __init__(self, *, tables: TablePort, clock: Clock, limits: MailboxLimits) -> None:
        self.tables = tables
        self.clock = clock
        self.limits = limits
        self.closing = asyncio.Event()
        self.seats = Seats(
            limit=limits.max_subscribers,
            limit_per_ip=limits.max_subscribers_per_ip,
            many_behind=limits.many_behind,
        )
        self._registrations: Registrations[str] = Registrations(limit=limits.max_registrations)
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._latest: dict[ServiceRef, TableVersion] = {}
        self._waiters: dict[ServiceRef, set[asyncio.Event]] = {}
        self._foreign: dict[str, set[asyncio.Event]] = {}

    def register(self, job_id: str) -> None:
        """Remember that `job_id` may subscribe; raises LimitReached."""
        self._registrations.add(job_id, in_use=self._subscriptions.__contains__)

    def registered(self, job_id: str) -> bool:
        """Whether Subscribe is accepted for `job_id`."""
        return job_id in self._registrations

    @contextmanager
    def subscribe(self, job_id: str, *, role: str, peer: str, peer_ip: str) -> Iterator[Subscription]:
        """One subscriber for the time of the block; raises NotRegistered, LimitReached."""
        if not self.registered(job_id):
            raise NotRegistered(job_id, role)
        with self.seats.seat(peer_ip):
            subscription = Subscription(self, job_id=job_id, role=role, peer=peer, peer_ip=peer_ip)
            self._subscriptions.setdefault(job_id, set()).add(subscription)
            if self.closing.is_set():
                subscription.close()
            try:
                yield subscription
            finally:
                subscription.close()
                self._leave(subscription)

    def publish(self, table: TableVersion) -> bool:
        """Make `table` the newest of its service and wake everybody; False if a newer one is known."""
        known = self._latest.get(table.service)
        if known is not None and table.generation <= known.generation:
            return False
        self._latest[table.service] = table
        job_id = table.service.job_id
        for subscription in self._subscriptions.get(job_id, ()):
            subscription.offer(table)
        for event in (*self._waiters.get(table.service, ()), *self._foreign.get(job_id, ())):
            event.set()
        return True

    def current(self, service: ServiceRef) -> TableVersion | None:
        """The newest table known for `service`, published here or held by the owner of the tables."""
        published, held = self._latest.get(service), self.tables.current(service)
        if published is None or held is None:
            return published or held
        return held if held.generation > published.generation else published

    def forget(self, service: ServiceRef) -> None:
        """The service is gone; should it come back, its generations begin anew."""
        self._latest.pop(service, None)
        for subscription in self._subscriptions.get(service.job_id, ()):
            if subscription.service == service:
                subscription.start_over()

    @property
    def open_streams(self) -> int:
        """Rank table streams that are open now, of whatever service."""
        return sum(len(group) for group in self._subscriptions.values())

    def subscribers(self, service: ServiceRef) -> tuple[GrpcPeer, ...]:
        """Who is connected for `service` now, in a stable order."""
        return tuple(sorted(GrpcPeer(one.peer, one.role) for one in self._bound(service)))

    def owed(self, service: ServiceRef) -> tuple[Owed, ...]:
        """Connected subscribers that have not been given the newest table yet."""
        found = [
            Owed(destination=GrpcPeer(one.peer, one.role), generation=table.generation, digest=table.digest)
            for one in self._bound(service)
            if (table := one.owed) is not None
        ]
        return tuple(sorted(found, key=lambda owed: str(owed.destination)))

    def unresolved(self) -> tuple[tuple[str, GrpcPeer, str], ...]:
        """Open streams that get no table: jobID, peer, the reason."""
        return tuple(
            (one.job_id, GrpcPeer(one.peer, one.role), one.unresolved)
            for group in self._subscriptions.values()
            for one in group
            if one.unresolved
        )

    @property
    def waiting(self) -> int:
        """Long polls that wait now."""
        return sum(map(len, self._waiters.values()))

    async def wait_newer(self, service: ServiceRef, digest: str, deadline_s: float) -> TableVersion | None:
        """The newest table once it differs from `digest`; None after `deadline_s` of the clock.

        Raises LimitReached when too many wait already.
        """
        if (table := self._differs(service, digest)) is not None or self.closing.is_set():
            return table
        if self.waiting >= self.limits.max_waiters:
            raise LimitReached(f"{self.limits.max_waiters} long polls are open; no room for another")
        event = asyncio.Event()
        self._waiters.setdefault(service, set()).add(event)
        try:
            with suppress(TimeoutError):
                async with self.clock.timeout(deadline_s):
                    while not self.closing.is_set():
                        await event.wait()
                        event.clear()
                        if (table := self._differs(service, digest)) is not None:
                            return table
            return self._differs(service, digest)
        finally:
            _discard(self._waiters, service, event)

    @contextmanager
    def foreign(self, job_id: str) -> Iterator[asyncio.Event]:
        """For the time of the block: an event that is set when a foreign job turns out to be ours."""
        event = asyncio.Event()
        self._foreign.setdefault(job_id, set()).add(event)
        try:
            yield event
        finally:
            _discard(self._foreign, job_id, event)

    def close(self) -> None:
        """End every stream and long poll; later ones end at once."""
        self.closing.set()
        for group in list(self._subscriptions.values()):
            for subscription in group:
                subscription.close()
        for events in (*self._waiters.values(), *self._foreign.values()):
            for event in events:
                event.set()

    def _bound(self, service: ServiceRef) -> list[Subscription]:
        return [one for one in self._subscriptions.get(service.job_id, ()) if one.service == service]

    def _differs(self, service: ServiceRef, digest: str) -> TableVersion | None:
        table = self.current(service)
        return table if table is not None and table.digest != digest else None

    def _leave(self, subscription: Subscription) -> None:
        group = self._subscriptions[subscription.job_id]
        group.discard(subscription)
        if not group:
            del self._subscriptions[subscription.job_id]


def _discard(groups: dict[K, set[asyncio.Event]], key: K, event: asyncio.Event) -> None:
    """Take `event` out and leave no empty set behind."""
    group = groups[key]
    group.discard(event)
    if not group:
        del groups[key]


__all__ = ["Mailboxes", "Subscription"]
