"""The gRPC server: transport limits, dispatch, start and stop.

One dispatcher serves every method: ours by name, the rest through `Passthrough`. A servicer that raises ends
its own call with UNKNOWN and the text (grpc.aio does that and logs the traceback); nothing ends the process.
Stopping ends our streams cleanly first and cuts what is left after a bounded grace.

Source: rank table contract §4.1. Two differences: a server that cannot listen raises, where the reference
stays up deaf; and connections per address are bounded by `connection_guard.py`, because gRPC cannot.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import grpc
from grpc import aio

from mindie_ha.channels.calls import Requests, Route, RpcContext, peer_address
from mindie_ha.channels.config_service import ConfigService
from mindie_ha.channels.errors import LimitReached, ServerNotStarted
from mindie_ha.channels.fault_service import FaultService
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.outflow import Outflow
from mindie_ha.channels.passthrough import Passthrough
from mindie_ha.channels.ports import FaultPort, TablePort
from mindie_ha.channels.pubfault_service import PubFaultService
from mindie_ha.channels.rates import QueryGate, UnaryRates
from mindie_ha.channels.registrations import Seats
from mindie_ha.channels.settings import ServerSettings
from mindie_ha.channels.signal_streams import SignalStreams
from mindie_ha.channels.tls_files import Heard, TlsWatch, server_credentials, unheard
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy


class CallDetails(Protocol):
    """`grpc.HandlerCallDetails`."""

    method: str


class Dispatcher:
    """Finds the servicer of a method; grpc calls it a generic handler."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        *,
        passthrough: Passthrough,
        rates: UnaryRates,
        calls: Seats,
        request_timeout_s: float,
    ) -> None:
        self._calls = calls
        self._routes = routes
        self._passthrough = passthrough
        self._rates = rates
        self._request_timeout_s = request_timeout_s
        self._open_calls = 0
        self._none_open = asyncio.Event()
        self._none_open.set()

    def service(self, details: CallDetails) -> Any:
        """The handler of one call; there is one for every method name."""
        method = details.method

        async def serve(requests: Requests, context: RpcContext) -> None:
            self._open_calls += 1
            self._none_open.clear()
            try:
                with self._calls.seat(peer_address(context.peer())[1]):
                    await self._serve(method, requests, context)
            except LimitReached as error:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
            finally:
                self._open_calls -= 1
                if not self._open_calls:
                    self._none_open.set()

        return grpc.stream_stream_rpc_method_handler(serve)

    async def none_open(self) -> None:
        """Wait until no servicer runs any more."""
        await self._none_open.wait()

    async def _serve(self, method: str, requests: Requests, context: RpcContext) -> None:
        if not self._rates.allow(method):
            await context.abort(grpc.StatusCode.UNKNOWN, f"qps exceeded, method={method}")
        route = self._routes.get(method)
        if route is None:
            await self._passthrough.forward(method, requests, context)
        else:
            await route(await self._first(requests, context), context)

    async def _first(self, requests: Requests, context: RpcContext) -> bytes:
        try:
            async with asyncio.timeout(self._request_timeout_s):
                return await anext(requests)
        except StopAsyncIteration:
            await context.abort(grpc.StatusCode.INTERNAL, "the call ended without a request message")
        except TimeoutError:
            await context.abort(
                grpc.StatusCode.DEADLINE_EXCEEDED, f"no request message within {self._request_timeout_s:g} s"
            )


