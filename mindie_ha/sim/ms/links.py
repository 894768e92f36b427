"""How the Controller reaches the table server: a seam.

The Controller's retry rules live in `clients.py` and know only this Protocol. Over gRPC it is
`grpc_links.GrpcLink`; a test on virtual time plugs in an object in memory. A link never retries and never
swallows: every failure, and every refusal by the server, is a `LinkError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from mindie_ha.wire import fault_pb2


class LinkError(Exception):
    """The server was not reached or refused; the text says which call and why."""


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """Where to connect, as whom, and from which address."""

    host: str
    port: int
    local_ip: str
    job_id: str
    role: str


class ControllerLink(Protocol):
    """One connection of one Controller."""

    async def connect(self, *, wait_s: float) -> None:
        """Connect within `wait_s` real seconds."""
        ...

    async def register_tables(self) -> None:
        """`config.Config/Register`. The code in the answer is not looked at, as the real client does not."""
        ...

    def tables(self) -> AsyncIterator[str]:
        """`config.Config/SubscribeRankTable`: table texts until the stream ends."""
        ...

    async def register_faults(self) -> None:
        """`fault.Fault/Register`."""
        ...

    def faults(self) -> AsyncIterator[fault_pb2.FaultMsgSignal]:
        """`fault.Fault/SubscribeFaultMsgSignal`: signals until the stream ends."""
        ...

    async def close(self) -> None:
        """Close for good; safe to call at any time."""
        ...


LinkFactory = Callable[[LinkTarget], ControllerLink]

__all__ = ["ControllerLink", "LinkError", "LinkFactory", "LinkTarget"]
