"""One HTTP exchange with the embedded API server, free of any transport.

The server core answers `ApiRequest` with `ApiResponse`; the aiohttp edge and the in-memory transport
are thin adapters around `Exchange`. A watch answers with `stream` instead of `body`: chunks of
newline-delimited JSON; closing the iterator ends the watch. A connection that breaks, before the answer or
in the middle of a stream, is a ConnectionError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What a client sent. `headers` has lower-case keys; `query` holds the last value of each key."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """What the server answers: either `body` or, for a watch, `stream`."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None


class Exchange(Protocol):
    """Anything that answers requests: the server itself, or a transport to one."""

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Answer one request."""
        ...
