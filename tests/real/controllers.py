"""A `mindie-ha run` process in the place of a container: started on its pod's address, watched, killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from tests.real.machines import MAIN, PROGRAM, WITHIN_S, environment

T = TypeVar("T")
QUICK = {
    "MINDIE_HA_PHASES__SETTLE_S": "2",
    "MINDIE_HA_FAULTS__NODE_NOT_READY_S": "2",
    "MINDIE_HA_FAULTS__RELEASE_AFTER_S": "1",
    "MINDIE_HA_FAULTS__MANUAL_THRESHOLD": "1000",
    "MINDIE_HA_BUDGETS__STABLE_S": "1",
    "MINDIE_HA_BUDGETS__GRANT_RETRIES_AFTER_S": "1",
}
"""Waits of the field that prove nothing on a test machine."""


class Controller:
    """One process; `lines` holds what it logged, oldest first."""

    def __init__(self, process: asyncio.subprocess.Process, *, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self.lines: list[dict[str, Any]] = []
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self._process.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    async def kill(self) -> None:
        """End it as a crash does."""
        self.signal(signal.SIGKILL)
        await self._process.wait()

    async def said(self, event: str, *, after: int = 0, **fields: object) -> dict[str, Any]:
        """The first line from index `after` on whose event contains this text and that has these fields."""

        async def look() -> dict[str, Any] | None:
            for line in self.lines[after:]:
                if event in str(line.get("event")) and fields.items() <= line.items():
                    return line
            self._lives()
            return None

        return await until(look, what=f"{self.name} says {event!r} {fields}; last: {self.lines[-3:]}")

    async def get(self, path: str) -> Any:
        """A document of its HTTP API; None while it does not answer."""
        try:
            async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
                return await answer.json() if answer.status == 200 else None
        except (aiohttp.ClientError, OSError):
            return None

    async def health(self) -> dict[str, Any]:
        """What it says about itself, ready or not; asked again until it answers."""

        async def look() -> dict[str, Any] | None:
            try:
                async with aiohttp.ClientSession() as session, session.get(self.url + "/readyz") as answer:
                    found: dict[str, Any] = await answer.json()
                    return found
            except (aiohttp.ClientError, OSError):
                self._lives()
                return None

        return await until(look, what=f"{self.name} answers /readyz")

    async def text(self, path: str) -> str:
        """A page of its HTTP server."""
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
            return await answer.text()

    async def post(self, path: str, body: dict[str, Any], *, token: str) -> int:
        """The status of a change over HTTP."""
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(self.url + path, json=body) as answer,
        ):
            return answer.status

    async def workload(self, name: str) -> dict[str, Any] | None:
        """How it sees a workload, by the last part of its name."""
        found = await self.get("/v1/services")
        workloads = [one for service in (found or {}).get("services", []) for one in service["workloads"]]
        return next((one for one in workloads if one["name"] == name), None)

    async def well(self, name: str, *, closed: int = 0) -> dict[str, Any]:
        """Wait until a workload is fine and so many recoveries of it were closed."""

        async def look() -> dict[str, Any] | None:
            found = await self.workload(name)
            good = found and found["state"] == "ok" and found["recoveries_closed"] >= closed
            return found if good else None

        try:
            return await until(look, what=f"{name} is well after {closed} recoveries")
        except AssertionError as error:
            error.add_note(f"{self.name} sees it so: {await self.workload(name)}")
            error.add_note("it said last: " + "\n".join(str(line) for line in self.lines[-20:]))
            raise

    def _lives(self) -> None:
        assert self._process.returncode is None, f"{self.name} ended: {self.lines[-5:]}"

    async def read(self) -> None:
        """Collect what it logs until it ends."""
        assert self._process.stderr is not None
        async for raw in self._process.stderr:
            try:
                line = json.loads(raw)
            except ValueError:
                line = {"event": raw.decode(errors="replace").strip()}
            self.lines.append(line)


@asynccontextmanager
async def running(
    *, kubeconfig: Path, pod: dict[str, Any], settings: dict[str, str] | None = None
) -> AsyncIterator[Controller]:
    """`mindie-ha run` as the container of this pod; unless it was killed, it has to end well when told to."""
    address = pod["status"]["podIP"]
    listen = ("--grpc-listen", f"{address}:8899", "--http-listen", f"{address}:8080")
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, MAIN, "run", "--kubeconfig", str(kubeconfig), *listen),
        stderr=asyncio.subprocess.PIPE,
        env={**environment(), **QUICK, **downward(pod), **(settings or {})},
        limit=1 << 20,
    )
    controller = Controller(process, url=f"http://{address}:8080", name=pod["metadata"]["name"])
    reader = asyncio.create_task(controller.read())
    try:
        yield controller
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            await asyncio.wait_for(process.wait(), WITHIN_S)
            assert process.returncode == 0, controller.lines[-5:]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await reader


def downward(pod: dict[str, Any]) -> dict[str, str]:
    """The environment that the pod's own manifest asks for: its name, namespace, address."""
    values = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "metadata.uid": pod["metadata"]["uid"],
        "spec.nodeName": pod["spec"]["nodeName"],
        "status.podIP": pod["status"]["podIP"],
    }
    found = {}
    for one in pod["spec"]["containers"][0].get("env", []):
        field = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        found[one["name"]] = str(values[field]) if field else str(one.get("value", ""))
    return found


async def until(look: Callable[[], Awaitable[T | None]], *, what: str, within_s: float = WITHIN_S) -> T:
    """Ask again and again: other processes give no event."""
    deadline_s = asyncio.get_running_loop().time() + within_s
    while not (found := await look()):
        assert asyncio.get_running_loop().time() < deadline_s, f"not within {within_s:g} s: {what}"
        await asyncio.sleep(0.2)
    return found
