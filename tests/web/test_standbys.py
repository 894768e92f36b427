"""A standby can be asked, changes nothing, and names who leads."""

from __future__ import annotations

import aiohttp
import pytest

from tests.engine.clusters import cluster, listening

CHANGES = [
    ("POST", "/v1/faults"),
    ("POST", "/v1/pauses"),
    ("DELETE", "/v1/pauses/cluster"),
    ("POST", "/v1/nodes/node-0/isolations"),
    ("POST", "/v1/workloads/mindie/mindie-server-p0/reset"),
    ("POST", "/v1/services/mindie/mindie-ms/ranktable/push"),
]
READS = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/v1/services",
    "/v1/services/mindie/mindie-ms/ranktable",
    "/v1/nodes",
]


@pytest.mark.timeout(60)
async def test_a_standby_is_read_and_refuses_changes() -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c, aiohttp.ClientSession() as session:
        leader = c.app.candidate.identity
        standby = (await c.stand_by(listening())).app
        url = f"http://127.0.0.1:{standby.http_port}"
        for path in READS:
            async with session.get(url + path) as answer:
                assert answer.status == 200, path
        for method, path in CHANGES:
            async with session.request(method, url + path, json={}) as answer:
                found = (await answer.json())["error"]
                assert (answer.status, found["where"]) == (503, path)
                assert leader in found["what"]
        async with session.get(f"{url}/readyz") as answer:
            found = await answer.json()
        assert (found["role"], found["leader"]) == ("standby", leader)
        async with session.get(f"{url}/v1/services") as answer:
            assert (await answer.json())["leader"] == leader
