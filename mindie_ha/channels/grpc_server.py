"""The gRPC server: transport limits, dispatch, start and stop.

One dispatcher serves every method: ours by name, the rest through `Passthrough`. A servicer that raises ends
its own call with UNKNOWN and the text (grpc.aio does that and logs the traceback); nothing ends the process.
Stopping ends our streams cleanly first and cuts what is left after a bounded grace.

Source: rank table contract §4.1. Two differences: a server that cannot listen raises, where the reference
stays up deaf; and connections are bounded in all, while streams are bounded per address.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import grpc
from grpc import aio

from mindie_ha.channels.calls import Requests, Route, RpcContext
from mindie_ha.channels.config_service import ConfigService
from mindie_ha.channels.errors import ServerNotStarted
from mindie_ha.channels.fault_service import FaultService
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.passthrough import Passthrough
from mindie_ha.channels.ports import FaultPort, TablePort
from mindie_ha.channels.pubfault_service import PubFaultService
from mindie_ha.channels.rates import QueryGate, UnaryRates
from mindie_ha.channels.settings import ServerSettings, TlsFiles
from mindie_ha.channels.signal_streams import SignalStreams
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
        request_timeout_s: float,
    ) -> None:
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
                await self._serve(method, requests, context)
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
        ("grpc.keepalive_time_ms", round(settings.keepalive_s * 1000)),
        ("grpc.keepalive_timeout_ms", round(settings.keepalive_timeout_s * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", round(settings.min_client_ping_s * 1000)),
        # Two processes on one port would each get half of the clients.
        ("grpc.so_reuseport", 0),
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
    ) -> None:
        self._settings = settings
        self._mailboxes = mailboxes
        self._streams = streams
        self._passthrough = passthrough
        config = ConfigService(
            tables=tables,
            mailboxes=mailboxes,
            passthrough=passthrough,
            write_timeout_s=settings.write_timeout_s,
        )
        fault = FaultService(
            tables=tables,
            mailboxes=mailboxes,
            passthrough=passthrough,
            streams=streams,
            queries=QueryGate(clock=clock),
            entropy=entropy,
            write_timeout_s=settings.write_timeout_s,
        )
        public = PubFaultService(reports=reports, passthrough=passthrough)
        rates = UnaryRates(
            unary_per_s=settings.unary_rate_per_s, health_per_s=settings.health_rate_per_s, clock=clock
        )
        self._dispatcher = Dispatcher(
            {**config.routes(), **fault.routes(), **public.routes()},
            passthrough=passthrough,
            rates=rates,
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
                credentials = await asyncio.to_thread(_credentials, self._settings.tls)
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


def _credentials(files: TlsFiles) -> Any:
    pair = (_tls_file("tls_key", files.key_path), _tls_file("tls_cert", files.cert_path))
    ca = _tls_file("tls_client_ca", files.ca_path) if files.ca_path else None
    return grpc.ssl_server_credentials([pair], root_certificates=ca, require_client_auth=ca is not None)


def _tls_file(setting: str, path: str) -> bytes:
    where, advice = f"grpc.{setting} {path}".rstrip(), "tls_cert and tls_key name files that can be read"
    if not path:
        raise ServerNotStarted("is not set", where=where, advice=advice)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ServerNotStarted(f"cannot be read: {error.strerror}", where=where, advice=advice) from None


__all__ = ["Dispatcher", "GrpcServer", "server_options"]
