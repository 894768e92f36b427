"""The channels of one process, built from the settings, with one start and one stop.

Order at stop: streams end first, then deliveries; what is owed then stays owed and is handed over by whoever
publishes next.
"""

from __future__ import annotations

from collections.abc import Callable

import aiohttp

from mindie_ha.channels.grpc_server import GrpcServer
from mindie_ha.channels.http_push import HttpPush
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.passthrough import Passthrough
from mindie_ha.channels.ports import DeliveryProblem, DeliveryReceipt, FaultPort, ServiceRef, TableVersion
from mindie_ha.channels.publishing import Publisher
from mindie_ha.channels.settings import (
    MailboxLimits,
    PublisherSettings,
    ServerSettings,
    TlsFiles,
    UpstreamSettings,
)
from mindie_ha.channels.signal_streams import SignalStreams
from mindie_ha.cluster.writer import Writer
from mindie_ha.engine.boot_tables import BootTables
from mindie_ha.engine.signal_desk import SignalDesk
from mindie_ha.engine.tables import TableDesk
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import Supervisor
from mindie_ha.model.settings import GrpcSettings, Settings


class Outlets:
    """gRPC server, publisher and what they share."""

    def __init__(
        self,
        *,
        settings: Settings,
        desk: TableDesk,
        signals: SignalDesk,
        reports: FaultPort,
        writer: Writer,
        session: Callable[[], aiohttp.ClientSession],
        clock: Clock,
        entropy: Entropy,
        supervisor: Supervisor,
        log: Log,
        metrics: Metrics,
    ) -> None:
        self._desk = desk
        self._log = log
        self._metrics = metrics
        self._settings = settings.grpc
        self._clock = clock
        limits = MailboxLimits(
            max_registrations=settings.grpc.max_registrations, max_subscribers=settings.grpc.max_subscribers
        )
        self.mailboxes = Mailboxes(tables=desk, clock=clock, limits=limits)
        self.streams = SignalStreams(port=signals, clock=clock)
        signals.attach(self.streams)
        self._reports = reports
        self._entropy = entropy
        self._server: GrpcServer | None = None
        self._publisher = Publisher(
            tables=desk,
            mailboxes=self.mailboxes,
            configmaps=BootTables(writer),
            http=HttpPush(session, timeout_s=settings.table.push_timeout_s),
            clock=clock,
            entropy=entropy,
            supervisor=supervisor,
            settings=PublisherSettings(),
            on_problem=self._problem,
        )
        desk.attach(self._publisher)
        desk.receipt_listeners.append(self._receipt)

    async def start(self) -> int:
        """Listen; the gRPC port."""
        self._server = GrpcServer(
            _server_settings(self._settings),
            tables=self._desk,
            mailboxes=self.mailboxes,
            streams=self.streams,
            reports=self._reports,
            entropy=self._entropy.child("signals"),
            passthrough=Passthrough(UpstreamSettings(address=self._settings.upstream)),
            clock=self._clock,
        )
        return await self._server.start()

    async def stop(self) -> None:
        """End streams, then deliveries."""
        if self._server is not None:
            await self._server.stop()
        await self._publisher.close()

    def current(self, service: ServiceRef) -> TableVersion | None:
        """The table published last."""
        return self._desk.current(service)

    async def wait_newer(self, service: ServiceRef, digest: str, deadline_s: float) -> TableVersion | None:
        """The next table with another digest; None after `deadline_s`."""
        return await self._publisher.wait_newer(service, digest, deadline_s)

    def push_again(self, service: ServiceRef) -> int:
        """Send the current table to the push targets once more; how many there are."""
        return self._publisher.push_again(service)

    def _receipt(self, receipt: DeliveryReceipt) -> None:
        self._metrics.tables.labels(receipt.channel, "delivered").inc()
        self._log.info(
            "table handed over",
            service=str(receipt.service),
            generation=receipt.generation,
            channel=receipt.channel,
            peer=receipt.peer,
        )

    def _problem(self, problem: DeliveryProblem) -> None:
        self._metrics.tables.labels(problem.channel, "refused" if problem.refused else "failed").inc()
        self._log.warning(
            "table not handed over",
            service=str(problem.service),
            generation=problem.generation,
            channel=problem.channel,
            peer=problem.peer,
            attempts=problem.attempts,
            reason=problem.reason,
        )


def _server_settings(grpc: GrpcSettings) -> ServerSettings:
    tls = None
    if grpc.tls_cert or grpc.tls_key:
        tls = TlsFiles(cert_path=grpc.tls_cert, key_path=grpc.tls_key, ca_path=grpc.tls_client_ca)
    return ServerSettings(listen=grpc.listen, tls=tls)
