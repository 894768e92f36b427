"""An embedded API server in memory, our client on it, and terse ways to change the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any

import orjson
import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.informers import Informer
from mindie_ha.cluster.slim import SlimObject
from mindie_ha.cluster.sources import PODS, Source
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange
from mindie_ha.sim.server import ApiServer

Object = dict[str, Any]
Change = tuple[str, str]  # what happened, to whom


class Cluster:
    """The server, the clock it runs on, and everything our code needs to talk to it."""

    def __init__(self) -> None:
        self.clock = LoopClock(wall_origin_s=1_700_000_000.0)
        self.entropy = Entropy(7)
        self.server = ApiServer(clock=self.clock, entropy=self.entropy)
        self.client = Client(ExchangeTransport(self.server))
        self.settings = ClusterSettings()
        self.metrics = Metrics()
        self.tasks: list[asyncio.Task[None]] = []

    async def request(self, method: str, path: str, body: object = None, *, content: str = "json") -> Object:
        headers = {"content-type": f"application/{content}", "user-agent": "test"}
        raw = b"" if body is None else orjson.dumps(body)
        response = await self.server.handle(ApiRequest(method, path, {}, headers, raw))
        assert response.status < 300, response.body
        decoded: Object = orjson.loads(response.body)
        return decoded

    async def create(self, path: str, name: str, **more: Any) -> Object:
        metadata = {"name": name, **more.pop("metadata", {})}
        return await self.request("POST", path, {"metadata": metadata, **more})

    async def pod(self, name: str, *, namespace: str = "mindie", **metadata: Any) -> Object:
        spec = {"containers": [{"name": "ascend", "image": "mindie:1"}]}
        path = f"/api/v1/namespaces/{namespace}/pods"
        return await self.create(path, name, spec=spec, metadata=metadata)

    async def merge(self, path: str, body: object) -> Object:
        return await self.request("PATCH", path, body, content="merge-patch+json")

    async def kill(self, name: str) -> None:
        body = {"gracePeriodSeconds": 0}
        await self.request("DELETE", f"/api/v1/namespaces/mindie/pods/{name}", body)

    async def label(self, name: str, value: str) -> Object:
        return await self.merge(
            f"/api/v1/namespaces/mindie/pods/{name}", {"metadata": {"labels": {"v": value}}}
        )

    def run(self, informer: Informer) -> None:
        self.tasks.append(asyncio.create_task(informer.run()))

    def spawn(self, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that ends with the cluster."""
        self.tasks.append(asyncio.create_task(body))
        return self.tasks[-1]

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        for task in self.tasks:
            with suppress(asyncio.CancelledError):
                await task


class Watcher:
    """An informer with a record of what it told."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        source: Source = PODS,
        settings: ClusterSettings | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self.changes: list[Change] = []
        self.refused: list[str] = []
        self.times: list[float] = []
        self.metrics = cluster.metrics
        client = cluster.client if exchange is None else Client(ExchangeTransport(exchange))
        self.informer = Informer(
            source,
            client=client,
            clock=cluster.clock,
            entropy=cluster.entropy.child("informer"),
            settings=settings or cluster.settings,
            log=silent_log(),
            metrics=cluster.metrics,
            on_change=self._change,
            on_refused=self._refuse,
        )
        cluster.run(self.informer)

    async def synced(self) -> Watcher:
        async with asyncio.timeout(100):
            await self.informer.synced.wait()
        await settle()
        return self

    def names(self) -> list[str]:
        return sorted(key.name for key in self.informer.objects)

    def metric(self, name: str, **labels: str) -> float:
        found = self.metrics.factory.registry.get_sample_value(f"mindie_ha_{name}", labels)
        return found or 0.0

    def _change(self, source: Source, key: ObjectKey, old: SlimObject | None, new: SlimObject | None) -> None:
        word = "added" if old is None else "gone" if new is None else "changed"
        word = "malformed no more" if old is None and new is None else word
        self.changes.append((word, key.name))
        self.times.append(asyncio.get_running_loop().time())

    def _refuse(self, source: Source, key: ObjectKey | None, error: InputError) -> None:
        self.refused.append(str(error))


class Between(Exchange):
    """Stands between a client and the server and may answer in its place."""

    def __init__(self, server: Exchange) -> None:
        self.server = server
        self.requests: list[ApiRequest] = []
        self.canned: list[ApiResponse] = []  # answers given instead, first come first served
        self.lists_only = False

    async def handle(self, request: ApiRequest) -> ApiResponse:
        self.requests.append(request)
        watch = "watch" in request.query
        if self.canned and not (watch and self.lists_only):
            return self.canned.pop(0)
        return await self.server.handle(request)

    def count(self, *, watch: bool) -> int:
        return sum(("watch" in request.query) == watch for request in self.requests)


async def settle(delay_s: float = 1.0) -> None:
    """Let everything that is due happen."""
    await asyncio.sleep(delay_s)


def status(code: int, reason: str, message: str = "injected", **headers: str) -> ApiResponse:
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}
    return ApiResponse(code, orjson.dumps(body), headers)


def stream_of(*lines: bytes) -> ApiResponse:
    async def chunks() -> AsyncIterator[bytes]:
        for line in lines:
            yield line

    return ApiResponse(200, stream=chunks())


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    yield made
    await made.close()
