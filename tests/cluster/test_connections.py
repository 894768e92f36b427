"""The real transport on real sockets: kubernetes-asyncio's configuration, aiohttp's failures (real time)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from kubernetes_asyncio import client as client_library

from mindie_ha.cluster.client import Client, PatchKind, Selection
from mindie_ha.cluster.connections import KubernetesTransport, connect
from mindie_ha.cluster.informers import Informer
from mindie_ha.cluster.resources import CONFIG_MAP, POD, Resource
from mindie_ha.cluster.sources import PODS, Source
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import ClusterError, Conflict, InputError, LeaseLost, NotFound, Unreachable
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.edge import served
from mindie_ha.sim.server import ApiServer

KEY = ObjectKey("mindie", "a")
POD_BODY = orjson.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "mindie"},
        "spec": {"containers": [{"name": "ascend", "image": "x"}]},
    }
)


@asynccontextmanager
async def transport_to(url: str, folder: Path) -> AsyncIterator[KubernetesTransport]:
    path = folder / "kubeconfig"
    kubeconfigs.write(path, url, namespace="mindie")
    made = await connect(str(path))
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def answering(handler: object) -> AsyncIterator[str]:
    """A bare HTTP server, for what the embedded one never does."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)  # type: ignore[arg-type]
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def server() -> ApiServer:
    return ApiServer(clock=LoopClock(), entropy=Entropy(1))


@pytest.fixture
async def client(server: ApiServer, tmp_path: Path) -> AsyncIterator[Client]:
    async with served(server) as url, transport_to(url, tmp_path) as transport:
        yield Client(transport)


async def test_verbs_pass_through_a_socket(client: Client) -> None:
    made = orjson.loads(await client.create(POD, "mindie", POD_BODY))
    patch = orjson.dumps({"metadata": {"labels": {"x": "y"}}})
    await client.patch(POD, KEY, patch, kind=PatchKind.MERGE)
    assert orjson.loads(await client.get(POD, KEY))["metadata"]["labels"] == {"x": "y"}
    with pytest.raises(Conflict):
        await client.delete(POD, KEY, orjson.dumps({"preconditions": {"uid": "other"}}))
    uid = made["metadata"]["uid"]
    await client.delete(POD, KEY, orjson.dumps({"preconditions": {"uid": uid}, "gracePeriodSeconds": 0}))
    with pytest.raises(NotFound, match="get pods mindie/a: 404"):
        await client.get(POD, KEY)


async def test_a_write_is_stopped_even_when_only_its_bytes_are_left_to_send(
    server: ApiServer, client: Client
) -> None:
    """The gate opens when the request is made, and is closed once there is a connection."""
    answers = [10.0]

    def gate() -> float:
        if not answers:
            raise LeaseLost("meanwhile")
        return answers.pop()

    with pytest.raises(LeaseLost, match="meanwhile"):
        await client.create(POD, "mindie", POD_BODY, gate=gate)
    with pytest.raises(NotFound):
        await client.get(POD, KEY)
    assert not server.audit
    await client.create(POD, "mindie", POD_BODY, gate=lambda: 10.0)


async def test_an_informer_follows_through_a_socket(client: Client) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    def hear(_source: Source, key: ObjectKey, _old: object, _new: object) -> None:
        heard.put_nowait(key.name)

    informer = Informer(
        PODS,
        client=client,
        clock=LoopClock(),
        entropy=Entropy(1),
        settings=ClusterSettings(),
        log=silent_log(),
        metrics=Metrics(),
        on_change=hear,
        on_refused=lambda *_: None,
    )
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(4):
            await informer.synced.wait()
            await client.create(POD, "mindie", POD_BODY)
            assert await heard.get() == "a"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_leaving_a_watch_closes_its_connection(client: Client, server: ApiServer) -> None:
    async with client.watch(CONFIG_MAP, Selection(), resource_version="1", timeout_s=60) as lines:
        waiting = asyncio.create_task(anext(lines))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    for _ in range(100):
        if not server.core.hub.watchers():
            break
        await asyncio.sleep(0.02)
    assert server.core.hub.watchers() == []


