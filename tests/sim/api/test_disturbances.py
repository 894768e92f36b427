"""Faults that are injected on purpose."""

from __future__ import annotations

import asyncio

import pytest

from mindie_ha.sim.disturbances import Rule
from mindie_ha.sim.requests import ApiRequest
from tests.sim.api.conftest import MAPS, PODS, Api, config_map


@pytest.mark.parametrize(
    ("code", "reason"),
    [(409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable")],
)
async def test_a_rule_refuses_as_often_as_it_says(api: Api, code: int, reason: str) -> None:
    rule = api.server.disturbances.add(Rule(method="POST", resource="configmaps", code=code, times=2))
    for _ in range(2):
        answered, status = await api("POST", MAPS, config_map("a"))
        assert (answered, status["reason"]) == (code, reason)
    assert (await api("POST", MAPS, config_map("a")))[0] == 201
    assert rule.hits == 2


async def test_429_says_when_to_come_back(api: Api) -> None:
    api.server.disturbances.add(Rule(code=429, retry_after_s=3))
    response = await api.server.handle(ApiRequest("GET", PODS))
    assert (response.status, response.headers["retry-after"]) == (429, "3")


async def test_a_refused_write_may_have_been_applied(api: Api) -> None:
    api.server.disturbances.add(Rule(method="POST", reset=True, applied=True))
    with pytest.raises(ConnectionResetError):
        await api("POST", MAPS, config_map("a"))
    assert (await api("GET", f"{MAPS}/a"))[0] == 200


@pytest.mark.looptime
async def test_a_delay_takes_its_time(api: Api) -> None:
    api.server.disturbances.add(Rule(delay_s=4))
    begun_s = asyncio.get_running_loop().time()
    await api("GET", MAPS)
    assert asyncio.get_running_loop().time() - begun_s == pytest.approx(4)


async def test_a_share_of_requests_is_hit_and_repeats_with_the_seed(api: Api) -> None:
    api.server.disturbances.add(Rule(code=500, times=None, share=0.5))
    codes = [(await api("GET", MAPS))[0] for _ in range(40)]
    assert 8 < codes.count(500) < 32


@pytest.mark.looptime
async def test_a_watch_is_cut_within_a_line(api: Api) -> None:
    events = await api.watch(MAPS, resourceVersion="0")
    await api.ok("POST", MAPS, config_map("a"))
    await anext(events)
    assert api.server.disturbances.cut_watches("configmaps", mid_line=True) == 1
    with pytest.raises(ValueError, match=r"(?i)unterminated"):
        await anext(events)


@pytest.mark.looptime
async def test_a_silent_watch_speaks_later(api: Api) -> None:
    loop = asyncio.get_running_loop()
    events = await api.watch(MAPS, resourceVersion="0")
    await api.ok("POST", MAPS, config_map("a"))
    await anext(events)
    api.server.disturbances.silence_watches(for_s=90)
    begun_s = loop.time()
    await api.ok("POST", MAPS, config_map("b"))
    assert (await anext(events))["object"]["metadata"]["name"] == "b"
    assert loop.time() - begun_s == pytest.approx(90)


async def test_expired_history_refuses_old_watches(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    api.server.disturbances.expire_history()
    events = [event async for event in await api.watch(MAPS, resourceVersion="2")]
    assert events[0]["object"]["code"] == 410


async def test_a_rule_may_mean_watches_alone(api: Api) -> None:
    api.server.disturbances.add(Rule(method="WATCH", code=429, times=None))
    assert (await api("GET", MAPS))[0] == 200
    assert (await api("GET", MAPS, watch="true"))[0] == 429
