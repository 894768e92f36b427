"""The embedded API server on a socket: plain HTTP with keep-alive, for kubectl and kubernetes-asyncio.

A thin adapter around `Exchange`. A client that goes away ends its watch at once (the handler is cancelled);
a broken exchange breaks the connection, without an answer or in the middle of one, as a killed server does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientConnectionResetError, web

from mindie_ha.sim.bodies import BODY_BYTES
from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange

STOP_S = 1.0  # for open requests when the edge stops; watches are cancelled


@asynccontextmanager
async def served(exchange: Exchange, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve until the context ends; yields the URL (port 0 takes a free one). Raises OSError."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(exchange, request)

    app = web.Application(client_max_size=BODY_BYTES + 1)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=STOP_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound = runner.addresses[0][1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound}"
    finally:
        await runner.cleanup()


async def _answer(exchange: Exchange, request: web.Request) -> web.StreamResponse:
    headers = {key.lower(): value for key, value in request.headers.items()}
    query = dict(request.query.items())
    body = await request.read()
    try:
        answer = await exchange.handle(
            ApiRequest(request.method, request.rel_url.raw_path, query, headers, body)
        )
        if answer.stream is not None:
            return await _stream(request, answer, answer.stream)
    except ConnectionResetError:
        if request.transport is not None:
            request.transport.abort()
        raise
    return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))


async def _stream(
    request: web.Request, answer: ApiResponse, chunks: AsyncIterator[bytes]
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=dict(answer.headers))
    response.enable_chunked_encoding()
    try:
        await response.prepare(request)
        async for chunk in chunks:
            await response.write(chunk)
        await response.write_eof()
    except ClientConnectionResetError:  # it went while we wrote: no error of ours
        if request.transport is not None:
            request.transport.abort()
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
    return response
