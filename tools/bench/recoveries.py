"""Fault to deletion, and instance table to consumer, on a live cluster; with a bare loop as the floor.

Three processes beside this one: the API server with the actors, the controller, the bare loop. Each run
writes one fault for the floor and one for the product, so that both meet the same machine at the same time.

* The clock starts when the API server has made its answer to the write, not when we have read it.
* A fault is a device report with the card in `-Unhealthy` and a right CheckCode, written directly: what the
  device plugin needs is not in the figure.
* Deletion: the first DELETE of a pod of the instance, as the server receives it. Between the two the
  controller writes ahead and isolates; how long those requests were with the server is reported beside.
* Table: from the last write of a completed `hccl.json` to the message at a gRPC subscriber.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import grpc

from mindie_ha.demo import manifests
from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.actors.deviceinfos import PREFIX, check_code, go_json
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.kubeconfigs import Access
from mindie_ha.sim.transports import connected
from mindie_ha.wire import config_pb2, config_pb2_grpc
from tools.bench import floors
from tools.bench.controllers import CONFIG
from tools.bench.processes import child
from tools.bench.taps import PATH, Note

PATIENCE_S = 60.0
LOOK_S = 0.05
UNHEALTHY = "huawei.com/Ascend910-Unhealthy"
NAMESPACE, JOB_ID = "mindie", "mindie-ms"
PREFILLS = ("mindie-server-p0", "mindie-server-p1")
_LEDGER = re.compile(r"/configmaps(/mindie-ha-(ledger|node|service)-.*)?$")


@dataclass(slots=True)
class Timings:
    """One entry a run, in seconds."""

    floor: list[float] = field(default_factory=list)
    deletion: list[float] = field(default_factory=list)
    own_writes: list[float] = field(default_factory=list)
    beside_writes: list[float] = field(default_factory=list)
    table: list[float] = field(default_factory=list)
    requests: dict[str, list[float]] = field(default_factory=dict)  # of the chain to the deletion, by kind


class Subscriber:
    """MS Controller's side of the wire: notes when which table came."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.tables: list[tuple[float, int]] = []  # (when, number of server instances)

    async def run(self) -> None:
        """Subscribe until cancelled."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._port}") as channel:
            stub = config_pb2_grpc.ConfigStub(channel)
            info = config_pb2.ClientInfo(jobId=JOB_ID, role="mindie-ms-controller")
            await stub.Register(info, timeout=PATIENCE_S)
            async for message in stub.SubscribeRankTable(info):
                came_s = time.monotonic()
                groups = json.loads(message.rankTable)["server_group_list"]
                self.tables.append((came_s, len(groups) - 2))


class Bench:
    """Drives the runs."""

    def __init__(self, *, url: str, http: str, api: ApiClient, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._http = http
        self._api = api
        self._session = session
        self._random = random.Random(1)
        self.timings = Timings()

    async def prepare(self) -> None:
        """Deploy the service and the floor's ConfigMap."""
        for obj in manifests.load("pd-a2"):
            await self._api.create(obj["kind"], obj)
        meta = {"name": floors.NAME, "namespace": "kube-system", "labels": {"mx-consumer-cim": "true"}}
        await self._api.create("ConfigMap", {"metadata": meta, "data": {}})

    async def floor(self, number: int) -> None:
        """One run of the bare loop, with a ConfigMap of the product's size."""
        report = await self._report("node-0")
        spec = {"containers": [{"name": "idle", "image": "idle"}], "schedulerName": "nobody"}
        pod = await self._api.create(
            "Pod", {"metadata": {"name": f"floor-{number}", "namespace": "default"}, "spec": spec}
        )
        after = await self._newest()
        data = {**report, "pod": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        await self._api.patch("ConfigMap", floors.NAME, "kube-system", {"data": data})
        path = f"/api/v1/namespaces/default/pods/floor-{number}"
        notes = await self._until(after, lambda notes: any(_is_delete(one, path) for one in notes))
        written = next(one for one in notes if one.path.endswith(floors.NAME))
        deleted = next(one for one in notes if _is_delete(one, path))
        self.timings.floor.append(deleted.received_s - written.answered_s)

    async def recovery(self, number: int, subscriber: Subscriber) -> None:
        """One recovery of the product, from fault to quiet."""
        job = PREFILLS[number % len(PREFILLS)]
        node, card = await self._victim(job)
        await asyncio.sleep(self._random.uniform(0.0, 0.02))
        after, seen = await self._newest(), len(subscriber.tables)
        await self._write_report(node, unhealthy=card)
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{job}-"
        await wait_for(lambda: _is_back(subscriber.tables[seen:]), what="the new table at the subscriber")
        notes = await self._until(after, lambda notes: any(_is_delete(one, path) for one in notes))
        self._judge_deletion(notes, node, path)
        came_s = next(at_s for at_s, count in reversed(subscriber.tables) if count == 4)
        rings = f"/rings-config-{job}"
        completed = [
            one for one in notes if one.completed and one.path.endswith(rings) and one.method != "GET"
        ]
        self.timings.table.append(came_s - completed[-1].answered_s)
        await self._write_report(node, unhealthy="")
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until nothing is left of what happened before."""
        await wait_for(self._is_quiet, what="the cluster at rest")

    def _judge_deletion(self, notes: list[Note], node: str, path: str) -> None:
        written = next(one for one in notes if one.path.endswith(PREFIX + node) and one.method == "PATCH")
        deleted = next(one for one in notes if _is_delete(one, path))
        chain = [
            one
            for one in notes
            if one.agent.startswith("mindie-ha")
            and written.answered_s <= one.received_s
            and one.answered_s <= deleted.received_s
            and (_LEDGER.search(one.path) or one.path.startswith("/api/v1/nodes/"))
        ]
        total_s = deleted.received_s - written.answered_s
        own_s = _isolating_s(chain)
        self.timings.deletion.append(total_s)
        self.timings.own_writes.append(own_s)
        self.timings.beside_writes.append(total_s - own_s)
        for one in chain:
            spent_s = one.answered_s - one.received_s
            self.timings.requests.setdefault(_kind(one), []).append(spent_s)

    async def _victim(self, job: str) -> tuple[str, str]:
        pods, _ = await self._api.list("Pod", NAMESPACE)
        mine = [pod for pod in pods if pod["metadata"]["name"].startswith(f"{job}-")]
        pod = self._random.choice(mine)
        cards = pod["metadata"]["annotations"]["huawei.com/AscendReal"].split(",")
        return pod["spec"]["nodeName"], self._random.choice(cards)

    async def _report(self, node: str) -> dict[str, str]:
        found = await self._api.get("ConfigMap", PREFIX + node, "kube-system")
        assert found is not None  # noqa: S101 - the world is ready
        data: dict[str, str] = found["data"]
        return data

    async def _write_report(self, node: str, *, unhealthy: str) -> None:
        body = json.loads((await self._report(node))["DeviceInfoCfg"])
        devices = {**body["DeviceInfo"]["DeviceList"], UNHEALTHY: unhealthy}
        update_time = int(time.time())
        body["DeviceInfo"] = {"DeviceList": dict(sorted(devices.items())), "UpdateTime": update_time}
        body["CheckCode"] = check_code(devices, update_time)
        data = {"data": {"DeviceInfoCfg": go_json(body)}}
        await self._api.patch("ConfigMap", PREFIX + node, "kube-system", data)

    async def _notes(self, after: int) -> list[Note]:
        async with self._session.get(f"{self._url}{PATH}", params={"after": str(after)}) as answer:
            return [Note(**note) for note in await answer.json()]

    async def _newest(self) -> int:
        notes = await self._notes(0)
        return notes[-1].seq

    async def _until(self, after: int, enough: Callable[[list[Note]], bool]) -> list[Note]:
        notes: list[Note] = []

        async def look() -> bool:
            nonlocal notes
            notes = await self._notes(after)
            return enough(notes)

        await wait_for(look, what="a DELETE at the API server")
        return notes

    async def _is_quiet(self) -> bool:
        async with self._session.get(f"{self._http}/v1/services/{NAMESPACE}/{JOB_ID}") as answer:
            if answer.status != 200 or (await answer.json())["state"] != "ok":
                return False
        nodes, _ = await self._api.list("Node")
        if any("mindie" in taint["key"] for node in nodes for taint in node["spec"].get("taints") or ()):
            return False
        config_maps, _ = await self._api.list("ConfigMap", "kube-system")
        shards, _ = await self._api.list("ConfigMap", "mindx-dl", labels="mx-consumer-volcano=true")
        texts = [text for one in (*config_maps, *shards) for text in (one.get("data") or {}).values()]
        return not any(re.search(rf'"{UNHEALTHY}":"[^"]', text) for text in texts)


async def measure(*, runs: int, directory: Path, progress: Callable[[str], None]) -> Timings:
    """Start everything, do the runs, stop everything."""
    log, kubeconfig, config = (directory / name for name in ("children.log", "kubeconfig", "config.yaml"))
    grpc_port, http_port = _free_ports(2)
    config.write_text(CONFIG, encoding="utf-8")
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(child("tools.bench.clusters", "actors", log=log))
        url = cluster["url"]
        kubeconfigs.write(kubeconfig, url)
        exchange = await stack.enter_async_context(connected(Access(url, {}, None), user_agent="bench"))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        http = f"http://127.0.0.1:{http_port}"
        bench = Bench(url=url, http=http, api=ApiClient(exchange), session=session)
        await bench.prepare()
        await stack.enter_async_context(child("tools.bench.floors", url, log=log))
        arguments = ("--kubeconfig", str(kubeconfig), "--config", str(config))
        ports = ("--grpc", str(grpc_port), "--http", str(http_port))
        await stack.enter_async_context(child("tools.bench.controllers", *arguments, *ports, log=log))
        await wait_for(lambda: _answers(session, f"{http}/readyz"), what="the controller")
        subscriber = Subscriber(grpc_port)
        task = asyncio.create_task(subscriber.run())
        try:
            await bench.quiet()
            for number in itertools.count() if runs < 0 else range(runs):
                progress(f"recovery {number + 1} of {runs}")
                await bench.floor(number)
                await bench.recovery(number, subscriber)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return bench.timings


async def wait_for(condition: Callable[[], bool | Awaitable[bool]], *, what: str) -> None:
    """Look every 50 ms until it holds; TimeoutError names `what`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                held = condition()
                if held is True or (not isinstance(held, bool) and await held):
                    return
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise TimeoutError(f"not within {PATIENCE_S:g} s: {what}") from None


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


def _is_back(tables: list[tuple[float, int]]) -> bool:
    """The instance left the table and is in it again."""
    counts = [count for _, count in tables]
    return 3 in counts and counts[-1] == 4


def _is_delete(note: Note, path: str) -> bool:
    return note.method == "DELETE" and note.path.startswith(path)


def _isolating_s(chain: list[Note]) -> float:
    """From the arrival of the first write about the node to the answer to the last."""
    about_node = [one for one in chain if "node" in _kind(one)]
    if not about_node:
        return 0.0
    return max(one.answered_s for one in about_node) - min(one.received_s for one in about_node)


def _kind(note: Note) -> str:
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get"}.get(note.method, note.method)
    if note.path.startswith("/api/v1/nodes/"):
        return f"{verb} node (taint)"
    family = _LEDGER.search(note.path)
    if family is None or not family[2]:
        return f"{verb} ledger"
    return f"{verb} {'workload' if family[2] == 'ledger' else family[2]} ledger"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
