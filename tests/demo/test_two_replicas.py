"""Two `mindie-ha run` on one `mindie-ha sim`, as programs in real time: one is frozen, one is killed.

Every wait is for an event; the only time that is waited for is how long the frozen one stays frozen.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from mindie_ha.cluster.client import Client, PatchKind
from mindie_ha.cluster.connections import connect
from mindie_ha.cluster.resources import NODE
from mindie_ha.model.ids import ObjectKey

from .test_two_processes import FAULT, P0, RUN, until

LEASE_S = 5
QUICK = {
    "MINDIE_HA_PHASES__SETTLE_S": "1",
    "MINDIE_HA_LEASE__DURATION_S": str(LEASE_S),
    "MINDIE_HA_LEASE__RENEW_S": "1",
    "MINDIE_HA_LEASE__RETRY_S": "2",
}
STARTED, STANDING = '"started"', '"standing by"'
ANY = ("--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")


class Program:
    """`mindie-ha` with everything that it says."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._more = asyncio.Condition()
        self._readers = [
            asyncio.create_task(self._read(stream)) for stream in (process.stdout, process.stderr) if stream
        ]

    async def says(self, words: str, *, after: int = 0) -> dict[str, Any]:
        """The first line with these words after so many lines, decoded if it is JSON."""
        async with self._more:
            while True:
                for line in self.lines[after:]:
                    if words in line:
                        return orjson.loads(line) if line.startswith("{") else {"text": line}
                assert self.process.returncode is None, self.lines
                await self._more.wait()

    def send(self, number: signal.Signals) -> None:
        """A signal."""
        self.process.send_signal(number)

    async def close(self) -> None:
        """End it, however it is."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        await asyncio.gather(*self._readers)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        async for line in stream:
            async with self._more:
                self.lines.append(line.decode())
                self._more.notify_all()
        async with self._more:
            self._more.notify_all()


PORT = re.compile(r"127\.0\.0\.1:(\d+)")
WRITE = re.compile(rb"(POST|PUT|PATCH|DELETE) (/\S*) HTTP/1\.1")


class Wire:
    """The way of one replica to the API server; `writes` is what left, its Lease aside."""

    def __init__(self, port: int) -> None:
        self.writes: list[str] = []
        self._port = port

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        there = await asyncio.open_connection("127.0.0.1", self._port)
        with suppress(ConnectionError):
            await asyncio.gather(self._pump(reader, there[1], listen=True), self._pump(there[0], writer))

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, listen: bool = False
    ) -> None:
        try:
            while chunk := await source.read(65536):
                found = WRITE.findall(chunk) if listen else ()
                self.writes += [
                    f"{verb.decode()} {path.decode()}" for verb, path in found if b"/leases" not in path
                ]
                target.write(chunk)
                await target.drain()
        finally:
            target.close()


def read(kubeconfig: Path) -> tuple[str, int]:
    """What it says, and the server's port."""
    text = kubeconfig.read_text()
    found = PORT.search(text)
    assert found is not None
    return text, int(found[1])


@asynccontextmanager
async def wire(config: Path, name: str) -> AsyncIterator[tuple[Wire, str]]:
    """A wire, and a kubeconfig that leads over it."""
    text, port = read(config)
    made = Wire(port)
    server = await asyncio.start_server(made.carry, "127.0.0.1", 0)
    path = config.with_name(name)
    path.write_text(text.replace(f":{port}", f":{server.sockets[0].getsockname()[1]}"))
    try:
        yield made, str(path)
    finally:
        server.close()


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-c", RUN, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **QUICK},
    )
    made = Program(process)
    try:
        yield made
    finally:
        await made.close()


