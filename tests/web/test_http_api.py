"""The HTTP API of a controller that runs: routes, entity tags, the long poll, pushes and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from mindie_ha.model.settings import Settings
from tests.engine.clusters import CHIP, SMALL, Cluster, cluster, listening

SERVICE = "/v1/services/mindie/mindie-ms"
TABLE = f"{SERVICE}/ranktable"
P0 = "mindie-server-p0"


@asynccontextmanager
async def live(settings: Settings | None = None) -> AsyncIterator[tuple[Cluster, aiohttp.ClientSession]]:
    async with (
        cluster(settings=settings or listening(), speed=20.0, serve=True) as c,
        aiohttp.ClientSession(f"http://127.0.0.1:{c.app.http_port}") as session,
    ):
        yield c, session


async def error_of(answer: aiohttp.ClientResponse) -> dict[str, str]:
    found: dict[str, str] = (await answer.json())["error"]
    assert set(found) == {"what", "where", "advice"}
    return found


async def test_health_metrics_and_state() -> None:
    async with live() as (c, session):
        for path, key in (("/healthz", "live"), ("/readyz", "ready")):
            async with session.get(path) as answer:
                assert (answer.status, (await answer.json())[key]) == (200, True)
        async with session.get("/metrics") as answer:
            assert "mindie_ha_task_crashes_total" in await answer.text()
        async with session.get("/v1/services") as answer:
            found = await answer.json()
            assert [one["name"] for one in found["services"]] == ["mindie-ms"]
            assert found["problems"] == []
        async with session.get(SERVICE) as answer:
            workloads = (await answer.json())["workloads"]
            assert len(workloads) == len(SMALL) + 2
        async with session.get("/v1/decisions", params={"limit": 1, "subject": f"mindie/{P0}"}) as answer:
            decisions = (await answer.json())["decisions"]
            assert [one["subject"] for one in decisions] == [f"mindie/{P0}"]
        del c


async def test_the_table_comes_byte_for_byte_with_its_tag() -> None:
    async with live() as (c, session):
        ledger = c.table()
        async with session.get(TABLE) as answer:
            assert await answer.text() == ledger["text"]
            assert answer.headers["ETag"] == f'"{ledger["digest"]}"'
            assert answer.headers["X-Mindie-Ha-Digest"] == ledger["digest"]
            assert answer.headers["X-Mindie-Ha-Generation"] == str(ledger["generation"])
            tag = answer.headers["ETag"]
        for known in (tag, f"W/{tag}", f'{tag}, "other"'):
            async with session.get(TABLE, headers={"If-None-Match": known}) as answer:
                assert (answer.status, await answer.text()) == (304, "")
        async with session.get(TABLE, headers={"If-None-Match": '"other"'}) as answer:
            assert answer.status == 200


async def test_a_long_poll_answers_when_the_table_changes() -> None:
    async with live() as (c, session):
        known = {"If-None-Match": f'"{c.table()["digest"]}"'}
        async with session.get(TABLE, params={"wait": "0.2"}, headers=known) as answer:
            assert answer.status == 304
        poll = asyncio.create_task(session.get(TABLE, params={"wait": "30"}, headers=known).__aenter__())
        await asyncio.sleep(0.05)
        assert not poll.done()
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        answer = await asyncio.wait_for(poll, 4)
        assert answer.status == 200
        assert int(answer.headers["X-Mindie-Ha-Generation"]) == 2
        answer.release()


ERRORS = [
    ("GET", "/v1/services/mindie/nobody", 404, "no service or job"),
    ("GET", "/v1/services/mindie/nobody/ranktable", 404, "no table"),
    ("POST", "/v1/services/mindie/nobody/ranktable/push", 404, "no table"),
    ("GET", f"{TABLE}?wait=soon", 400, "not a number"),
    ("GET", "/v1/decisions?limit=many", 400, "not a whole number"),
    ("GET", "/v2/services", 404, "Not Found"),
    ("DELETE", TABLE, 405, "Method Not Allowed"),
]


async def test_an_error_says_what_where_and_what_to_do() -> None:
    async with live() as (_, session):
        for method, path, status, what in ERRORS:
            async with session.request(method, path) as answer:
                assert answer.status == status, path
                assert what in (await error_of(answer))["what"]


async def test_no_more_decisions_than_asked_for() -> None:
    async with live() as (_, session):
        for limit, count in (("0", 0), ("-3", 0), ("1", 1)):
            async with session.get("/v1/decisions", params={"limit": limit}) as answer:
                assert len((await answer.json())["decisions"]) == count


async def test_a_push_target_gets_each_table_and_again_when_asked() -> None:
    got: list[tuple[str, str, str]] = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.path, request.headers["X-Mindie-Ha-Generation"], await request.text()))
        return web.Response()

    receiver = web.Application()
    receiver.add_routes([web.post("/{tail:.*}", take)])
    runner = web.AppRunner(receiver)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    target = f"http://127.0.0.1:{runner.addresses[0][1]}/{{namespace}}/{{job_id}}"
    try:
        async with live(listening(push_targets=(target,))) as (c, session):
            ledger = c.table()
            await c.until(lambda: got, "pushed")
            assert got[-1] == ("/mindie/mindie-ms", str(ledger["generation"]), ledger["text"])
            count = len(got)
            async with session.post(f"{TABLE}/push") as answer:
                assert answer.status == 202
                assert (await answer.json())["destinations"] >= 1
            await c.until(lambda: len(got) == count + 1, "pushed again")
            assert got[-1] == got[-2]
    finally:
        await runner.cleanup()


async def test_a_long_poll_whose_caller_left_takes_nobodys_place() -> None:
    async with live() as (c, session):
        headers = {"If-None-Match": c.table()["digest"]}
        limit = aiohttp.ClientTimeout(total=0.3)
        with pytest.raises(TimeoutError):
            await session.get(TABLE, params={"wait": "60"}, headers=headers, timeout=limit)
        await asyncio.sleep(0.2)
        assert c.app.outlets.mailboxes.waiting == 0


async def test_a_reader_that_takes_nothing_does_not_hold_up_the_end() -> None:
    async with live() as (c, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", c.app.http_port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
        await asyncio.sleep(0.3)
        began_s = asyncio.get_running_loop().time()
        run = c.runs[-1]
        run.task.cancel()
        await asyncio.wait((run.task,), timeout=10)
        assert asyncio.get_running_loop().time() - began_s < 6
        writer.close()
        del reader
