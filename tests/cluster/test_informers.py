"""Informers against the embedded API server: the cache is right again after any disturbance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from mindie_ha.cluster.sources import LEDGERS, OWNERS, RETRIES
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.sim.disturbances import Rule
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from tests.cluster.conftest import Between, Cluster, Watcher, settle, status, stream_of

pytestmark = pytest.mark.looptime


async def test_what_is_there_and_what_changes_is_told_once_and_in_order(cluster: Cluster) -> None:
    await cluster.pod("a")
    watcher = await Watcher(cluster).synced()
    await cluster.pod("b")
    await cluster.label("a", "1")
    await cluster.kill("b")
    await settle()
    dying = [("changed", "b"), ("gone", "b")]  # its grace of 0 s is written before it goes
    assert watcher.changes == [("added", "a"), ("added", "b"), ("changed", "a"), *dying]
    assert watcher.names() == ["a"]


async def test_a_long_list_is_read_in_pages(cluster: Cluster) -> None:
    for number in range(7):
        await cluster.pod(f"p{number}")
    between = Between(cluster.server)
    settings = ClusterSettings(page_size=3)
    watcher = await Watcher(cluster, settings=settings, exchange=between).synced()
    assert len(watcher.names()) == 7
    assert between.count(watch=False) == 3


async def test_a_continue_token_that_expires_between_pages_starts_the_list_anew_in_one_piece(
    cluster: Cluster,
) -> None:
    for number in range(7):
        await cluster.pod(f"p{number}")

    class Expiring(Between):
        async def handle(self, request: ApiRequest) -> ApiResponse:
            if "continue" in request.query:
                await cluster.label("p0", "moved")
                cluster.server.disturbances.expire_history()
            return await super().handle(request)

    between = Expiring(cluster.server)
    watcher = await Watcher(cluster, settings=ClusterSettings(page_size=3), exchange=between).synced()
    assert len(watcher.names()) == 7
    assert [request.query.get("limit") for request in between.requests[:3]] == ["3", "3", None]


async def test_410_as_an_error_event_lists_again_and_tells_what_vanished(cluster: Cluster) -> None:
    await cluster.pod("stays")
    await cluster.pod("goes")
    watcher = await Watcher(cluster).synced()
    cluster.server.disturbances.add(Rule(method="GET", resource="pods", code=503, times=3))
    cluster.server.disturbances.cut_watches("pods")
    await asyncio.sleep(0)
    await cluster.kill("goes")
    await cluster.pod("comes")
    cluster.server.disturbances.expire_history()
    await settle(5)
    assert watcher.names() == ["comes", "stays"]
    assert ("gone", "goes") in watcher.changes
    assert ("added", "comes") in watcher.changes
    assert watcher.metric("informer_lists_total", source="pods", cause="expired") == 1


async def test_410_as_an_http_status_lists_again(cluster: Cluster) -> None:
    await cluster.pod("a")
    between = Between(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()
    between.canned.append(status(410, "Expired"))
    cluster.server.disturbances.cut_watches("pods")
    await settle(5)
    assert watcher.informer.lists == 2
    assert watcher.changes == [("added", "a")]


async def test_429_storage_is_reinitializing_is_waited_out_and_is_no_failure(cluster: Cluster) -> None:
    await cluster.pod("a")
    between = Between(cluster.server)
    message = "storage is (re)initializing"
    between.canned += [status(429, "TooManyRequests", message, **{"Retry-After": "3"})] * 2
    watcher = await Watcher(cluster, exchange=between).synced()
    assert watcher.times == [pytest.approx(6.0)]
    assert watcher.informer.problem == ""
    assert watcher.metric("informer_breaks_total", source="pods", cause="Throttled") == 0


async def test_5xx_on_the_list_is_tried_again(cluster: Cluster) -> None:
    await cluster.pod("a")
    cluster.server.disturbances.add(Rule(method="GET", resource="pods", code=500, times=4))
    watcher = await Watcher(cluster).synced()
    assert watcher.names() == ["a"]
    assert watcher.times[0] < 5


@pytest.mark.parametrize("mid_line", [False, True], ids=["clean-end", "mid-line"])
async def test_a_cut_stream_resumes_from_the_last_version_without_a_list(
    cluster: Cluster, mid_line: bool
) -> None:
    await cluster.pod("a")
    watcher = await Watcher(cluster).synced()
    await cluster.label("a", "1")
    await settle()
    cluster.server.disturbances.cut_watches("pods", mid_line=mid_line)
    await cluster.label("a", "2")
    await cluster.pod("b")
    await settle(5)
    assert watcher.informer.lists == (1 if not mid_line else watcher.informer.lists)
    assert watcher.changes.count(("changed", "a")) == 2
    assert watcher.names() == ["a", "b"]


async def test_a_reset_connection_in_the_stream_is_resumed_without_a_list(cluster: Cluster) -> None:
    await cluster.pod("a")
    between = Between(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()

    async def broken() -> AsyncIterator[bytes]:
        raise ConnectionResetError("TransferEncodingError")
        yield b""

    between.canned.append(ApiResponse(200, stream=broken()))
    cluster.server.disturbances.cut_watches("pods")
    await cluster.pod("b")
    await settle(5)
    assert watcher.names() == ["a", "b"]
    assert watcher.informer.lists == 1


async def test_case_119_a_watch_that_falls_silent_is_opened_anew_within_the_inactivity_limit(
    cluster: Cluster,
) -> None:
    await cluster.pod("a")
    watcher = await Watcher(cluster, settings=ClusterSettings(inactivity_s=20.0)).synced()
    begun_s = asyncio.get_running_loop().time()
    cluster.server.disturbances.silence_watches("pods", for_s=10_000.0)
    await cluster.label("a", "unseen")
    await settle(30)
    assert watcher.changes[-1] == ("changed", "a")
    assert watcher.times[-1] - begun_s < 22
    assert watcher.metric("informer_breaks_total", source="pods", cause="Silent") == 1


async def test_case_119_lists_are_taken_anew_from_time_to_time(cluster: Cluster) -> None:
    await cluster.pod("a")
    watcher = await Watcher(cluster, settings=ClusterSettings(relist_s=1000.0)).synced()
    for number in range(50):  # a living cluster: bookmarks flow
        await cluster.create("/api/v1/namespaces/mindie/configmaps", f"c{number}")
        await settle(60)
    assert watcher.informer.lists in (2, 3)
    assert watcher.changes == [("added", "a")]


async def test_case_119_where_no_watch_ever_brings_anything_lists_do(cluster: Cluster) -> None:
    async def never() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    class Swallowing(Between):
        async def handle(self, request: ApiRequest) -> ApiResponse:
            if "watch" in request.query:
                return ApiResponse(200, stream=never())
            return await super().handle(request)

    between = Swallowing(cluster.server)
    watcher = await Watcher(cluster, settings=ClusterSettings(inactivity_s=20.0), exchange=between).synced()
    await cluster.pod("a")
    await settle(60)
    assert watcher.names() == ["a"]


async def test_case_121_a_missing_permission_names_verb_and_resource_and_does_not_spin(
    cluster: Cluster,
) -> None:
    between = Between(cluster.server)
    text = 'pods is forbidden: User "x" cannot list resource "pods"'
    between.canned += [status(403, "Forbidden", text)] * 1000
    watcher = Watcher(cluster, exchange=between)
    await settle(120)
    assert "permission is missing: list pods" in watcher.informer.problem
    assert not watcher.informer.synced.is_set()
    assert len(between.requests) < 20
    between.canned.clear()
    await watcher.synced()
    assert watcher.informer.problem == ""


async def test_a_crd_that_is_not_installed_is_waited_for_quietly(cluster: Cluster) -> None:
    between = Between(cluster.server)
    between.canned += [status(404, "NotFound", "the server could not find the requested resource")] * 2
    watcher = await Watcher(cluster, source=OWNERS[0], exchange=between).synced()
    assert "AscendJob is not installed" in watcher.informer.problem
    await settle(30)
    assert watcher.informer.problem == ""
    assert watcher.informer.lists == 1


async def test_an_unparsable_line_is_counted_and_costs_a_list_not_the_informer(cluster: Cluster) -> None:
    await cluster.pod("a")
    between = Between(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()
    between.canned.append(stream_of(b"{broken\n"))
    cluster.server.disturbances.cut_watches("pods")
    await cluster.pod("b")
    await settle(5)
    assert watcher.metric("watch_lines_unparsable_total", source="pods") == 1
    assert watcher.names() == ["a", "b"]


async def test_an_overlong_line_is_counted_and_skipped(cluster: Cluster) -> None:
    between = Between(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()
    between.canned.append(stream_of(*[b"x" * (1 << 20)] * 9, b"\n"))
    cluster.server.disturbances.cut_watches("pods")
    await settle(5)
    assert watcher.metric("watch_lines_unparsable_total", source="pods") == 1


async def test_a_malformed_object_costs_only_itself_and_keeps_its_past(cluster: Cluster) -> None:
    good = await cluster.pod("good")
    watcher = Watcher(cluster, exchange=(between := Between(cluster.server)))
    await watcher.synced()
    version = int(good["metadata"]["resourceVersion"]) + 500
    meta = {"name": "good", "namespace": "mindie", "uid": "u", "resourceVersion": str(version)}
    bad = {"metadata": meta, "spec": {"containers": [None]}}
    line = b'{"type":"MODIFIED","object":' + orjson.dumps(bad) + b"}\n"
    between.canned.append(stream_of(line))
    cluster.server.disturbances.cut_watches("pods")
    await settle()
    assert watcher.names() == ["good"]
    assert "Pod mindie/good: field spec.containers.0" in watcher.refused[0]
    assert watcher.metric("inputs_refused_total", source="pods") == 1


async def test_a_malformed_object_that_nobody_knew_is_told_when_it_is_gone(cluster: Cluster) -> None:
    watcher = Watcher(cluster, exchange=(between := Between(cluster.server)))
    await watcher.synced()
    meta = {"name": "bad", "namespace": "mindie", "uid": "u", "resourceVersion": "900"}
    bad = orjson.dumps({"metadata": meta, "spec": {"containers": [None]}})
    gone = orjson.dumps({"metadata": {**meta, "resourceVersion": "901"}})
    added = b'{"type":"ADDED","object":' + bad + b"}\n"
    between.canned.append(stream_of(added, b'{"type":"DELETED","object":' + gone + b"}\n"))
    cluster.server.disturbances.cut_watches("pods")
    await settle()
    assert len(watcher.refused) == 1
    assert watcher.changes == [("malformed no more", "bad")]


async def test_a_pod_replaced_between_two_looks_is_told_as_gone_and_added(cluster: Cluster) -> None:
    await cluster.pod("a")
    watcher = await Watcher(cluster).synced()
    cluster.server.disturbances.add(Rule(method="GET", resource="pods", code=503, times=2))
    cluster.server.disturbances.cut_watches("pods")
    await cluster.kill("a")
    await cluster.pod("a")
    cluster.server.disturbances.expire_history()
    await settle(5)
    assert watcher.changes == [("added", "a"), ("gone", "a"), ("added", "a")]


async def test_bookmarks_keep_the_age_low_and_advance_the_version(cluster: Cluster) -> None:
    await cluster.pod("a")
    between = Between(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()
    for _ in range(5):
        await cluster.create("/api/v1/namespaces/mindie/configmaps", f"c{_}")
        await settle(60)
        assert watcher.informer.age_s < 70
    cluster.server.disturbances.expire_history()
    cluster.server.disturbances.cut_watches("pods")
    await settle(5)
    last = int(between.requests[-1].query["resourceVersion"])
    assert last > int(between.requests[1].query["resourceVersion"])


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(cluster: Cluster) -> None:
    between = Between(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()
    between.canned += [stream_of()] * 10_000
    cluster.server.disturbances.cut_watches("pods")
    await settle(10)
    assert between.count(watch=True) < 150
    assert watcher.informer.lists == 1


async def test_selections_by_label_and_by_name_see_only_their_objects(cluster: Cluster) -> None:
    maps = "/api/v1/namespaces/{}/configmaps"
    await cluster.create(maps.format("mindie"), "l", metadata={"labels": {"mindie-ha.io/ledger": "workload"}})
    await cluster.create(maps.format("mindie"), "other")
    await cluster.create(maps.format("volcano-system"), "vcjob-fault-npu-cm")
    await cluster.create(maps.format("mindie"), "vcjob-fault-npu-cm")
    ledgers = await Watcher(cluster, source=LEDGERS).synced()
    retries = await Watcher(cluster, source=RETRIES).synced()
    assert ledgers.names() == ["l"]
    assert list(retries.informer.objects) == [ObjectKey("volcano-system", "vcjob-fault-npu-cm")]


async def test_a_flood_of_disturbances_ends_in_the_true_state_and_lists_never_overlap(
    cluster: Cluster,
) -> None:
    running = 0
    most = 0

    class Counting(Between):
        async def handle(self, request: ApiRequest) -> ApiResponse:
            nonlocal running, most
            if "watch" in request.query:
                return await super().handle(request)
            running += 1
            most = max(most, running)
            try:
                return await super().handle(request)
            finally:
                running -= 1

    watcher = await Watcher(cluster, exchange=Counting(cluster.server)).synced()
    shake = cluster.server.disturbances
    for number in range(120):
        await cluster.pod(f"p{number % 10}-{number}")
        if number % 3 == 0:
            shake.cut_watches("pods", mid_line=number % 2 == 0)
        if number % 7 == 0:
            shake.expire_history()
        if number % 5 == 0:
            shake.add(Rule(method="GET", resource="pods", code=503 if number % 2 else 429))
        if number > 20 and number % 2:
            await cluster.kill(f"p{(number - 20) % 10}-{number - 20}")
        await settle(0.3)
    shake.clear()
    await settle(90)
    truth = await cluster.request("GET", "/api/v1/namespaces/mindie/pods")
    assert watcher.names() == sorted(item["metadata"]["name"] for item in truth["items"])
    assert most == 1


def _line(kind: str, version: str) -> bytes:
    body = {"kind": "Pod", "metadata": {"resourceVersion": version}}
    return orjson.dumps({"type": kind, "object": body}) + b"\n"


async def test_a_bookmark_that_goes_back_means_another_history_and_a_list_counts_whatever_its_version(
    cluster: Cluster,
) -> None:
    await cluster.pod("a")
    between = Between(cluster.server)

    async def restored() -> AsyncIterator[bytes]:
        yield _line("BOOKMARK", "1000000")
        yield _line("BOOKMARK", "3")

    watcher = await Watcher(cluster, exchange=between).synced()
    between.canned.append(ApiResponse(200, stream=restored()))
    cluster.server.disturbances.cut_watches("pods")
    await settle(5)
    assert watcher.metric("informer_lists_total", source="pods", cause="rewound") == 1
    await cluster.label("a", "1")
    await cluster.pod("b")
    await settle()
    assert watcher.names() == ["a", "b"]
    assert watcher.changes[-1] == ("added", "b")


async def test_a_version_ahead_of_the_server_is_no_reason_to_ask_for_it_for_ever(cluster: Cluster) -> None:
    await cluster.pod("a")
    between = Between(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    body = {"kind": "Status", "code": 504, "reason": "Timeout", "details": details}
    between.canned.append(ApiResponse(504, orjson.dumps(body)))
    cluster.server.disturbances.cut_watches("pods")
    await settle(5)
    assert watcher.informer.lists == 2


async def test_watches_that_all_end_at_once_are_slowed_down_and_a_list_tells(cluster: Cluster) -> None:
    await cluster.pod("a")

    class Empty(Between):
        async def handle(self, request: ApiRequest) -> ApiResponse:
            if request.query.get("watch"):
                self.requests.append(request)
                return stream_of()
            return await super().handle(request)

    between = Empty(cluster.server)
    watcher = await Watcher(cluster, exchange=between).synced()
    await cluster.pod("b")
    await settle(60)
    assert watcher.names() == ["a", "b"]
    assert between.count(watch=True) < 40


async def test_a_server_that_was_away_is_listed_anew(cluster: Cluster) -> None:
    await cluster.pod("a")
    watcher = await Watcher(cluster).synced()
    cluster.server.disturbances.add(Rule(resource="pods", reset=True, times=None))
    cluster.server.disturbances.cut_watches("pods")
    await settle(20)
    assert watcher.informer.problem
    cluster.server.disturbances.clear()
    await settle(35)
    assert watcher.informer.problem == ""
    assert watcher.metric("informer_lists_total", source="pods", cause="away") == 1
