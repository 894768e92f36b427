"""Everything that is not ours goes to `upstream`, byte for byte.

Messages are never decoded. Headers, final status, its text, trailers, the client's deadline and its
cancellation go through; what a transport writes itself (user agent, encodings) does not. Unary and all
streaming kinds are one code path, because on the wire they are.

The reference allows 64 streams on one connection and a stream beyond them waits for ever, so calls are
spread over as many connections as they need.

Without an upstream the answer is UNIMPLEMENTED, with the method and the setting that would change it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import grpc
from grpc import aio

from mindie_ha.channels.calls import Metadata, Requests, RpcContext
from mindie_ha.channels.errors import UpstreamSilent
from mindie_ha.channels.settings import UpstreamSettings
from mindie_ha.channels.tls_files import Heard, TlsWatch, unheard

_OF_THE_TRANSPORT = frozenset(
    {"user-agent", "te", "content-type", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding"}
)
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 8 * 1024 * 1024),
    ("grpc.max_send_message_length", 8 * 1024 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # A dead upstream is noticed within 40 s; the reference allows a ping each 3 s.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.bdp_probe", 0),
    # Channels to one address share a connection unless told not to, and with it its 64 streams.
    ("grpc.use_local_subchannel_pool", 1),
)


class Connect(Protocol):
    """Opens channels to `host:port`; the transport seam."""

    def __call__(self, address: str) -> Any:
        """A new channel."""
        ...

    def renewed(self) -> bool:
        """Whether channels that were opened before are of yesterday."""
        ...


class Plaintext:
    """Channels as the reference serves them: without TLS."""

    def __call__(self, address: str) -> Any:
        """A new channel."""
        return aio.insecure_channel(address, options=_CHANNEL_OPTIONS)

    def renewed(self) -> bool:
        """Never."""
        return False


class Tls:
    """Channels that check the upstream's certificate and show ours, if we have one."""

    def __init__(self, watch: TlsWatch, *, name: str = "") -> None:
        self._watch = watch
        self._options = (("grpc.ssl_target_name_override", name),) if name else ()

    def __call__(self, address: str) -> Any:
        """A new channel with what the files hold now. Raises ServerNotStarted."""
        found = self._watch.current()
        credentials = grpc.ssl_channel_credentials(found.ca, found.key or None, found.cert or None)
        return aio.secure_channel(address, credentials, options=(*_CHANNEL_OPTIONS, *self._options))

    def renewed(self) -> bool:
        """Whether the files were renewed since the last call."""
        return self._watch.renewed() is not None


def connector(settings: UpstreamSettings, *, heard: Heard = unheard) -> Connect:
    """How the upstream is dialled. Reads the TLS files: raises ServerNotStarted."""
    if settings.tls is None:
        return Plaintext()
    watch = TlsWatch(settings.tls, where="grpc.upstream_tls", heard=heard, client=True)
    watch.load()
    return Tls(watch, name=settings.tls_name)


async def only(message: bytes) -> AsyncIterator[bytes]:
    """The requests of a unary call."""
    yield message


class _Upstream:
    """Channels to one address, each with a bounded number of streams."""

    def __init__(self, settings: UpstreamSettings, connect: Connect) -> None:
        self._settings = settings
        self._connect = connect
        self._load: dict[Any, int] = {}
        self._retired: dict[Any, int] = {}

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[Any]:
        """A channel with room for one more stream; the fullest allowed number opens no further one."""
        if self._connect.renewed():
            await self._retire()
        channel = min(self._load, key=self._load.__getitem__, default=None)
        if channel is None or (
            self._load[channel] >= self._settings.streams_per_channel
            and len(self._load) < self._settings.max_channels
        ):
            channel = self._connect(self._settings.address)
            self._load[channel] = 0
        self._load[channel] += 1
        try:
            yield channel
        finally:
            await self._leave(channel)

    async def _retire(self) -> None:
        """Open no further stream on what is open; what carries none is closed now, the rest later."""
        idle = [channel for channel, load in self._load.items() if not load]
        self._retired |= {channel: load for channel, load in self._load.items() if load}
        self._load.clear()
        await asyncio.gather(*(channel.close() for channel in idle))

    async def _leave(self, channel: Any) -> None:
        if channel in self._load:
            self._load[channel] -= 1
        elif channel in self._retired:
            self._retired[channel] -= 1
            if not self._retired[channel]:
                del self._retired[channel]
                await channel.close()

    async def close(self) -> None:
        """Close every channel; calls on them end as cancelled."""
        channels = [*self._load, *self._retired]
        self._load.clear()
        self._retired.clear()
        await asyncio.gather(*(channel.close() for channel in channels))


