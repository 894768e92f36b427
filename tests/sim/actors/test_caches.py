"""The shared cache: own writes, tombstones, cut and refused watches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.addresses import AddressPool
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.client import ApiClient, Object
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.server import ApiServer

pytestmark = pytest.mark.looptime


class Line:
    """A connection that can refuse requests and cut watches."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.refuse = 0
        self.cut = asyncio.Event()

    async def handle(self, request: ApiRequest) -> ApiResponse:
        if self.refuse:
            self.refuse -= 1
            return ApiResponse(503, b'{"reason": "ServiceUnavailable", "message": "busy"}')
        response = await self._server.handle(request)
        if response.stream is None:
            return response
        return ApiResponse(response.status, stream=self._until_cut(response.stream))

    async def _until_cut(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        chunks = stream.__aiter__()
        cut = asyncio.ensure_future(self.cut.wait())
        try:
            while True:
                chunk = asyncio.ensure_future(anext(chunks))
                done, _ = await asyncio.wait({chunk, cut}, return_when=asyncio.FIRST_COMPLETED)
                if chunk not in done:
                    chunk.cancel()
                    await asyncio.wait({chunk})
                    return
                yield chunk.result()
        finally:
            cut.cancel()


@contextlib.asynccontextmanager
async def following() -> AsyncIterator[tuple[ApiClient, Line, Cache, LoopClock]]:
    clock = LoopClock(wall_origin_s=1_800_000_000)
    server = ApiServer(clock=clock, entropy=Entropy(1))
    line = Line(server)
    cache = Cache(api=ApiClient(line), clock=clock, kinds=("ConfigMap",))
    task = asyncio.create_task(cache.run())
    try:
        await cache.synced()
        yield ApiClient(server), line, cache, clock
    finally:
        task.cancel()
        await asyncio.wait({task})


def config(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": "mindie"}, "data": {}}


def names(cache: Cache) -> list[str]:
    return [found["metadata"]["name"] for found in cache.all("ConfigMap", "mindie")]


async def test_changes_arrive_and_wake() -> None:
    async with following() as (api, _, cache, clock):
        wakeup = cache.subscribe({"ConfigMap"})
        await api.create("ConfigMap", config("a"))
        await wakeup.wait(clock, 5)
        assert names(cache) == ["a"]
        await api.delete("ConfigMap", "a", "mindie")
        await wakeup.wait(clock, 5)
        assert names(cache) == []


async def test_what_happened_while_the_watch_was_cut_is_found() -> None:
    async with following() as (api, line, cache, clock):
        await api.create("ConfigMap", config("a"))
        await clock.sleep(1)
        line.refuse, wakeup = 3, cache.subscribe({"ConfigMap"})
        line.cut.set()
        await api.delete("ConfigMap", "a", "mindie")
        await api.create("ConfigMap", config("b"))
        await wakeup.wait(clock, 10)
        line.cut.clear()
        await clock.sleep(5)
        assert names(cache) == ["b"]


async def test_a_late_answer_neither_goes_back_nor_resurrects() -> None:
    async with following() as (api, _, cache, clock):
        old = await api.create("ConfigMap", config("a"))
        new = await api.patch("ConfigMap", "a", "mindie", {"data": {"k": "v"}})
        cache.observe("ConfigMap", new)
        cache.observe("ConfigMap", old)
        assert (cache.get("ConfigMap", "a", "mindie") or {})["data"] == {"k": "v"}
        await api.delete("ConfigMap", "a", "mindie")
        await clock.sleep(1)
        cache.observe("ConfigMap", new)
        assert names(cache) == []


async def test_addresses_are_unique_and_never_the_host_itself() -> None:
    pool = AddressPool(entropy=Entropy(4))
    given = [pool.allocate() for _ in range(2000)]
    assert len(set(given)) == 2000
    assert all(address.startswith("127.") and not address.startswith("127.0.") for address in given)
    assert [AddressPool(entropy=Entropy(4)).allocate()] == given[:1]
