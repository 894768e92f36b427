"""The one object that feeds all channels.

A table goes to its ConfigMaps first, because a pod that boots now reads nothing else; then to the gRPC
subscribers; then to the HTTP targets. The ConfigMap holds the others back only for a bounded time: a
failing API must not keep a table from a connected controller. Each destination is owed the newest table
until it has it; `pending` lists what is owed.

After a restart the same call replays: gRPC subscribers are new and get the current table when they come,
a ConfigMap says itself what it holds, and an HTTP target gets the table once more, with its generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from mindie_ha.channels.configmap import ConfigMapWriter
from mindie_ha.channels.deliveries import Delivery, DeliveryTools
from mindie_ha.channels.http_push import HttpPush
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.ports import (
    ConfigMapPort,
    ConfigMapTarget,
    Destination,
    GrpcPeer,
    HttpTarget,
    Owed,
    ProblemListener,
    ServiceRef,
    TablePort,
    TableVersion,
    Target,
)
from mindie_ha.channels.settings import PublisherSettings
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.tasks import Supervisor


class Publisher:
    """Publishes tables and knows what is still owed; one per process."""

    def __init__(
        self,
        *,
        tables: TablePort,
        mailboxes: Mailboxes,
        configmaps: ConfigMapPort,
        http: HttpPush,
        clock: Clock,
        entropy: Entropy,
        supervisor: Supervisor,
        settings: PublisherSettings,
        on_problem: ProblemListener,
    ) -> None:
        self._mailboxes = mailboxes
        self._configmaps = ConfigMapWriter(configmaps)
        self._http = http
        self._settings = settings
        self._clock = clock
        self._tools = DeliveryTools(
            clock=clock,
            entropy=entropy,
            supervisor=supervisor,
            settings=settings.delivery,
            on_receipt=tables.on_receipt,
            on_problem=on_problem,
        )
        self._deliveries: dict[ServiceRef, dict[Target, Delivery]] = {}
        self._generations: dict[ServiceRef, int] = {}
        self._held_back: dict[ServiceRef, TableVersion] = {}

    async def publish(
        self,
        table: TableVersion,
        destinations: Sequence[Target],
    ) -> None:
        """Hand `table` to every channel; returns when each has it to deliver, not when it is delivered.

        `destinations` replaces what the service had: a target that is not in it any more is owed nothing.
        An older generation than the last is ignored. A caller that is cancelled while the ConfigMap is slow
        still leaves the table with every channel.
        """
        if table.generation < self._generations.get(table.service, table.generation):
            return
        self._generations[table.service] = table.generation
        self._held_back[table.service] = table
        dropped = self._take_over(table.service, destinations)
        deliveries = self._deliveries[table.service]
        first = [one for one in deliveries.values() if one.channel == "configmap"]
        for delivery in first:
            delivery.offer(table)
        try:
            await self._bounded(first)
        finally:
            self._fan_out(table)
        await asyncio.gather(*(delivery.close() for delivery in dropped))

    def pending(self, service: ServiceRef) -> tuple[Owed, ...]:
        """What is still owed, in the order of the channels."""
        deliveries = self._deliveries.get(service, {}).values()
        owed: dict[Destination, Owed] = {one.destination: one for one in self._mailboxes.owed(service)}
        owed |= {one.target: found for one in deliveries if (found := one.owed) is not None}
        table = self._held_back.get(service)
        if table is not None:
            later: list[Destination] = [*self._mailboxes.subscribers(service)]
            later += [one.target for one in deliveries if one.channel == "http"]
            for one in later:
                waiting = Owed(destination=one, generation=table.generation, digest=table.digest)
                owed.setdefault(one, waiting)
        return tuple(sorted(owed.values(), key=_channel_order))

    def subscribers(self, service: ServiceRef) -> tuple[GrpcPeer, ...]:
        """gRPC subscribers that are connected now; whoever comes later gets the current table at once."""
        return self._mailboxes.subscribers(service)

    def push_again(self, service: ServiceRef) -> int:
        """Send the current table to the HTTP targets once more; returns how many there are."""
        table = self._mailboxes.current(service)
        pushes = [one for one in self._deliveries.get(service, {}).values() if one.channel == "http"]
        if table is None:
            return 0
        for delivery in pushes:
            delivery.repeat(table)
        return len(pushes)

    async def wait_newer(self, service: ServiceRef, digest: str, deadline_s: float) -> TableVersion | None:
        """The newest table once it differs from `digest`; None after `deadline_s`. Raises LimitReached."""
        return await self._mailboxes.wait_newer(service, digest, deadline_s)

    async def forget(self, service: ServiceRef) -> None:
        """The service is gone: nothing is owed any more, and its generations may begin anew."""
        self._mailboxes.forget(service)
        self._generations.pop(service, None)
        self._held_back.pop(service, None)
        deliveries = self._deliveries.pop(service, {})
        await asyncio.gather(*(delivery.close() for delivery in deliveries.values()))

    async def close(self) -> None:
        """Stop every delivery and close the HTTP session; what is owed then stays owed."""
        everything = [one for group in self._deliveries.values() for one in group.values()]
        await asyncio.gather(*(delivery.close() for delivery in everything))
        await self._http.close()

    def _take_over(self, service: ServiceRef, destinations: Sequence[Target]) -> list[Delivery]:
        """Make the service's deliveries those of `destinations`; returns the ones that ended."""
        known = self._deliveries.get(service, {})
        self._deliveries[service] = {
            target: known.get(target) or self._delivery(service, target)
            for target in dict.fromkeys(destinations)
        }
        dropped = [one for target, one in known.items() if target not in self._deliveries[service]]
        for delivery in dropped:
            delivery.stop()
        return dropped

    def _delivery(self, service: ServiceRef, target: Target) -> Delivery:
        if isinstance(target, ConfigMapTarget):
            write = partial(self._configmaps.write, target)
            return Delivery(service, target, channel="configmap", attempt=write, tools=self._tools)
        return Delivery(
            service,
            target,
            channel="http",
            attempt=partial(self._http.post, target),
            tools=self._tools,
        )

    async def _bounded(self, deliveries: list[Delivery]) -> None:
        """Wait for the ConfigMaps, at most `configmap_wait_s`."""
        with suppress(TimeoutError):
            async with self._clock.timeout(self._settings.configmap_wait_s):
                for delivery in deliveries:
                    await delivery.at_rest()

    def _fan_out(self, table: TableVersion) -> None:
        """Offer `table` to gRPC, then HTTP, unless a newer one got there meanwhile."""
        if self._held_back.get(table.service) is not table:
            return
        del self._held_back[table.service]
        self._mailboxes.publish(table)
        for delivery in self._deliveries.get(table.service, {}).values():
            if delivery.channel == "http":
                delivery.offer(table)


def _channel_order(owed: Owed) -> tuple[int, str]:
    kinds = (ConfigMapTarget, GrpcPeer, HttpTarget)
    return kinds.index(type(owed.destination)), str(owed.destination)


__all__ = ["Publisher"]
