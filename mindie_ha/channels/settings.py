"""Bounds and times of the channels, with units; the defaults are the ones of the wire contract.

Source: rank table contract §4.1 (transport), §4.3 (sessions). Frozen values, checked where they are made;
the program's configuration is mapped onto them once, at start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


def nobody(ip: str) -> bool:
    """No address stands for many clients."""
    del ip
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxLimits:
    """How much peers may make us remember."""

    max_registrations: int = 10_000
    """Job ids registered and not subscribed are forgotten, oldest first, beyond this."""
    max_subscribers: int = 1024
    max_subscribers_per_ip: int = 512
    many_behind: Callable[[str], bool] = nobody
    """Addresses of proxies: bounds per address do not hold for them."""
    max_waiters: int = 1024
    """Long polls that wait at the same time."""
    max_name_chars: int = 253
    """Longest jobID or role that is accepted."""
    resolve_retry_s: float = 1.0
    """How often an open stream whose service is unknown asks again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files; with `ca_path` every client must show a certificate that it signed."""

    cert_path: str
    key_path: str
    ca_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The gRPC server."""

    listen: str = ":8899"
    """`host:port`, `[ipv6]:port`, or `:port` for every address; port 0 takes a free one."""
    tls: TlsFiles | None = None
    max_receive_bytes: int = 4 * 1024 * 1024
    max_send_bytes: int = 8 * 1024 * 1024
    max_streams_per_connection: int = 64
    max_connections: int = 1024
    max_calls: int = 8192
    max_calls_per_ip: int = 1024
    """Open calls, streams among them; further ones are refused."""
    many_behind: Callable[[str], bool] = nobody
    unread_bytes_per_ip: int = 8 * 1024 * 1024
    """How much the readers of one address may leave unread before it has to wait for itself."""
    idle_connection_s: float = 300.0
    """A connection without a call is closed; a client opens a new one when it needs it."""
    handshake_s: float = 20.0
    """A connection that does not say what it wants by then is closed."""
    keepalive_s: float = 60.0
    keepalive_timeout_s: float = 5.0
    min_client_ping_s: float = 3.0
    unary_rate_per_s: float = 1000.0
    health_rate_per_s: float = 10_000.0
    request_timeout_s: float = 10.0
    """A call whose first message does not come by then is ended."""
    write_timeout_s: float = 60.0
    """A reader that takes nothing for so long is cut off; it gets the current table when it comes back."""
    stop_grace_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """Where everything goes that is not ours; empty `address` means nowhere."""

    address: str = ""
    streams_per_channel: int = 48
    """Below the 64 that the reference allows on one connection; one more stream would wait for ever."""
    max_channels: int = 256
    """Below the 512 connections that the reference allows one address."""
    tls: TlsFiles | None = None
    """With it the upstream is dialled with TLS: `ca_path` says whom we believe, a pair who we are."""
    tls_name: str = ""
    """The name in the upstream's certificate, where it is not that of its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """One delivery loop per HTTP target or ConfigMap."""

    backoff_first_s: float = 0.5
    backoff_max_s: float = 30.0
    backoff_jitter: float = 0.2
    """Share by which each pause is moved up or down."""
    refused_pause_s: float = 300.0
    attempt_timeout_s: float = 10.0
    """Real time, a net under the time-outs of the transport."""

    def __post_init__(self) -> None:
        if not 0 < self.backoff_first_s <= self.backoff_max_s:
            raise ValueError(
                f"backoff_first_s {self.backoff_first_s} must be above 0 and at most backoff_max_s "
                f"{self.backoff_max_s}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherSettings:
    """The publisher that feeds all channels."""

    configmap_wait_s: float = 1.0
    """How long the ConfigMap may hold back the other channels while its API fails."""
    delivery: DeliverySettings = field(default_factory=DeliverySettings)


__all__ = [
    "DeliverySettings",
    "MailboxLimits",
    "PublisherSettings",
    "ServerSettings",
    "TlsFiles",
    "UpstreamSettings",
    "nobody",
]