def server_options(settings: ServerSettings) -> tuple[tuple[str, int], ...]:
    """The transport's limits in gRPC's own names; times in milliseconds."""
    return (
        ("grpc.max_receive_message_length", settings.max_receive_bytes),
        ("grpc.max_send_message_length", settings.max_send_bytes),
        ("grpc.max_concurrent_streams", settings.max_streams_per_connection),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.max_connection_idle_ms", round(settings.idle_connection_s * 1000)),
        ("grpc.server_handshake_timeout_ms", round(settings.handshake_s * 1000)),
        ("grpc.keepalive_time_ms", round(settings.keepalive_s * 1000)),
        ("grpc.keepalive_timeout_ms", round(settings.keepalive_timeout_s * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", round(settings.min_client_ping_s * 1000)),
        # Two processes on one port would each get half of the clients.
        ("grpc.so_reuseport", 0),
        # Messages are small: no estimates of bandwidth, and no buffers that are sized by them.
        ("grpc.http2.bdp_probe", 0),
    )


class GrpcServer:
    """Serves tables and faults, passes the rest through; owns the passthrough, not mailboxes or streams."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        tables: TablePort,
        mailboxes: Mailboxes,
        streams: SignalStreams,
        reports: FaultPort,
        passthrough: Passthrough,
        clock: Clock,
        entropy: Entropy,
        tls_heard: Heard = unheard,
    ) -> None:
        self._settings = settings
        self._tls_heard = tls_heard
        self._mailboxes = mailboxes
        self._streams = streams
        self._passthrough = passthrough
        self._dispatcher = Dispatcher(
            _routes(
                settings,
                tables=tables,
                mailboxes=mailboxes,
                streams=streams,
                reports=reports,
                passthrough=passthrough,
                clock=clock,
                entropy=entropy,
            ),
            passthrough=passthrough,
            rates=UnaryRates(
                unary_per_s=settings.unary_rate_per_s, health_per_s=settings.health_rate_per_s, clock=clock
            ),
            calls=Seats(
                limit=settings.max_calls,
                limit_per_ip=settings.max_calls_per_ip,
                many_behind=settings.many_behind,
                what="calls",
            ),
            request_timeout_s=settings.request_timeout_s,
        )
        self._server = aio.server(options=server_options(settings))
        self._server.add_generic_rpc_handlers((self._dispatcher,))
        self.port = 0

    async def start(self) -> int:
        """Listen; returns the port. Raises ServerNotStarted with the address and the reason."""
        listen = self._settings.listen
        address = f"[::]{listen}" if listen.startswith(":") else listen
        try:
            _try_address(address)
            if self._settings.tls is None:
                self.port = self._server.add_insecure_port(address)
            else:
                watch = TlsWatch(self._settings.tls, where="grpc.tls", heard=self._tls_heard)
                credentials = await asyncio.to_thread(server_credentials, watch)
                self.port = self._server.add_secure_port(address, credentials)
        except (RuntimeError, OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ServerNotStarted(
                f"cannot listen: {reason}",
                where=f"grpc.listen {listen}",
                advice="give [HOST]:PORT with a free port",
            ) from error
        await self._server.start()
        return self.port

    async def stop(self) -> None:
        """End our streams, give the rest `stop_grace_s`, then cut it."""
        self._mailboxes.close()
        self._streams.close()
        await self._server.stop(self._settings.stop_grace_s)
        # grpc returns before the servicers that it cut off have ended.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.stop_grace_s):
                await self._dispatcher.none_open()
        await self._passthrough.close()


def _routes(
    settings: ServerSettings,
    *,
    tables: TablePort,
    mailboxes: Mailboxes,
    streams: SignalStreams,
    reports: FaultPort,
    passthrough: Passthrough,
    clock: Clock,
    entropy: Entropy,
) -> Mapping[str, Route]:
    """Our own servicers by full method name."""
    outflow = Outflow(limit_bytes=settings.unread_bytes_per_ip)
    config = ConfigService(
        tables=tables,
        mailboxes=mailboxes,
        passthrough=passthrough,
        outflow=outflow,
        write_timeout_s=settings.write_timeout_s,
    )
    fault = FaultService(
        tables=tables,
        mailboxes=mailboxes,
        passthrough=passthrough,
        streams=streams,
        outflow=outflow,
        queries=QueryGate(clock=clock),
        entropy=entropy,
        write_timeout_s=settings.write_timeout_s,
    )
    public = PubFaultService(reports=reports, passthrough=passthrough)
    return {**config.routes(), **fault.routes(), **public.routes()}


def _try_address(address: str) -> None:
    """Bind and let go: gRPC itself would not say why it cannot, and would write to stderr by itself."""
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        raise ValueError("not [HOST]:PORT")
    host = host.strip("[]")
    both = host == "::" and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, int(port)), family=family, dualstack_ipv6=both):
        pass


__all__ = ["Dispatcher", "GrpcServer", "server_options"]