class Passthrough:
    """Forwards calls to the upstream, if there is one."""

    def __init__(self, settings: UpstreamSettings, *, connect: Connect | None = None) -> None:
        self._settings = settings
        self._upstream = _Upstream(settings, connect or connector(settings))

    @property
    def configured(self) -> bool:
        """Whether there is an upstream."""
        return bool(self._settings.address)

    async def forward(
        self, method: str, requests: Requests, context: RpcContext, *, until: asyncio.Event | None = None
    ) -> None:
        """Serve the whole call from the upstream; `until` ends it early and cleanly, with status OK."""
        if not self.configured:
            await context.abort(
                grpc.StatusCode.UNIMPLEMENTED,
                f"mindie-ha does not serve {method}; set `grpc.upstream` to the address of ClusterD's "
                "Service to have it passed through",
            )
        async with self._upstream.channel() as channel:
            call = channel.stream_stream(method)(
                metadata=_passable(context.invocation_metadata()), timeout=context.time_remaining()
            )
            try:
                await _first_of(_relay(call, requests, context), until)
            finally:
                call.cancel()

    async def ask(self, method: str, request: bytes) -> bytes:
        """A unary call of our own. Raises UpstreamSilent; the caller bounds its time."""
        if not self.configured:
            raise UpstreamSilent("there is no upstream")
        async with self._upstream.channel() as channel:
            try:
                answer: bytes = await channel.unary_unary(method)(request)
            except aio.AioRpcError as error:
                raise UpstreamSilent(f"{error.code().name} {(error.details() or '')[:200]}") from None
        return answer

    async def close(self) -> None:
        """Close the connections to the upstream."""
        await self._upstream.close()


def _passable(metadata: Metadata | None) -> Metadata:
    return tuple((key, value) for key, value in metadata or () if key.lower() not in _OF_THE_TRANSPORT)


async def _first_of(relay: Any, until: asyncio.Event | None) -> None:
    """Run `relay` to its end, or stop it when `until` is set."""
    if until is None:
        await relay
        return
    tasks = {asyncio.create_task(relay), asyncio.create_task(until.wait())}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await _cancelled(tasks)


async def _cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _relay(call: Any, requests: Requests, context: RpcContext) -> None:
    """Copy both directions until the upstream ends the call, then end ours in the same way."""
    sender = asyncio.create_task(_send(call, requests), name="passthrough requests")
    try:
        await context.send_initial_metadata(_passable(await call.initial_metadata()))
        while (message := await call.read()) is not aio.EOF:
            await context.write(message)
        context.set_trailing_metadata(_passable(await call.trailing_metadata()))
    except aio.AioRpcError as error:
        await context.abort(error.code(), error.details() or "", _passable(error.trailing_metadata()))
    finally:
        await _cancelled({sender})


async def _send(call: Any, requests: Requests) -> None:
    # A call that the upstream has already ended takes no more; its status is what the client gets.
    with suppress(aio.AioRpcError, asyncio.InvalidStateError):
        async for message in requests:
            await call.write(message)
        await call.done_writing()


__all__ = ["Connect", "Passthrough", "Plaintext", "Tls", "connector", "only"]
