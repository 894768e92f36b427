"""`mindie-ha sim` and `mindie-ha run` as two programs, in real time: a fault from outside is recovered."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from mindie_ha.cluster.client import Client, PatchKind
from mindie_ha.cluster.connections import connect
from mindie_ha.cluster.resources import NODE
from mindie_ha.model.ids import ObjectKey

RUN = "from mindie_ha.cli.main import main; main()"
P0 = "mindie-server-p0"
QUICK = {"MINDIE_HA_PHASES__SETTLE_S": "1"}
FAULT = [{"device": "Ascend910-3", "code": "80E18005", "level": "SeparateNPU"}]


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`mindie-ha` with these arguments; it has to end well when it is told to."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-c", RUN, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **QUICK},
    )
    try:
        yield process
        process.terminate()
        await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def line_with(stream: asyncio.StreamReader | None, words: str) -> str:
    assert stream is not None
    async for line in stream:
        if words in line.decode():
            return line.decode()
    raise AssertionError(f"the program ended without saying {words!r}")


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    while not (found := await look()):  # noqa: ASYNC110 - another process gives no event
        await asyncio.sleep(0.2)
    return found


@pytest.mark.timeout(120)
async def test_a_fault_on_a_node_of_another_process_is_recovered(tmp_path: Path) -> None:
    config = str(tmp_path / "kubeconfig")
    manifest = str(Path(__file__).parents[2] / "mindie_ha/demo/manifests/pd-a2.yaml")
    sim = ("sim", "--listen", "127.0.0.1:0", "--kubeconfig", config, "--manifest", manifest, "--seed", "1")
    run = ("run", "--kubeconfig", config, "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
    async with program(*sim) as cluster, aiohttp.ClientSession() as session:
        await line_with(cluster.stdout, "heal")
        async with program(*run) as controller:
            started = json.loads(await line_with(controller.stderr, '"started"'))
            url = f"http://127.0.0.1:{started['http_port']}/v1/services"

            async def prefill(state: str) -> dict[str, Any] | None:
                async with session.get(url) as answer:
                    services = (await answer.json())["services"]
                found = {each["name"]: each for service in services for each in service["workloads"]}
                return found[P0] if P0 in found and found[P0]["state"] == state else None

            before = await until(lambda: prefill("ok"))
            node = before["pods"][0]["node"]
            transport = await connect(config)
            note = {"metadata": {"annotations": {"sim.mindie-ha.io/faults": json.dumps(FAULT)}}}
            patch = orjson.dumps(note)
            await Client(transport).patch(NODE, ObjectKey("", node), patch, kind=PatchKind.MERGE)
            await transport.close()
            await until(lambda: prefill("recovering"))
            after = await until(lambda: prefill("ok"))
    assert after["recoveries_closed"] == 1
    assert not {pod["uid"] for pod in before["pods"]} & {pod["uid"] for pod in after["pods"]}
    assert all("Ascend910-3" not in pod["devices"] for pod in after["pods"] if pod["node"] == node)
