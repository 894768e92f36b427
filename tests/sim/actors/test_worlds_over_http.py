"""The same world through a socket, in real time on a fast clock: what `--actors-only` does."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from mindie_ha.sim.edge import served
from mindie_ha.sim.kubeconfigs import Access
from mindie_ha.sim.requests import Exchange
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.transports import connected

from .conftest import stage


@contextlib.asynccontextmanager
async def over_http(server: ApiServer) -> AsyncIterator[Exchange]:
    async with served(server) as url, connected(Access(url, {}, None)) as exchange:
        yield exchange


async def test_an_instance_is_rebuilt_through_a_socket() -> None:
    async with stage(speed=20, connect=over_http) as s:
        await s.start("p0", workers=1)
        old = await s.kill("p0")
        await s.wait(lambda: s.is_running("p0", 2) and not s.uids("p0") & old, "rebuilt")
        await s.wait(lambda: s.table("p0")["status"] == "completed", "table")
