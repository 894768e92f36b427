"""gRPC streams when the leader changes: they end, and a new one brings the current table at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
import pytest
from grpc import aio

from mindie_ha.model.settings import GrpcSettings, LeaseSettings, Settings
from tests.channels.contract import Client

from .clusters import CHIP, Cluster, Run, cluster, listening

P0 = "mindie-server-p0"


def two() -> Settings:
    """For two replicas on free ports of this machine, whose Lease outlives a busy machine."""
    lease = LeaseSettings(duration_s=10, renew_s=2.0, retry_s=4.0)
    grpc_settings = GrpcSettings(listen="127.0.0.1:0", peer_check="off")
    return listening().model_copy(update={"lease": lease, "grpc": grpc_settings})


@asynccontextmanager
async def subscribed(run: Run) -> AsyncIterator[Any]:
    """A stream of tables from one replica."""
    async with aio.insecure_channel(f"127.0.0.1:{run.app.grpc_port}") as channel:
        client = Client(channel, job_id="mindie-ms")
        assert (await client.register()).code == 0
        yield client.subscribe()


async def ended(stream: Any) -> None:
    """Wait until the server ends it, in whatever way."""
    with suppress(aio.AioRpcError):
        while await stream.read() is not aio.EOF:
            pass


def instances(c: Cluster, message: Any) -> set[str]:
    names = {str(number): name for name, number in c.table()["ids"].items()}
    groups = orjson.loads(message.rankTable)["server_group_list"]
    return {names[group["group_id"]] for group in groups if int(group["group_id"]) >= 2}


@pytest.mark.timeout(60)
async def test_a_subscriber_of_the_next_leader_has_the_current_table_at_once() -> None:
    async with cluster(settings=two(), speed=20.0, serve=True) as c:
        first = c.runs[-1]
        second = await c.stand_by(two())
        assert second.app.grpc_port == 0  # a standby serves no tables
        async with subscribed(first) as stream:
            before = await asyncio.wait_for(stream.read(), 5)
            await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
            without = await asyncio.wait_for(stream.read(), 5)
            generation = c.table()["generation"]
            assert P0 in instances(c, before)
            assert P0 not in instances(c, without)
            first.task.cancel()
            await asyncio.wait_for(ended(stream), 10)
        await asyncio.wait_for(second.app.started.wait(), 10)
        async with subscribed(second) as stream:
            now = await asyncio.wait_for(stream.read(), 5)
            assert c.table()["generation"] >= generation
            assert now.rankTable == c.table()["text"] or P0 in instances(c, now)
            await c.recovered(P0)
            while P0 not in instances(c, now):
                now = await asyncio.wait_for(stream.read(), 5)
        assert now.rankTable == c.table()["text"]


async def test_the_streams_of_a_leader_that_lost_end_and_it_serves_again_when_it_leads_again() -> None:
    async with cluster(settings=two(), speed=20.0, serve=True) as c:
        first = c.runs[-1]
        async with subscribed(first) as stream:
            await asyncio.wait_for(stream.read(), 5)
            first.app.candidate._close()
            await asyncio.wait_for(ended(stream), 10)
        await asyncio.wait_for(first.app.started.wait(), 10)  # nobody else stands: it leads again
        async with subscribed(first) as stream:
            again = await asyncio.wait_for(stream.read(), 5)
        assert again.rankTable == c.table()["text"]
