"""Through a real socket: kubernetes-asyncio and our own transport (real time)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.disturbances import Rule
from mindie_ha.sim.edge import served
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.transports import connected
from tests.sim.api.conftest import Object, config_map, pod


@pytest.fixture
async def server() -> ApiServer:
    return ApiServer(clock=LoopClock(), entropy=Entropy(1))


@pytest.fixture
async def kubeconfig(server: ApiServer, tmp_path: Path) -> AsyncIterator[Path]:
    async with served(server) as url:
        path = tmp_path / "kubeconfig"
        kubeconfigs.write(path, url, namespace="mindie")
        yield path


@pytest.fixture
async def core(kubeconfig: Path) -> AsyncIterator[client.CoreV1Api]:
    settings = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=settings)
    async with client.ApiClient(settings) as connection:
        yield client.CoreV1Api(connection)


async def test_kubernetes_asyncio_reads_and_writes(core: client.CoreV1Api) -> None:
    made = await core.create_namespaced_pod("mindie", pod("a", app="x"))
    assert made.metadata.uid
    await core.patch_namespaced_pod("a", "mindie", {"metadata": {"labels": {"app": "y"}}})
    listed = await core.list_namespaced_pod("mindie", label_selector="app=y")
    assert [item.metadata.name for item in listed.items] == ["a"]
    with pytest.raises(ApiException) as caught:
        await core.delete_namespaced_pod("a", "mindie", body={"preconditions": {"uid": "other"}})
    assert caught.value.status == 409
    await core.delete_namespaced_pod("a", "mindie", body={"preconditions": {"uid": made.metadata.uid}})
    with pytest.raises(ApiException) as caught:
        await core.read_namespaced_pod("a", "mindie")
    assert caught.value.status == 404


async def test_kubernetes_asyncio_watches_until_the_timeout(core: client.CoreV1Api) -> None:
    listed = await core.list_namespaced_config_map("mindie")

    async def write() -> None:
        await core.create_namespaced_config_map("mindie", config_map("a"))
        await core.delete_namespaced_config_map("a", "mindie")

    task = asyncio.create_task(write())
    seen = []
    async with watch.Watch() as events:
        version = listed.metadata.resource_version
        more = {"resource_version": version, "timeout_seconds": 1}
        async for event in events.stream(core.list_namespaced_config_map, "mindie", **more):
            seen.append(event["type"])
            if len(seen) == 2:
                break
    await task
    assert seen == ["ADDED", "DELETED"]


async def test_kubernetes_asyncio_sees_410_on_a_watch_too_old(
    server: ApiServer, core: client.CoreV1Api
) -> None:
    await core.create_namespaced_config_map("mindie", config_map("a"))
    server.disturbances.expire_history()
    async with watch.Watch() as events:
        with pytest.raises(ApiException) as caught:
            async for _ in events.stream(core.list_namespaced_config_map, "mindie", resource_version="2"):
                pass
    assert caught.value.status == 410


async def test_a_client_that_goes_away_ends_its_watch(server: ApiServer, core: client.CoreV1Api) -> None:
    await core.create_namespaced_config_map("mindie", config_map("a"))
    async with watch.Watch() as events:
        async for _ in events.stream(core.list_namespaced_config_map, "mindie"):
            assert len(server.core.hub.watchers()) == 1
            break
    await core.api_client.close()
    async with asyncio.timeout(3):
        while server.core.hub.watchers():  # noqa: ASYNC110 - the hub tells nobody when a watch ends
            await asyncio.sleep(0.01)


async def test_a_write_to_a_client_that_went_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def late() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            with suppress(asyncio.CancelledError):  # the write races with the end of the handler
                await asyncio.Event().wait()
            yield b"second"
        finally:
            ended.set()

    class Late:
        async def handle(self, request: ApiRequest) -> ApiResponse:
            return ApiResponse(status=200, stream=late())

    async with served(Late()) as url:
        host, _, port = url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"first" in await reader.readuntil(b"first")
        writer.transport.abort()
        async with asyncio.timeout(5):
            await ended.wait()
    assert caplog.records == []


async def test_the_actors_client_works_over_http(server: ApiServer, kubeconfig: Path) -> None:
    async with connected(kubeconfigs.read(kubeconfig)) as exchange:
        api = ApiClient(exchange)
        made = await api.create("ConfigMap", {"metadata": {"name": "a", "namespace": "mindie"}})
        _, version = await api.list("ConfigMap", "mindie")
        await api.patch("ConfigMap", "a", "mindie", {"data": {"k": "v"}})
        seen: list[tuple[str, Object]] = []
        async for event in api.watch("ConfigMap", version, namespace="mindie"):
            seen.append(event)
            break
        assert [(type_, obj["data"]) for type_, obj in seen] == [("MODIFIED", {"k": "v"})]
        await api.delete("ConfigMap", "a", "mindie", uid=made["metadata"]["uid"])
        assert await api.get("ConfigMap", "a", "mindie") is None


async def test_a_reset_is_a_connection_error_over_http(server: ApiServer, kubeconfig: Path) -> None:
    server.disturbances.add(Rule(method="POST", reset=True))
    async with connected(kubeconfigs.read(kubeconfig)) as exchange:
        api = ApiClient(exchange)
        body = {"metadata": {"name": "a", "namespace": "mindie"}}
        with pytest.raises(ConnectionError):
            await api.create("ConfigMap", body)
        await api.create("ConfigMap", body)


async def test_a_watch_cut_within_a_line_breaks_the_connection(server: ApiServer, kubeconfig: Path) -> None:
    async with connected(kubeconfigs.read(kubeconfig)) as exchange:
        api = ApiClient(exchange)
        await api.create("ConfigMap", {"metadata": {"name": "a", "namespace": "mindie"}})
        events = api.watch("ConfigMap", "0", namespace="mindie")
        await anext(events)
        server.disturbances.cut_watches(mid_line=True)
        with pytest.raises(ConnectionError):
            await anext(events)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[", "cannot be read"),
        ("[]", "is not a kubeconfig"),
        ("{current-context: x}", "contexts has no entry named 'x'"),
        (kubeconfigs.render("ftp://x"), "must be an http:// or https:// URL"),
        (kubeconfigs.render("http://x").replace("user: {}", "user: {exec: {}}"), "not supported"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_says_why(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(kubeconfigs.KubeconfigError, match=reason):
        kubeconfigs.read(path)
