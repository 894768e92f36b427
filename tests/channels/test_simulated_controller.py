"""The embedded cluster's MS Controller, dialling from its pod's address, is served as the real one must."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from mindie_ha.channels.ports import ServiceRef
from mindie_ha.channels.settings import ServerSettings
from mindie_ha.sim.ms.grpc_links import GrpcLink
from mindie_ha.sim.ms.links import LinkTarget
from tests.channels.conftest import Serve
from tests.channels.fakes import CHAT, FakeTables, table

STAGING = ServiceRef("staging", "chat")


def link(port: int, pod_ip: str) -> GrpcLink:
    return GrpcLink(LinkTarget("127.0.0.1", port, pod_ip, "chat", "mindie-ms-controller"))


async def first(tables: AsyncIterator[str]) -> str:
    async with asyncio.timeout(3):
        return await anext(tables)


async def test_same_job_id_in_two_namespaces_each_gets_its_own_table(serve: Serve) -> None:
    pods = {"127.5.0.1": CHAT, "127.6.0.1": STAGING}
    serving = await serve(
        tables=FakeTables(services={CHAT, STAGING}, pods=pods),
        settings=ServerSettings(listen=":0", stop_grace_s=0.2),  # peers come in IPv6 clothes
    )
    serving.mailboxes.publish(table(1, text="of mindie"))
    serving.mailboxes.publish(table(1, service=STAGING, text="of staging"))
    links = [link(serving.port, ip) for ip in pods]
    streams = []
    for one in links:
        await one.connect(wait_s=3)
        await one.register_tables()
        await one.register_faults()
        streams.append(one.tables())

    assert [await first(stream) for stream in streams] == ["of mindie", "of staging"]

    for one in links:
        await one.close()
