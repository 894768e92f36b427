"""Watches: where they begin, what a selection sees, how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.server import ApiServer
from tests.sim.api.conftest import MAPS, Api, Object, config_map

pytestmark = pytest.mark.looptime


async def take(events: AsyncIterator[Object], count: int) -> list[tuple[str, str]]:
    seen = []
    async with asyncio.timeout(10):
        for _ in range(count):
            event = await anext(events)
            seen.append((event["type"], event["object"]["metadata"]["name"]))
    return seen


async def test_a_watch_from_a_version_sees_everything_after_it_once(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    version = (await api.ok("GET", MAPS))["metadata"]["resourceVersion"]
    await api.ok("POST", MAPS, config_map("b"))
    events = await api.watch(MAPS, resourceVersion=version)
    assert await take(events, 1) == [("ADDED", "b")]
    await api.merge(f"{MAPS}/a", {"data": {"k": "1"}})
    await api.merge(f"{MAPS}/a", {"data": {"k": "1"}})
    await api.ok("DELETE", f"{MAPS}/a")
    assert await take(events, 2) == [("MODIFIED", "a"), ("DELETED", "a")]


@pytest.mark.parametrize("version", ["0", ""])
async def test_a_watch_without_a_version_begins_with_what_is_there(api: Api, version: str) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    events = await api.watch(MAPS, resourceVersion=version)
    assert await take(events, 1) == [("ADDED", "a")]
    await api.ok("POST", MAPS, config_map("b"))
    assert await take(events, 1) == [("ADDED", "b")]


async def test_a_watch_of_one_namespace_sees_no_other(api: Api) -> None:
    events = await api.watch(MAPS, resourceVersion="0")
    await api.ok("POST", "/api/v1/namespaces/default/configmaps", config_map("other"))
    await api.ok("POST", MAPS, config_map("own"))
    assert await take(events, 1) == [("ADDED", "own")]


async def test_entering_and_leaving_a_selection_is_added_and_deleted(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a", role="x"))
    events = await api.watch(MAPS, resourceVersion="0", labelSelector="role=y")
    for role in ("y", "y", "x"):
        await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"role": role}}})
    await api.merge(f"{MAPS}/a", {"data": {"k": "unseen"}})
    await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"role": "y"}}})
    await api.ok("DELETE", f"{MAPS}/a")
    seen = await take(events, 4)
    assert [type_ for type_, _ in seen] == ["ADDED", "DELETED", "ADDED", "DELETED"]


async def test_a_version_before_the_history_is_one_error_event(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    api.server.core.store.compact()
    events = [event async for event in await api.watch(MAPS, resourceVersion="3")]
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 3 (")


async def test_a_watch_ends_after_its_timeout(api: Api) -> None:
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    assert [event async for event in await api.watch(MAPS, timeoutSeconds="7", resourceVersion="0")] == []
    assert loop.time() - begun_s == pytest.approx(7)


async def test_bookmarks_come_when_the_version_has_moved(api: Api) -> None:
    events = await api.watch(MAPS, resourceVersion="0", allowWatchBookmarks="true", timeoutSeconds="200")

    async def write() -> None:
        await asyncio.sleep(70)
        await api.ok("POST", "/api/v1/namespaces/default/configmaps", config_map("other"))

    task = asyncio.create_task(write())
    seen = [(event["type"], event["object"]["kind"]) async for event in events]
    await task
    assert seen == [("BOOKMARK", "ConfigMap")]


async def test_a_streamed_list_ends_with_the_marked_bookmark(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    events = await api.watch(MAPS, **query)
    assert (await anext(events))["type"] == "ADDED"
    mark = await anext(events)
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_reader_that_does_not_read_is_cut_and_can_resume() -> None:
    clock = LoopClock(wall_origin_s=0)
    api = Api(ApiServer(clock=clock, entropy=Entropy(1), watch_buffer=3))
    events = await api.watch(MAPS, resourceVersion="0")
    await api.ok("POST", MAPS, config_map("a"))
    assert await take(events, 1) == [("ADDED", "a")]
    for number in range(9):
        await api.merge(f"{MAPS}/a", {"data": {"k": str(number)}})
    rest = [event["object"]["metadata"]["resourceVersion"] async for event in events]
    assert len(rest) == 3
    again = await api.watch(MAPS, resourceVersion=rest[-1])
    assert len(await take(again, 6)) == 6


async def test_a_closed_watch_leaves_nothing_behind(api: Api) -> None:
    events = await api.watch(MAPS, resourceVersion="0")
    await api.ok("POST", MAPS, config_map("a"))
    await take(events, 1)
    assert len(api.server.core.hub.watchers()) == 1
    await events.aclose()  # type: ignore[attr-defined]
    assert api.server.core.hub.watchers() == []
