"""What the channels deliver, and the ports through which they meet the rest of the house.

Channels hold no policy: which table a service has, whose peer is whose and what a receipt is good for
is decided above, behind `TablePort`; how a ConfigMap is written is decided below, behind `ConfigMapPort`.
Everything here is a frozen value or a Protocol, so a test swaps the edge instead of patching internals.

A table's identity is its digest; its order is its generation, which grows for one service for ever. An
older generation never replaces a newer one on any channel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

ChannelName = Literal["grpc", "http", "configmap"]
SubscriberKind = Literal["ranktable", "fault"]


@dataclass(frozen=True, slots=True, order=True)
class ServiceRef:
    """One service: the AscendJobs that share a namespace and a `jobID` label."""

    namespace: str
    job_id: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.job_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """One published state of a service's global rank table; `at_s` is wall time."""

    service: ServiceRef
    generation: int
    digest: str
    text: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReceipt:
    """One table handed over to one peer; `at_s` is wall time.

    `peer` is `ip:port` on gRPC, the URL on HTTP, `namespace/name` for a ConfigMap.
    """

    service: ServiceRef
    generation: int
    digest: str
    peer: str
    channel: ChannelName
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryProblem:
    """One attempt that did not hand the table over.

    `refused`: the peer understood and said no; the same table is offered again only after a long pause.
    """

    service: ServiceRef
    generation: int
    digest: str
    peer: str
    channel: ChannelName
    reason: str
    refused: bool
    attempts: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Nobody can say which service a peer belongs to; `reason` is a sentence for people."""

    reason: str


class TablePort(Protocol):
    """What the channels ask of, and report to, the owner of the tables. Calls are cheap and never block."""

    def resolve(self, job_id: str, peer_ip: str) -> ServiceRef | Unresolved:
        """The service a peer means; one jobID in two namespaces is told apart by the peer's pod IP."""
        ...

    def current(self, service: ServiceRef) -> TableVersion | None:
        """The table that the service should have now, if there is one."""
        ...

    def is_ours(self, job_id: str) -> bool:
        """Whether any service that we publish for carries this jobID."""
        ...

    def on_receipt(self, receipt: DeliveryReceipt) -> None:
        """A table was handed over."""
        ...

    def subscriber_joined(self, service: ServiceRef, *, role: str, peer: str, kind: SubscriberKind) -> None:
        """A stream of this service was opened."""
        ...

    def subscriber_left(self, service: ServiceRef, *, role: str, peer: str, kind: SubscriberKind) -> None:
        """A stream of this service ended, for whatever reason."""
        ...


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What became of a ConfigMap write; `refused` means that trying again soon is pointless."""

    outcome: Literal["written", "unchanged", "failed", "refused"]
    reason: str = ""


class ConfigMapPort(Protocol):
    """Writes one key of one ConfigMap; creates the object if it is absent and leaves other keys alone."""

    async def write_table(self, namespace: str, name: str, *, key: str, text: str) -> WriteResult:
        """Write `text`, unless the object holds it already: then `unchanged`, and nothing is written.

        API errors are mapped to a result, with the reason; only cancellation escapes.
        """
        ...


@dataclass(frozen=True, slots=True, order=True)
class HttpTarget:
    """A URL that gets every table by POST."""

    url: str

    def __str__(self) -> str:
        """For people and logs: without what may be a password or a token."""
        try:
            parts = urlsplit(self.url)
            place = parts.netloc.rpartition("@")[2]
        except ValueError:
            return "no URL"
        return urlunsplit((parts.scheme, place, parts.path, "…" if parts.query else "", ""))


@dataclass(frozen=True, slots=True, order=True)
class ConfigMapTarget:
    """A ConfigMap that holds the table under `global_ranktable.json`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class GrpcPeer:
    """A subscriber that is connected now: `ip:port`, and the role it calls itself."""

    peer: str
    role: str

    def __str__(self) -> str:
        return self.peer


Target = HttpTarget | ConfigMapTarget
Destination = Target | GrpcPeer


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A table that a destination has not got yet, and how far we are with it."""

    destination: Destination
    generation: int
    digest: str
    attempts: int = 0
    last_error: str = ""
    refused: bool = False


class ReportCode(IntEnum):
    """The answers to a report of public faults (rank table contract §4.4)."""

    OK = 0
    INVALID = 409
    TOO_MANY = 410
    NOT_KEPT = 501


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """What became of a report; `left_out` has one sentence for each fault that was not taken."""

    code: ReportCode
    info: str
    accepted: int = 0
    left_out: tuple[str, ...] = ()


class FaultPort(Protocol):
    """Takes reports of public faults."""

    async def report(self, body: Mapping[str, object], *, entry: str) -> ReportAnswer:
        """Take one message, as plain values by their names on the wire; raises nothing."""
        ...


ProblemListener = Callable[[DeliveryProblem], None]


__all__ = [
    "ChannelName",
    "ConfigMapPort",
    "ConfigMapTarget",
    "DeliveryProblem",
    "DeliveryReceipt",
    "Destination",
    "FaultPort",
    "GrpcPeer",
    "HttpTarget",
    "Owed",
    "ProblemListener",
    "ReportAnswer",
    "ReportCode",
    "ServiceRef",
    "SubscriberKind",
    "TablePort",
    "TableVersion",
    "Target",
    "Unresolved",
    "WriteResult",
]
