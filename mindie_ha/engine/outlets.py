"""The channels of one process, built from the settings; they begin and end with each time we lead.

Order at stop: streams end first, so that their clients find whoever leads next, then deliveries; what is owed
then stays owed and is handed over by whoever publishes next. Each time begins with channels that know
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import aiohttp

from mindie_ha.channels.errors import UpstreamSilent
from mindie_ha.channels.grpc_server import GrpcServer
from mindie_ha.channels.http_push import HttpPush
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.passthrough import Passthrough, connector
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
from mindie_ha.cluster.writer import Fence, Writer
from mindie_ha.engine.boot_tables import BootTables
from mindie_ha.engine.peer_checks import Proxies
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
        fence: Fence,
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
        self._many_behind = Proxies(settings.grpc.trusted_proxies).__contains__
        self._limits = _limits(settings.grpc, many_behind=self._many_behind)
        self._signals = signals
        self._reports = reports
        self._entropy = entropy
        self._supervisor = supervisor
        self._boot_tables = BootTables(writer)
        self._push = partial(HttpPush, session, timeout_s=settings.table.push_timeout_s, gate=fence.guard)
        self._server: GrpcServer | None = None
        self._passthrough: Passthrough | None = None
        self.port = 0
        desk.receipt_listeners.append(self._receipt)
        self.begin()

    def begin(self) -> None:
        """Channels without streams and deliveries; what an earlier time left behind is forgotten."""
        self.mailboxes = Mailboxes(tables=self._desk, clock=self._clock, limits=self._limits)
        self.streams = SignalStreams(port=self._signals, clock=self._clock)
        self._signals.attach(self.streams)
        self._publisher = Publisher(
            tables=self._desk,
            mailboxes=self.mailboxes,
            configmaps=self._boot_tables,
            http=self._push(),
            clock=self._clock,
            entropy=self._entropy,
            supervisor=self._supervisor,
            settings=PublisherSettings(),
            on_problem=self._problem,
        )
        self._desk.attach(self._publisher)

    async def start(self) -> int:
        """Listen; the gRPC port."""
        upstream = _upstream_settings(self._settings)
        self._passthrough = Passthrough(upstream, connect=connector(upstream, heard=self.certificates_heard))
        self._server = GrpcServer(
            _server_settings(self._settings, many_behind=self._many_behind),
            tables=self._desk,
            mailboxes=self.mailboxes,
            streams=self.streams,
            reports=self._reports,
            entropy=self._entropy.child("signals"),
            passthrough=self._passthrough,
            clock=self._clock,
            tls_heard=self.certificates_heard,
        )
        self.port = await self._server.start()
        return self.port

    async def stop(self) -> None:
        """End streams, then deliveries."""
        self.mailboxes.close()
        self.streams.close()
        if self._server is not None:
            await self._server.stop()
            self._server = None
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

    @property
    def upstream_configured(self) -> bool:
        """Whether reports have somebody else to go to."""
        return bool(self._settings.upstream)

    async def tell_upstream(self, method: str, request: bytes) -> bytes:
        """One unary call to the upstream. Raises UpstreamSilent."""
        if self._passthrough is None:
            raise UpstreamSilent("the gRPC server is not started")
        return await self._passthrough.ask(method, request)

    def certificates_heard(self, used: bool, text: str) -> None:
        """Certificate files were renewed, or could not be."""
        self._metrics.tls_renewals.labels("used" if used else "refused").inc()
        (self._log.info if used else self._log.warning)("certificate files", result=text)

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


def _limits(grpc: GrpcSettings, *, many_behind: Callable[[str], bool]) -> MailboxLimits:
    return MailboxLimits(
        max_registrations=grpc.max_registrations,
        max_subscribers=grpc.max_subscribers,
        max_subscribers_per_ip=grpc.max_subscribers_per_address,
        many_behind=many_behind,
    )


def _upstream_settings(grpc: GrpcSettings) -> UpstreamSettings:
    tls = None
    if grpc.upstream_tls_ca:
        tls = TlsFiles(
            cert_path=grpc.upstream_tls_cert, key_path=grpc.upstream_tls_key, ca_path=grpc.upstream_tls_ca
        )
    return UpstreamSettings(address=grpc.upstream, tls=tls, tls_name=grpc.upstream_tls_name)


def _server_settings(grpc: GrpcSettings, *, many_behind: Callable[[str], bool]) -> ServerSettings:
    tls = None
    if grpc.tls_cert or grpc.tls_key:
        tls = TlsFiles(cert_path=grpc.tls_cert, key_path=grpc.tls_key, ca_path=grpc.tls_client_ca)
    return ServerSettings(
        listen=grpc.listen,
        tls=tls,
        max_receive_bytes=grpc.max_message_bytes,
        max_streams_per_connection=grpc.max_streams_per_connection,
        max_connections=grpc.max_connections,
        max_calls_per_ip=grpc.max_calls_per_address,
        many_behind=many_behind,
        unread_bytes_per_ip=grpc.max_unread_bytes_per_address,
        idle_connection_s=grpc.idle_connection_s,
        handshake_s=grpc.handshake_s,
    )
