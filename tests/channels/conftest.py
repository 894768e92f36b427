"""A running gRPC server on the loopback, and channels to it that are closed in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from grpc import aio

from mindie_ha.channels.grpc_server import GrpcServer
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.passthrough import Passthrough
from mindie_ha.channels.settings import MailboxLimits, ServerSettings, UpstreamSettings
from mindie_ha.channels.signal_streams import SignalStreams
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from tests.channels.fakes import FakeReports, FakeSignals, FakeTables


@dataclass
class Serving:
    """A server under test and what stands behind it."""

    tables: FakeTables
    mailboxes: Mailboxes
    server: GrpcServer
    port: int
    signals: FakeSignals
    reports: FakeReports
    streams: SignalStreams


Serve = Callable[..., Awaitable[Serving]]
Dial = Callable[[int], Any]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers; each is stopped after the test."""
    started: list[GrpcServer] = []

    async def start(
        *,
        tables: FakeTables | None = None,
        settings: ServerSettings | None = None,
        limits: MailboxLimits | None = None,
        upstream: UpstreamSettings | None = None,
    ) -> Serving:
        clock = LoopClock()
        tables = tables or FakeTables()
        mailboxes = Mailboxes(
            tables=tables, clock=clock, limits=limits or MailboxLimits(resolve_retry_s=0.05)
        )
        signals, reports = FakeSignals(tables), FakeReports()
        streams = SignalStreams(port=signals, clock=clock)
        server = GrpcServer(
            settings or ServerSettings(listen="127.0.0.1:0", stop_grace_s=0.2),
            tables=tables,
            mailboxes=mailboxes,
            streams=streams,
            reports=reports,
            passthrough=Passthrough(upstream or UpstreamSettings()),
            clock=clock,
            entropy=Entropy(1),
        )
        port = await server.start()
        started.append(server)
        return Serving(tables, mailboxes, server, port, signals, reports, streams)

    yield start
    for server in started:
        await server.stop()


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Opens channels, each with its own connection."""
    opened: list[Any] = []

    def connect(port: int) -> Any:
        channel = aio.insecure_channel(
            f"127.0.0.1:{port}",
            options=(
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 100),
                ("grpc.max_receive_message_length", 8 * 1024 * 1024),
            ),
        )
        opened.append(channel)
        return channel

    yield connect
    for channel in opened:
        await channel.close()
