"""HTTP push against a real server on the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from mindie_ha.channels.http_push import HttpPush, open_session
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.ports import DeliveryProblem, HttpTarget, ServiceRef
from mindie_ha.channels.publishing import Publisher
from mindie_ha.channels.settings import DeliverySettings, MailboxLimits, PublisherSettings
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from tests.channels.fakes import CHAT, FakeConfigMaps, FakeTables, eventually, supervisor, table

QUICK = PublisherSettings(delivery=DeliverySettings(backoff_first_s=0.05, backoff_max_s=0.1))


@dataclass
class Receiver:
    """Answers with the statuses of a script, then with 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[tuple[dict[str, str], str]] = field(default_factory=list)
    delay_s: float = 0.0

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.text()))
        await asyncio.sleep(self.delay_s)
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(
            status=status, text="" if status == 200 else "not this one", headers={"Location": "/x"}
        )


Receive = Callable[..., Awaitable[Receiver]]


@pytest.fixture
async def receive() -> AsyncIterator[Receive]:
    """Starts receivers."""
    servers: list[Any] = []

    async def start(*statuses: int, host: str = "127.0.0.1") -> Receiver:
        receiver = Receiver(statuses=list(statuses))
        app = web.Application()
        app.router.add_post("/table", receiver.take)
        server = TestServer(app, host=host)
        await server.start_server()
        servers.append(server)
        receiver.url = str(server.make_url("/table"))
        return receiver

    yield start
    for server in servers:
        await server.close()


@dataclass
class Pushing:
    publisher: Publisher
    tables: FakeTables
    problems: list[DeliveryProblem]


@pytest.fixture
async def pushing() -> AsyncIterator[Pushing]:
    clock, tables, problems = LoopClock(), FakeTables(), list[DeliveryProblem]()
    publisher = Publisher(
        tables=tables,
        mailboxes=Mailboxes(tables=tables, clock=clock, limits=MailboxLimits()),
        configmaps=FakeConfigMaps(),
        http=HttpPush(open_session),
        clock=clock,
        entropy=Entropy(1),
        supervisor=supervisor(clock),
        settings=QUICK,
        on_problem=problems.append,
    )
    yield Pushing(publisher, tables, problems)
    await publisher.close()


async def test_headers_and_body(pushing: Pushing, receive: Receive) -> None:
    receiver = await receive()
    service = ServiceRef("mindie", "a/b c")
    await pushing.publisher.publish(table(3, service=service), [HttpTarget(receiver.url)])
    await eventually(lambda: pushing.tables.receipts)

    headers, body = receiver.got[0]
    assert body == table(3).text
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Mindie-Ha-Generation"] == "3"
    assert headers["X-Mindie-Ha-Digest"] == "sha256:3"
    assert headers["X-Mindie-Ha-Service"] == "mindie/a%2Fb%20c"
    assert pushing.tables.receipts[0].peer == receiver.url


async def test_retried_until_taken(pushing: Pushing, receive: Receive) -> None:
    receiver = await receive(503, 500, 408, 409, 425, 429)
    await pushing.publisher.publish(table(1), [HttpTarget(receiver.url)])
    await eventually(lambda: pushing.tables.receipts)

    assert len(receiver.got) == 7
    assert pushing.problems[0].reason == "HTTP 503 Service Unavailable: not this one"
    assert pushing.publisher.pending(CHAT) == ()


@pytest.mark.parametrize("status", [400, 404, 413, 302])
async def test_refusal_is_reported_and_waits_for_the_next_table(
    pushing: Pushing, receive: Receive, status: int
) -> None:
    receiver = await receive(status)
    target = HttpTarget(receiver.url)
    await pushing.publisher.publish(table(1), [target])
    await eventually(lambda: pushing.problems)
    owed = pushing.publisher.pending(CHAT)
    assert [(one.refused, one.generation) for one in owed] == [(True, 1)]

    await pushing.publisher.publish(table(2), [target])
    await eventually(lambda: pushing.tables.receipts)

    assert [headers["X-Mindie-Ha-Generation"] for headers, _ in receiver.got] == ["1", "2"]


async def test_dead_target_does_not_delay_another_and_stays_owed(pushing: Pushing, receive: Receive) -> None:
    receiver = await receive()
    dead = HttpTarget("http://127.0.0.1:1/table")
    await pushing.publisher.publish(table(1), [dead, HttpTarget(receiver.url)])
    await eventually(lambda: pushing.tables.receipts, within_s=1.0)
    await eventually(lambda: len(pushing.problems) > 1)

    assert [one.destination for one in pushing.publisher.pending(CHAT)] == [dead]


async def test_ipv6_target(pushing: Pushing, receive: Receive) -> None:
    try:
        receiver = await receive(host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    assert receiver.url.startswith("http://[::1]:")

    await pushing.publisher.publish(table(1), [HttpTarget(receiver.url)])

    await eventually(lambda: pushing.tables.receipts)


@pytest.mark.parametrize("url", ["not a url", "ftp://127.0.0.1/x", "http://127.0.0.1:99999/x"])
async def test_what_is_no_url_is_refused_not_retried(pushing: Pushing, url: str) -> None:
    await pushing.publisher.publish(table(1), [HttpTarget(url)])
    await eventually(lambda: pushing.problems)

    assert pushing.problems[0].refused


async def test_pushed_again_on_request(pushing: Pushing, receive: Receive) -> None:
    receiver = await receive()
    await pushing.publisher.publish(table(1), [HttpTarget(receiver.url)])
    await eventually(lambda: len(receiver.got) == 1)

    assert pushing.publisher.push_again(CHAT) == 1

    await eventually(lambda: len(receiver.got) == 2)
    assert pushing.publisher.push_again(ServiceRef("mindie", "nobody")) == 0


async def test_a_target_that_takes_too_long_is_told_by_its_own_limit(receive: Receive) -> None:
    receiver = await receive()
    receiver.delay_s = 5.0
    push = HttpPush(open_session, timeout_s=0.1)
    outcome = await push.post(HttpTarget(receiver.url), table(1))
    await push.close()
    assert outcome.kind == "failed"
    assert "0.1 s" in outcome.reason or "imeout" in outcome.reason


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://ms.mindie:9000/table", "http://ms.mindie:9000/table"),
        ("https://user:secret@ms:9000/t", "https://ms:9000/t"),
        ("https://ms/t?token=secret", "https://ms/t?…"),
        ("https://ms/t#secret", "https://ms/t"),
        ("http://[secret", "no URL"),
    ],
)
def test_what_may_be_secret_in_a_target_is_not_shown(url: str, shown: str) -> None:
    assert str(HttpTarget(url)) == shown
