"""Lists: selections, pages, versions."""

from __future__ import annotations

import asyncio

import pytest

from mindie_ha.sim.requests import ApiRequest
from tests.sim.api.conftest import GROUPS, MAPS, PODS, Api, config_map, pod


async def fill(api: Api) -> None:
    for name in "edcba":
        await api.ok("POST", MAPS, config_map(name, role="x" if name < "c" else "y", **{"only-a": name}))


def names(body: dict[str, list[dict[str, dict[str, str]]]]) -> str:
    return "".join(item["metadata"]["name"] for item in body["items"])


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("role=x", "ab"), ("role==x", "ab"), ("role!=x", "cde"), ("role in (x, z)", "ab"),
        ("role notin (x)", "cde"),
        ("role", "abcde"), ("!role", ""), ("absent!=1", "abcde"), ("role=y,only-a=d", "d"), ("", "abcde"),
    ],
)  # fmt: skip
async def test_label_selectors_choose(api: Api, selector: str, chosen: str) -> None:
    await fill(api)
    assert names(await api.ok("GET", MAPS, labelSelector=selector)) == chosen


async def test_field_selectors_choose(api: Api) -> None:
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "")):
        await api.ok("POST", PODS, pod(name, node=node))
    assert names(await api.ok("GET", "/api/v1/pods", fieldSelector="spec.nodeName=n1")) == "a"
    assert names(await api.ok("GET", PODS, fieldSelector="spec.nodeName=,status.phase=Pending")) == "c"
    assert names(await api.ok("GET", PODS, fieldSelector="metadata.name!=a")) == "bc"


@pytest.mark.parametrize(
    "query",
    [{"labelSelector": "a=(b"}, {"labelSelector": "=="}, {"fieldSelector": "spec.foo=1"}, {"limit": "x"}],
)
async def test_a_bad_selection_is_400(api: Api, query: dict[str, str]) -> None:
    code, status = await api("GET", MAPS, **query)
    assert (code, status["reason"]) == (400, "BadRequest")


async def test_items_of_custom_kinds_alone_name_their_kind(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    await api.ok("POST", GROUPS, {"metadata": {"name": "a"}})
    assert "kind" not in (await api.ok("GET", MAPS))["items"][0]
    assert (await api.ok("GET", GROUPS))["items"][0]["kind"] == "PodGroup"
    assert (await api.ok("GET", GROUPS))["kind"] == "PodGroupList"


async def test_pages_show_the_version_of_the_first(api: Api) -> None:
    await fill(api)
    first = await api.ok("GET", MAPS, limit="2")
    await api.ok("DELETE", f"{MAPS}/c")
    await api.ok("POST", MAPS, config_map("cc"))
    await api.merge(f"{MAPS}/d", {"data": {"new": "1"}})
    second = await api.ok("GET", MAPS, limit="2", **{"continue": first["metadata"]["continue"]})
    third = await api.ok("GET", MAPS, limit="2", **{"continue": second["metadata"]["continue"]})
    assert (names(first), names(second), names(third)) == ("ab", "cd", "e")
    assert first["metadata"]["remainingItemCount"] == 3
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }
    assert not second["items"][1]["data"]
    assert "continue" not in third["metadata"]


async def test_a_token_older_than_the_history_is_410_with_a_fresh_one(api: Api) -> None:
    await fill(api)
    first = await api.ok("GET", MAPS, limit="2")
    await api.ok("DELETE", f"{MAPS}/c")
    api.server.core.store.compact()
    code, status = await api("GET", MAPS, limit="2", **{"continue": first["metadata"]["continue"]})
    assert (code, status["reason"]) == (410, "Expired")
    rest = await api.ok("GET", MAPS, **{"continue": status["metadata"]["continue"]})
    assert names(rest) == "de"


async def test_an_exact_version_is_shown_or_expired(api: Api) -> None:
    await fill(api)
    version = (await api.ok("GET", MAPS))["metadata"]["resourceVersion"]
    await api.ok("DELETE", f"{MAPS}/c")
    exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    assert names(await api.ok("GET", MAPS, **exact)) == "abcde"
    api.server.core.store.compact()
    assert (await api("GET", MAPS, **exact))[0] == 410


@pytest.mark.looptime
async def test_a_version_from_the_future_times_out(api: Api) -> None:
    begun_s = asyncio.get_running_loop().time()
    code, status = await api("GET", MAPS, resourceVersion="99999")
    assert (code, status["reason"]) == (504, "Timeout")
    assert "Too large resource version: 99999" in status["message"]
    assert asyncio.get_running_loop().time() - begun_s == pytest.approx(3)


async def test_a_table_is_rendered_for_those_who_ask(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    body = (await api.server.handle(ApiRequest("GET", MAPS, {}, headers))).body
    assert b'"kind":"Table"' in body
    assert b"PartialObjectMetadata" in body
