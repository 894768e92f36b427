"""How bytes reach an API server: the one seam under everything in this room.

`Transport` carries requests and streams and knows nothing of Kubernetes objects. An answer of any status is
a `Reply`; no answer is `Unreachable`. `check` turns refused replies into the error tree, here and only here,
so that callers never see an aiohttp exception or a bare status code.

Network time-outs are never scaled by a demo clock: they use the loop's time directly.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from mindie_ha.model.errors import (
    ClusterError,
    Conflict,
    Denied,
    Gone,
    NotFound,
    Refused,
    Throttled,
    Unreachable,
)

Gate = Callable[[], float]
"""Asked when a request is about to leave: for how many seconds it may be under way. Raises to stop it."""

DEFAULT_RETRY_AFTER_S = 1.0
MAX_RETRY_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered. `headers` has lower-case keys."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Silent(Unreachable):
    """An open stream on which nothing came for too long."""


class Transport(Protocol):
    """Carries one request, or opens one stream."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
        gate: Gate | None = None,
    ) -> Reply:
        """The reply, whatever its status; raises Unreachable where there is none in time.

        `gate` is asked once more when everything that takes time (credentials, a connection) is done, right
        before the bytes leave; what it raises is raised, and then nothing was sent that could be carried out.
        """
        ...

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Chunks as they come. Raises what `check` raises if refused, Unreachable if cut."""
        ...


def check(reply: Reply, *, action: str) -> bytes:
    """The body of a good reply; `action` (`"delete pods mindie/a"`) names what was refused otherwise."""
    if 200 <= reply.status < 300:
        return reply.body
    raise error_of(reply.status, reply.body, reply.headers, action=action)


def error_of(status: int, body: bytes, headers: Mapping[str, str], *, action: str) -> ClusterError:
    """The error that a refused request, or a Status object in a watch, stands for."""
    refusal = _status_object(body)
    reason = _text(refusal.get("reason"))
    said = _text(refusal.get("message")) or body[:200].decode("utf-8", "replace")
    message = f"{action}: {status} {reason} {said}".rstrip()
    if status == 504 and _is_ahead(refusal):
        return Gone(message)  # our version is of a history that the server does not have (any more)
    if status == 410:
        metadata = refusal.get("metadata")
        token = metadata.get("continue") if isinstance(metadata, dict) else ""
        return Gone(message, continue_token=_text(token))
    if status == 429:
        return Throttled(message, retry_after_s=_retry_after_s(headers, refusal))
    kinds: dict[int, type[ClusterError]] = {401: Denied, 403: Denied, 404: NotFound, 409: Conflict}
    strange = status >= 500 or status < 400  # below: somebody between us and the server answered
    kind = kinds.get(status) or (Unreachable if strange else Refused)
    return kind(message, status=status, reason=reason)


def _is_ahead(refusal: Mapping[str, Any]) -> bool:
    """Whether a version was asked for that the server has not reached."""
    details = refusal.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    listed = causes if isinstance(causes, list) else ()
    return any(isinstance(one, dict) and one.get("reason") == "ResourceVersionTooLarge" for one in listed)


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _retry_after_s(headers: Mapping[str, str], refusal: Mapping[str, Any]) -> float:
    details = refusal.get("details")
    told: object = headers.get("retry-after") or (
        details.get("retryAfterSeconds") if isinstance(details, dict) else None
    )
    try:
        seconds = float(told)  # type: ignore[arg-type]  # hostile: whatever it is, it is tried
    except (TypeError, ValueError):
        return DEFAULT_RETRY_AFTER_S
    return DEFAULT_RETRY_AFTER_S if math.isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


async def bounded_lines(chunks: AsyncIterator[bytes], *, limit: int = 8 << 20) -> AsyncGenerator[bytes, None]:
    """Lines out of chunks. A line above `limit` bytes comes as `b""`: the caller counts it and goes on."""
    rest = bytearray()
    overlong = False
    async for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *whole, tail = bytes(rest).split(b"\n")
            rest = bytearray(tail)
            for number, line in enumerate(whole):
                if overlong and number == 0:
                    overlong = False
                    yield b""
                elif line.strip():
                    yield line
        if len(rest) > limit:
            overlong = True
            rest.clear()
    if rest.strip() and not overlong:
        yield bytes(rest)


async def within(delay_s: float, iterator: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same items; raises Silent once nothing came for `delay_s` (a half-open connection)."""
    while True:
        try:
            async with asyncio.timeout(delay_s):
                item = await anext(iterator)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise Silent(f"nothing was received for {delay_s:g} s") from error
        yield item


__all__ = ["Gate", "Reply", "Silent", "Transport", "bounded_lines", "check", "error_of", "within"]
