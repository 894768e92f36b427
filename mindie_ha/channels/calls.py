"""What a servicer sees of one gRPC call.

grpc ships no types, so the few methods that we use are a Protocol. Every call is served as a stream of
bytes in both directions: on the wire a unary call is a stream of one message, and only so can a call that
turns out to be somebody else's be passed on byte for byte.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NoReturn, Protocol
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError

Metadata = Sequence[tuple[str, str | bytes]]


class RpcContext(Protocol):
    """The part of `grpc.aio.ServicerContext` that the channels use."""

    async def write(self, message: bytes) -> None:
        """Send one message; returns when the transport has taken it."""
        ...

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = ()
    ) -> NoReturn:
        """End the call with an error."""
        ...

    async def send_initial_metadata(self, initial_metadata: Metadata) -> None:
        """Send the headers before any message."""
        ...

    def set_trailing_metadata(self, trailing_metadata: Metadata) -> None:
        """What goes out with the final status."""
        ...

    def invocation_metadata(self) -> Metadata | None:
        """The client's headers."""
        ...

    def time_remaining(self) -> float | None:
        """Seconds until the client's deadline; None without one."""
        ...

    def peer(self) -> str:
        """The remote address in gRPC's own spelling."""
        ...


Requests = AsyncIterator[bytes]
Route = Callable[[bytes, RpcContext], Awaitable[None]]
"""Serves a call from its first message."""


def peer_address(peer: str) -> tuple[str, str]:
    """`(ip:port, ip)` of gRPC's `ipv4:1.2.3.4:5` or `ipv6:%5B::1%5D:5`; the ip is empty if there is none.

    An IPv4 address in IPv6 clothes is undressed, because pod IPs are written plainly.
    """
    _, _, address = unquote(peer).partition(":")
    host, _, port = address.rpartition(":")
    try:
        ip = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return address or peer, ""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return f"[{ip}]:{port}", str(ip)
        return f"{ip.ipv4_mapped}:{port}", str(ip.ipv4_mapped)
    return f"{ip}:{port}", str(ip)


class Decoder(Protocol):
    """A generated message class."""

    def FromString(self, data: bytes) -> ClientIdentity:  # noqa: N802 - protobuf's name
        """Decode; raises DecodeError."""
        ...


class ClientIdentity(Protocol):
    """`ClientInfo`, of either service."""

    jobId: str  # noqa: N815 - the wire's name
    role: str


async def decode_client(message: type, data: bytes, context: RpcContext) -> ClientIdentity:
    """The caller's `ClientInfo`; a malformed one ends the call with INTERNAL, as on the wire today."""
    decoder: Decoder = message  # type: ignore[assignment]
    try:
        return decoder.FromString(data)
    except DecodeError as error:
        await context.abort(
            grpc.StatusCode.INTERNAL, f"request is not a ClientInfo ({error}); send jobId = 1, role = 2"
        )


__all__ = ["ClientIdentity", "Metadata", "Requests", "Route", "RpcContext", "decode_client", "peer_address"]