async def test_nobody_listens(tmp_path: Path) -> None:
    async with transport_to("http://127.0.0.1:1", tmp_path) as transport:
        with pytest.raises(Unreachable, match="no answer"):
            await Client(transport).get(POD, KEY)
        with pytest.raises(Unreachable, match="no answer"):
            async with transport.stream("GET", "/api/v1/pods"):
                pass


async def test_an_answer_that_does_not_come_in_time_is_none(tmp_path: Path) -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    began_s = time.monotonic()
    async with answering(slow) as url, transport_to(url, tmp_path) as transport:
        with pytest.raises(Unreachable):
            await transport.request("GET", "/api/v1/pods", timeout_s=0.2)
    assert time.monotonic() - began_s < 4


async def test_a_stream_that_dies_in_the_middle_is_unreachable_after_what_came(tmp_path: Path) -> None:
    async def dies(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b'{"type":"BOOKMARK"}\n')
        await asyncio.sleep(0.05)
        assert request.transport is not None
        request.transport.abort()
        return response

    async with answering(dies) as url, transport_to(url, tmp_path) as transport:
        heard = []
        with pytest.raises(Unreachable):  # noqa: PT012 - the loop is what fails
            async with transport.stream("GET", "/api/v1/pods") as chunks:
                async for chunk in chunks:
                    heard.append(chunk)  # noqa: PERF401 - what came before the failure counts
    assert b"".join(heard) == b'{"type":"BOOKMARK"}\n'


async def test_a_refused_watch_is_an_error_of_the_tree(client: Client) -> None:
    nowhere = Resource("no.such.group", "v1", "Thing", "things")
    with pytest.raises(NotFound):
        async with client.watch(nowhere, Selection(), resource_version="1", timeout_s=5):
            pass


async def test_after_a_401_the_kubeconfig_is_read_again(tmp_path: Path) -> None:
    tokens: list[str] = []

    async def check(request: web.Request) -> web.Response:
        tokens.append(request.headers.get("Authorization", ""))
        return web.json_response({}, status=200 if tokens[-1] == "Bearer new" else 401)

    def write(path: Path, url: str, token: str) -> None:
        path.write_text(
            orjson.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": url}}],
                    "users": [{"name": "u", "user": {"token": token}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            ).decode()
        )

    path = tmp_path / "config"
    async with answering(check) as url:
        write(path, url, "old")
        transport = await connect(str(path))
        try:
            assert (await transport.request("GET", "/x", timeout_s=2)).status == 401
            write(path, url, "new")
            assert (await transport.request("GET", "/x", timeout_s=2)).status == 200
        finally:
            await transport.close()
    assert tokens == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize("content", [None, "", "{", "a: [", "clusters: 3"])
async def test_an_unusable_kubeconfig_is_one_clear_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=r"kubeconfig .*: is not usable: .*--kubeconfig FILE"):
        await connect(str(path))


async def test_a_token_that_cannot_be_read_for_a_moment_is_no_answer() -> None:
    def missing(_configuration: object) -> None:
        raise FileNotFoundError("token")

    configuration = client_library.Configuration(host="http://127.0.0.1:1")
    configuration.api_key["BearerToken"] = "Bearer old"
    configuration.refresh_api_key_hook = missing
    api = client_library.ApiClient(configuration)
    transport = KubernetesTransport(api, kubeconfig=None, user_agent="test")
    try:
        with pytest.raises(Unreachable, match="credentials cannot be read now"):
            await Client(transport).get(POD, KEY)
    finally:
        await transport.close()


async def test_outside_a_cluster_the_missing_service_account_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ClusterError, match="service account of this pod is not usable"):
        await connect(None)
