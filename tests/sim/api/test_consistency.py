"""Versions, watches and pages agree: whoever lists and then follows the events knows what is there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.requests import ApiRequest
from mindie_ha.sim.server import ApiServer
from tests.sim.api.conftest import MAPS, Api, config_map

Mirror = dict[str, str]  # name -> resourceVersion
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "label", "touch", "delete"]),
        st.sampled_from("abcd"),
        st.sampled_from("xy"),
    ),
    max_size=25,
)


async def act(api: Api, verb: str, name: str, role: str) -> None:
    match verb:
        case "create":
            await api("POST", MAPS, config_map(name, role=role))
        case "label":
            await api.merge(f"{MAPS}/{name}", {"metadata": {"labels": {"role": role}}})
        case "touch":
            await api.merge(f"{MAPS}/{name}", {"data": {"k": role}})
        case _:
            await api("DELETE", f"{MAPS}/{name}")


async def listed(api: Api, **query: str) -> tuple[Mirror, str]:
    body = await api.ok("GET", MAPS, **query)
    mirror = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in body["items"]}
    return mirror, body["metadata"]["resourceVersion"]


def follow(mirror: Mirror, events: list[dict[str, Any]]) -> Mirror:
    """Apply events strictly: what an informer must never see is an assertion here."""
    after, last = dict(mirror), 0
    for event in events:
        meta = event["object"]["metadata"]
        name, version = meta["name"], int(meta["resourceVersion"])
        assert version > last
        last = version
        assert (event["type"] == "ADDED") == (name not in after)
        if event["type"] == "DELETED":
            del after[name]
        else:
            after[name] = meta["resourceVersion"]
    return after


async def events_after(api: Api, version: str, **query: str) -> list[dict[str, Any]]:
    watch = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1", **query}
    response = await api.server.handle(ApiRequest("GET", MAPS, watch))
    assert response.stream is not None
    chunks = [chunk async for chunk in response.stream]
    return [json.loads(line) for line in b"".join(chunks).splitlines()]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=STEPS, after=STEPS, selector=st.sampled_from(["", "role=x", "role!=x"]))
def test_a_list_and_its_watch_give_the_present_state(before: Any, after: Any, selector: str) -> None:
    async def play() -> None:
        api = Api(ApiServer(clock=LoopClock(wall_origin_s=0, speed=1000), entropy=Entropy(1)))
        chosen = {"labelSelector": selector}
        for step in before:
            await act(api, *step)
        mirror, version = await listed(api, **chosen)
        first = await api.ok("GET", MAPS, limit="1")
        for step in after:
            await act(api, *step)
        present, _ = await listed(api, **chosen)
        assert follow(mirror, await events_after(api, version, **chosen)) == present
        assert await rest_of_pages(api, first) == (await listed(api, **exactly(version)))[0]

    with asyncio.Runner() as runner:
        runner.run(play())


def exactly(version: str) -> dict[str, str]:
    return {"resourceVersion": version, "resourceVersionMatch": "Exact"}


async def rest_of_pages(api: Api, page: dict[str, Any]) -> Mirror:
    found: Mirror = {}
    while True:
        found |= {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in page["items"]}
        token = page["metadata"].get("continue")
        if not token:
            return found
        page = await api.ok("GET", MAPS, limit="1", **{"continue": token})
