"""A server in memory and a terse way to talk to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.requests import ApiRequest
from mindie_ha.sim.server import ApiServer

PODS = "/api/v1/namespaces/mindie/pods"
MAPS = "/api/v1/namespaces/mindie/configmaps"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/mindie/podgroups"

Object = dict[str, Any]


def pod(name: str, *, node: str = "", **labels: str) -> Object:
    spec: Object = {"containers": [{"name": "main", "image": "mindie:1"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def config_map(name: str, data: dict[str, str] | None = None, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "data": data or {}}


@dataclass(frozen=True)
class Api:
    """Requests on paths; answers are `(code, body)`."""

    server: ApiServer

    async def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> tuple[int, Any]:
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": content_type, "user-agent": "test/1"}
        response = await self.server.handle(ApiRequest(method, path, query, headers, raw))
        assert response.stream is None
        return response.status, json.loads(response.body)

    async def ok(self, method: str, path: str, body: object = None, **more: Any) -> Any:
        code, answer = await self(method, path, body, **more)
        assert code < 300, answer
        return answer

    async def merge(self, path: str, body: object, **query: str) -> tuple[int, Any]:
        return await self("PATCH", path, body, content_type="application/merge-patch+json", **query)

    async def watch(self, path: str, **query: str) -> AsyncIterator[Object]:
        response = await self.server.handle(ApiRequest("GET", path, {"watch": "true", **query}))
        assert response.status == 200, response.body
        assert response.stream is not None
        return _events(response.stream)


async def _events(stream: AsyncIterator[bytes]) -> AsyncIterator[Object]:
    async with contextlib.aclosing(stream) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            for line in chunk.splitlines():
                yield json.loads(line)


class PinnedClock(LoopClock):
    """Stands at 2027-01-15T08:00:00Z, so that stamps do not depend on how fast the machine is."""

    def wall(self) -> float:
        """Always the same."""
        return 1_800_000_000.0


@pytest.fixture
async def api() -> Api:
    return Api(ApiServer(clock=PinnedClock(), entropy=Entropy(1)))
