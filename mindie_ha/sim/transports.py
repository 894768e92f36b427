"""An `Exchange` over HTTP: the actors' way to a real API server (`--actors-only`).

A thin adapter: requests and answers pass unchanged, a watch becomes a stream of chunks. Every failure of
the connection is a ConnectionError, before the answer and in a stream alike; refusals of the server
are answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from mindie_ha.sim.kubeconfigs import Access
from mindie_ha.sim.requests import ApiRequest, ApiResponse

CONNECT_S = 10.0
ANSWER_S = 60.0  # for everything but a watch
WATCH_SILENCE_S = 120.0  # bookmarks come every minute; a longer silence is a dead connection


class HttpExchange:
    """Requests over one connection pool; made by `connected`."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session = session
        self._server = server

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Answer one request; raises ConnectionError where the server cannot be reached."""
        url = URL(self._server + request.path, encoded=True).with_query(dict(request.query))
        watch = request.query.get("watch", "") in ("true", "1")
        timeout = aiohttp.ClientTimeout(
            total=None if watch else ANSWER_S,
            sock_connect=CONNECT_S,
            sock_read=WATCH_SILENCE_S if watch else None,
        )
        try:
            response = await self._session.request(
                request.method, url, headers=dict(request.headers), data=request.body or None, timeout=timeout
            )
            headers = {key.lower(): value for key, value in response.headers.items()}
            if watch and response.status == 200:
                return ApiResponse(200, headers=headers, stream=_stream(response))
            async with response:
                return ApiResponse(response.status, await response.read(), headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _broken(request, error) from error


async def _stream(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ConnectionResetError(f"a watch broke off: {error!r}") from error
    finally:
        response.close()


def _broken(request: ApiRequest, error: Exception) -> ConnectionError:
    return ConnectionError(f"{request.method} {request.path}: {error!r}")


@asynccontextmanager
async def connected(access: Access, *, user_agent: str = "mindie-ha-sim") -> AsyncIterator[HttpExchange]:
    """An exchange with the server of `access`; its connections end with the context."""
    connector = aiohttp.TCPConnector(ssl=access.tls or True, limit=0)
    headers = {"user-agent": user_agent, **access.headers}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield HttpExchange(session, access.server)
