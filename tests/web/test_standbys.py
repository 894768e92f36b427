"""A standby can be asked, changes nothing, and names who leads."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.cli.test_looking_commands import call
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
        code, out, err = await asyncio.to_thread(call, "status", "--server", url)
        assert (code, err) == (0, "")
        assert out.startswith(f"this replica is a standby and does nothing: {leader} leads\n")


@pytest.mark.timeout(60)
async def test_a_dry_run_says_so() -> None:
    settings = listening().model_copy(update={"dry_run": True})
    async with cluster(speed=20.0, serve=True, start=False) as c, aiohttp.ClientSession() as session:
        await c.start(settings)
        await c.until(c.app.ready.is_set, "ready")
        url = f"http://127.0.0.1:{c.app.http_port}"
        async with session.get(f"{url}/readyz") as answer:
            found = await answer.json()
        assert (found["role"], found["leader"]) == ("dry-run", "")
        code, out, err = await asyncio.to_thread(call, "status", "--server", url)
        assert (code, err) == (0, "")
        assert out.startswith("dry run: what would be done is recorded, and nothing is done\n")
        assert "leader:" not in out
