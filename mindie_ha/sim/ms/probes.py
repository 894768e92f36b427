"""The HTTP ports of MS pods, on the pod's own address.

Controller: probes on 1026. Coordinator: management on 1026 (`/recvs_info`), probes on the status port 1029.
Paths, ports and answers are those of the real ones (source: motor contract §2.1-2.3); what nobody
outside MS calls is not served. Access logs are off: probes come every few seconds. With `tls_cert` the ports
speak TLS, as the real ones ship. `*_reply` is the same without a socket, for runs on virtual time.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Protocol

from aiohttp import web

from mindie_ha.sim.actors.programs import ProgramError
from mindie_ha.sim.ms.settings import MsSettings

CONTROLLER_PORT = 1026
COORDINATOR_MANAGEMENT_PORT = 1026
COORDINATOR_STATUS_PORT = 1029


class CoordinatorState(Protocol):
    """What a Coordinator's endpoints report."""

    @property
    def active(self) -> bool:
        """Holds the lock."""
        ...

    @property
    def can_serve(self) -> bool:
        """Knows enough instances."""
        ...


Reply = tuple[int, object]  # status, JSON body; None for none
WELL: Reply = (200, {"message": "", "status": "0"})
CONTROLLER_PATHS = ("/v1/startup", "/v1/health")
STATUS_PATHS = ("/v1/startup", "/v1/health", "/v2/health/live", "/v1/readiness", "/v2/health/ready")


def controller_reply(port: int, path: str) -> Reply | None:
    """What a Controller answers; None where it has no such endpoint."""
    return WELL if port == CONTROLLER_PORT and path in CONTROLLER_PATHS else None


def coordinator_reply(state: CoordinatorState, port: int, path: str) -> Reply | None:
    """What a Coordinator answers; None where it has no such endpoint."""
    if (port, path) == (COORDINATOR_MANAGEMENT_PORT, "/recvs_info"):
        return 200, {"is_master": state.active, "recv_flow": 0}
    if port != COORDINATOR_STATUS_PORT or path not in STATUS_PATHS:
        return None
    if path == "/v1/readiness":
        return (200 if state.active and state.can_serve else 503), None
    if path == "/v2/health/ready":
        return (200 if state.can_serve else 503), None
    return WELL


@contextlib.asynccontextmanager
async def controller_site(ip: str, *, settings: MsSettings) -> AsyncIterator[None]:
    """Serve the Controller's probes while the context lasts; nothing where HTTP is off."""
    reply = partial(controller_reply, CONTROLLER_PORT)
    async with _served(reply, CONTROLLER_PATHS, ip, CONTROLLER_PORT, settings):
        yield


@contextlib.asynccontextmanager
async def coordinator_sites(ip: str, state: CoordinatorState, *, settings: MsSettings) -> AsyncIterator[None]:
    """Serve the Coordinator's management and status ports while the context lasts."""
    management = partial(coordinator_reply, state, COORDINATOR_MANAGEMENT_PORT)
    status = partial(coordinator_reply, state, COORDINATOR_STATUS_PORT)
    async with (
        _served(management, ("/recvs_info",), ip, COORDINATOR_MANAGEMENT_PORT, settings),
        _served(status, STATUS_PATHS, ip, COORDINATOR_STATUS_PORT, settings),
    ):
        yield


@contextlib.asynccontextmanager
async def _served(
    reply: Callable[[str], Reply | None], paths: Iterable[str], ip: str, port: int, settings: MsSettings
) -> AsyncIterator[None]:
    if not settings.serve_http:
        yield
        return

    async def answer(request: web.Request) -> web.Response:
        status, body = reply(request.path) or (404, None)
        return web.Response(status=status) if body is None else web.json_response(body, status=status)

    app = web.Application()
    for path in paths:
        app.router.add_get(path, answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        try:
            site = web.TCPSite(runner, ip, port, reuse_address=True, ssl_context=_tls(settings))
            await site.start()
        except OSError as error:
            raise ProgramError(f"cannot listen on {ip}:{port}: {error}") from error
        yield
    finally:
        await runner.cleanup()


def _tls(settings: MsSettings) -> ssl.SSLContext | None:
    if not settings.tls_cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.tls_cert, settings.tls_key)
    if settings.tls_client_ca:
        context.load_verify_locations(settings.tls_client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


__all__ = [
    "CONTROLLER_PORT",
    "COORDINATOR_MANAGEMENT_PORT",
    "COORDINATOR_STATUS_PORT",
    "CoordinatorState",
    "Reply",
    "controller_reply",
    "controller_site",
    "coordinator_reply",
    "coordinator_sites",
]
