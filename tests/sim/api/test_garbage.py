"""What goes when its owner or its namespace goes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.sim.api.conftest import GROUPS, MAPS, PODS, Api, Object, pod

pytestmark = pytest.mark.looptime


@contextlib.asynccontextmanager
async def collecting(api: Api) -> AsyncIterator[None]:
    task = asyncio.create_task(api.server.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def owned(name: str, *owners: Object, node: str = "") -> Object:
    body = pod(name, node=node)
    body["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    return body


async def names(api: Api, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.ok("GET", path))["items"]]


async def test_dependents_go_after_their_last_owner(api: Api) -> None:
    async with collecting(api):
        jobs = [await api.ok("POST", GROUPS, {"metadata": {"name": name}}) for name in ("j1", "j2")]
        await api.ok("POST", PODS, owned("one", jobs[0]))
        await api.ok("POST", PODS, owned("both", *jobs))
        await api.ok("DELETE", f"{GROUPS}/j1")
        await asyncio.sleep(1)
        assert await names(api, PODS) == ["both"]
        left = (await api.ok("GET", f"{PODS}/both"))["metadata"]["ownerReferences"]
        assert [owner["name"] for owner in left] == ["j2"]
        await api.ok("DELETE", f"{GROUPS}/j2")
        await asyncio.sleep(1)
        assert await names(api, PODS) == []


async def test_an_object_with_an_owner_that_never_was_goes_too(api: Api) -> None:
    async with collecting(api):
        job: Object = {
            "apiVersion": "mindxdl.gitee.com/v1",
            "kind": "AscendJob",
            "metadata": {"name": "x", "uid": "y"},
        }
        await api.ok("POST", PODS, owned("a", job))
        await api.ok("POST", PODS, owned("b", {**job, "apiVersion": "unknown.io/v1"}))
        await asyncio.sleep(1)
        assert await names(api, PODS) == ["b"]


async def test_orphans_stay_without_their_owner(api: Api) -> None:
    async with collecting(api):
        job = await api.ok("POST", GROUPS, {"metadata": {"name": "j"}})
        await api.ok("POST", PODS, owned("a", job))
        await api.ok("DELETE", f"{GROUPS}/j", {"propagationPolicy": "Orphan"})
        await asyncio.sleep(1)
        assert (await names(api, GROUPS), await names(api, PODS)) == ([], ["a"])


async def test_a_foreground_delete_waits_for_blocking_dependents(api: Api) -> None:
    async with collecting(api):
        job = await api.ok("POST", GROUPS, {"metadata": {"name": "j"}})
        await api.ok("POST", PODS, owned("a", job, node="n1"))
        await api.ok("DELETE", f"{GROUPS}/j", {"propagationPolicy": "Foreground"})
        await asyncio.sleep(1)
        assert (await names(api, GROUPS), await names(api, PODS)) == (["j"], ["a"])
        await api.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
        await asyncio.sleep(1)
        assert (await names(api, GROUPS), await names(api, PODS)) == ([], [])


async def test_a_deleted_namespace_is_emptied_then_goes(api: Api) -> None:
    async with collecting(api):
        await api.ok("POST", MAPS, {"metadata": {"name": "m"}})
        await api.ok("POST", PODS, pod("a", node="n1"))
        answer = await api.ok("DELETE", "/api/v1/namespaces/mindie")
        assert answer["status"]["phase"] == "Terminating"
        code, status = await api("POST", MAPS, {"metadata": {"name": "late"}})
        assert (code, status["reason"]) == (403, "Forbidden")
        await asyncio.sleep(1)
        assert (await names(api, MAPS), await names(api, PODS)) == ([], ["a"])
        await api.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
        await asyncio.sleep(1)
        assert (await api("GET", "/api/v1/namespaces/mindie"))[0] == 404


async def test_events_live_one_hour_after_their_last_write(api: Api) -> None:
    path = "/api/v1/namespaces/mindie/events"

    def event(name: str) -> Object:
        about = {"kind": "Pod", "name": "a", "namespace": "mindie"}
        return {"metadata": {"name": name}, "involvedObject": about, "reason": "Why", "type": "Normal"}

    async with collecting(api):
        await api.ok("POST", path, event("old"))
        await api.ok("POST", path, event("renewed"))
        await asyncio.sleep(3000)
        await api.merge(f"{path}/renewed", {"count": 2})
        await asyncio.sleep(1000)
        assert await names(api, path) == ["renewed"]


async def test_what_the_collector_deletes_is_audited(api: Api) -> None:
    job = await api.ok("POST", GROUPS, {"metadata": {"name": "j"}})
    made = await api.ok("POST", PODS, owned("a", job))
    await api.ok("DELETE", f"{GROUPS}/j")
    api.server.garbage.collect()
    last = api.server.audit[-1]
    assert (last.verb, last.name, last.uid) == ("delete", "a", made["metadata"]["uid"])
    assert last.user_agent == "system:garbage-collector"
