"""The in-memory links: our transport on one side, the embedded API server's `Exchange` on the other; and the
endpoints of MS pods, answered by their programs.

No socket, no thread, no wall-clock time: with it the product and the embedded cluster run in one process and
under virtual time. A stream that ends by `ConnectionError` is a cut connection, as on a real network.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

import orjson

from mindie_ha.channels.ms_endpoints import Answer, Unanswered
from mindie_ha.cluster.transports import Gate, Reply, check
from mindie_ha.model.errors import Unreachable
from mindie_ha.sim.ms.programs import MsPrograms
from mindie_ha.sim.requests import ApiRequest, Exchange

CONNECT_TIMEOUT_S = 10.0
KEPT_QUESTIONS = 10_000


class ExchangeTransport:
    """A `Transport` straight into an `Exchange`."""

    def __init__(self, exchange: Exchange, *, user_agent: str = "mindie-ha") -> None:
        self._exchange = exchange
        self._user_agent = user_agent

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
        """The reply, whatever its status; raises Unreachable where there is none in time."""
        if gate is not None:
            gate()
        request = self._request(method, path, query, headers, body or b"")
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._exchange.handle(request)
        except (OSError, TimeoutError) as error:
            raise _unreachable(method, path, error) from error
        return Reply(response.status, response.body, _lower(response.headers))

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Chunks as they come. Raises what `check` raises if refused, Unreachable if cut."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                response = await self._exchange.handle(self._request(method, path, query, None, b""))
        except (OSError, TimeoutError) as error:
            raise _unreachable(method, path, error) from error
        body = check(
            Reply(response.status, response.body, _lower(response.headers)), action=f"{method} {path}"
        )
        source = response.stream
        if source is None:
            yield _once(body)
            return
        try:
            async with aclosing(_chunks(source, method, path)) as chunks:
                yield chunks
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    async def close(self) -> None:
        """Nothing to close; here so that it can stand in for a real connection."""

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        body: bytes,
    ) -> ApiRequest:
        sent = {"accept": "application/json", "user-agent": self._user_agent, **_lower(headers or {})}
        return ApiRequest(method, path, dict(query or {}), sent, body)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


async def _chunks(source: AsyncIterator[bytes], method: str, path: str) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in source:
            yield chunk
    except (OSError, TimeoutError) as error:
        raise _unreachable(method, path, error) from error


def _unreachable(method: str, path: str, error: BaseException) -> Unreachable:
    return Unreachable(f"{method} {path}: no answer ({type(error).__name__}: {error})")


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class AnsweringPods:
    """`channels.ms_endpoints.Endpoints` from memory: the simulated MS pods answer without a socket."""

    def __init__(self) -> None:
        self.programs: MsPrograms | None = None
        self.asked: list[tuple[str, int, str]] = []  # the newest questions

    async def get(self, ip: str, port: int, path: str) -> Answer:
        """One question. Raises Unanswered where nobody listens."""
        self.asked.append((ip, port, path))
        del self.asked[:-KEPT_QUESTIONS]
        reply = self.programs.reply(ip, port, path) if self.programs is not None else None
        if reply is None:
            raise Unanswered("no connection: nobody listens")
        status, body = reply
        return Answer(status, b"" if body is None else orjson.dumps(body))

    async def close(self) -> None:
        """Nothing to close."""


__all__ = ["AnsweringPods", "ExchangeTransport"]
