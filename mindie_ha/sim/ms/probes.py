"""The HTTP ports of MS pods, on the pod's own address.

Controller: probes on 1026. Coordinator: management on 1026 (`/recvs_info`), probes on the status port 1029.
Paths, ports and answers are those of the real ones (source: motor contract §2.1-2.3); what nobody
outside MS calls is not served. Access logs are off: probes come every few seconds.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from aiohttp import web

from mindie_ha.sim.actors.programs import ProgramError

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


@contextlib.asynccontextmanager
async def controller_site(ip: str, *, enabled: bool) -> AsyncIterator[None]:
    """Serve the Controller's probes while the context lasts; nothing when not enabled."""
    app = web.Application()
    for path in ("/v1/startup", "/v1/health"):
        app.router.add_get(path, _always_well)
    async with _served(app, ip, CONTROLLER_PORT, enabled=enabled):
        yield


@contextlib.asynccontextmanager
async def coordinator_sites(ip: str, state: CoordinatorState, *, enabled: bool) -> AsyncIterator[None]:
    """Serve the Coordinator's management and status ports while the context lasts."""

    async def recvs_info(_: web.Request) -> web.Response:
        return web.json_response({"is_master": state.active, "recv_flow": 0})

    async def readiness(_: web.Request) -> web.Response:
        return web.Response(status=200 if state.active and state.can_serve else 503)

    async def ready(_: web.Request) -> web.Response:
        return web.Response(status=200 if state.can_serve else 503)

    management = web.Application()
    management.router.add_get("/recvs_info", recvs_info)
    status = web.Application()
    for path in ("/v1/startup", "/v1/health", "/v2/health/live"):
        status.router.add_get(path, _always_well)
    status.router.add_get("/v1/readiness", readiness)
    status.router.add_get("/v2/health/ready", ready)
    async with (
        _served(management, ip, COORDINATOR_MANAGEMENT_PORT, enabled=enabled),
        _served(status, ip, COORDINATOR_STATUS_PORT, enabled=enabled),
    ):
        yield


async def _always_well(_: web.Request) -> web.Response:
    return web.json_response({"message": "", "status": "0"})


@contextlib.asynccontextmanager
async def _served(app: web.Application, ip: str, port: int, *, enabled: bool) -> AsyncIterator[None]:
    if not enabled:
        yield
        return
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, ip, port, reuse_address=True).start()
        except OSError as error:
            raise ProgramError(f"cannot listen on {ip}:{port}: {error}") from error
        yield
    finally:
        await runner.cleanup()


__all__ = [
    "CONTROLLER_PORT",
    "COORDINATOR_MANAGEMENT_PORT",
    "COORDINATOR_STATUS_PORT",
    "CoordinatorState",
    "controller_site",
    "coordinator_sites",
]