async def state_of(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(f"{url}/v1/services") as answer:
        services = (await answer.json())["services"]
    found = {each["name"]: each for service in services for each in service["workloads"]}
    return found.get(P0, {"state": "", "pods": []})


async def fail_a_card(config: str, node: str) -> None:
    transport = await connect(config)
    note = {"metadata": {"annotations": {"sim.mindie-ha.io/faults": json.dumps(FAULT)}}}
    await Client(transport).patch(NODE, ObjectKey("", node), orjson.dumps(note), kind=PatchKind.MERGE)
    await transport.close()


@pytest.mark.timeout(180)
async def test_a_frozen_leader_writes_nothing_when_it_thaws_and_leads_when_the_other_is_killed(
    tmp_path: Path,
) -> None:
    config = str(tmp_path / "kubeconfig")
    manifest = str(Path(__file__).parents[2] / "mindie_ha/demo/manifests/pd-a2.yaml")
    sim = ("sim", "--listen", "127.0.0.1:0", "--kubeconfig", config, "--manifest", manifest, "--seed", "1")
    async with program(*sim) as cluster, aiohttp.ClientSession() as session:
        await cluster.says("heal")
        async with (
            wire(Path(config), "one") as (one_wire, one),
            wire(Path(config), "two") as (two_wire, two),
            program("run", "--kubeconfig", one, *ANY) as first,
            program("run", "--kubeconfig", two, *ANY) as second,
        ):
            # Either may lead; the one that does not says so.
            said = [asyncio.create_task(each.says(STANDING)) for each in (first, second)]
            await asyncio.wait(said, return_when=asyncio.FIRST_COMPLETED)
            frozen, other = (second, first) if said[0].done() else (first, second)
            frozen_wire = one_wire if frozen is first else two_wire
            for task in said:
                task.cancel()
            await asyncio.gather(*said, return_exceptions=True)
            url = f"http://127.0.0.1:{(await frozen.says(STARTED))['http_port']}"
            other_url = f"http://127.0.0.1:{(await other.says(STANDING))['http_port']}"

            async def prefill(state: str) -> dict[str, Any] | None:
                found = await state_of(session, other_url)
                return found if found["state"] == state else None

            before = await until(lambda: prefill("ok"))
            async with session.post(f"{other_url}/v1/pauses", json={}) as answer:
                assert answer.status == 503
                assert "does not lead" in (await answer.json())["error"]["what"]
            await fail_a_card(config, before["pods"][0]["node"])
            await frozen.says("job/stop")
            frozen.send(signal.SIGSTOP)
            began_s, silent = time.monotonic(), len(frozen.lines)
            await other.says(STARTED)
            takeover_s = time.monotonic() - began_s
            await asyncio.sleep(max(0.0, 2 * LEASE_S - takeover_s))
            assert frozen_wire.writes
            frozen_wire.writes.clear()  # what left before it was frozen has long arrived
            frozen.send(signal.SIGCONT)
            async with session.post(f"{url}/v1/pauses", json={"scope": "cluster", "reason": "x"}) as answer:
                assert answer.status == 503
            await frozen.says(STANDING, after=silent)
            after = await until(lambda: closed(session, other_url))
            thawed = frozen.lines[silent:]
            assert any("leads no longer" in line for line in thawed)
            assert not frozen_wire.writes
            assert not {pod["uid"] for pod in before["pods"]} & {pod["uid"] for pod in after["pods"]}
            async with session.get(f"{url}/readyz") as answer:
                found = await answer.json()
                assert (answer.status, found["role"]) == (200, "standby")
            quiet, began_s = len(frozen.lines), time.monotonic()
            other.send(signal.SIGKILL)
            await frozen.says(STARTED, after=quiet)
            print(f"takeover: frozen {takeover_s:.1f} s, killed {time.monotonic() - began_s:.1f} s")
            frozen.send(signal.SIGTERM)
            assert await asyncio.wait_for(frozen.process.wait(), 20) == 0


async def closed(session: aiohttp.ClientSession, url: str) -> dict[str, Any] | None:
    """The instance once one recovery of it is over."""
    found = await state_of(session, url)
    return found if found["state"] == "ok" and found["recoveries_closed"] == 1 else None
