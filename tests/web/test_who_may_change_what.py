"""Changes need a token that Kubernetes knows and a role that allows them; reads are open by default."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.cluster.reviews import Attributes, User
from mindie_ha.kit.clock import LoopClock
from mindie_ha.model.errors import ClusterError, Denied, Unreachable
from mindie_ha.model.settings import HttpAuth
from mindie_ha.web.access import USER, Access, AccessRules, person_of
from mindie_ha.web.answers import json_response

ROUTES = (
    ("GET", "/v1/services"),
    ("GET", "/metrics"),
    ("GET", "/healthz"),
    ("POST", "/v1/services/{namespace}/{name}/ranktable/push"),
    ("POST", "/v1/workloads/{namespace}/{name}/reset"),
    ("POST", "/v1/workloads/{namespace}/{name}/adopt"),
    ("POST", "/v1/workloads/{namespace}/{name}/recover"),
    ("POST", "/v1/nodes/{node}/isolations"),
    ("DELETE", "/v1/nodes/{node}/isolations/{id}"),
    ("POST", "/v1/pauses"),
    ("DELETE", "/v1/pauses/{scope:.+}"),
    ("POST", "/v1/faults"),
)


class FakeJudge:
    """Knows two people; ann may do everything, bob nothing."""

    def __init__(self, *, error: ClusterError | None = None) -> None:
        self.error = error
        self.wanted: list[Attributes] = []

    async def who(self, token: str) -> User | None:
        if self.error is not None:
            raise self.error
        return User(token) if token in ("ann", "bob", "system:serviceaccount:ops:bot") else None

    async def may(self, user: User, wanted: Attributes) -> bool:
        self.wanted.append(wanted)
        return user.name != "bob"


async def _echo(request: web.Request) -> web.Response:
    body = await request.text()
    return json_response({"person": person_of(request, body or "said", otherwise="api")})


@asynccontextmanager
async def gated(
    judge: FakeJudge | None = None, *, remote: str = "127.0.0.1", **rules: Any
) -> AsyncIterator[aiohttp.ClientSession]:
    """An application of echoes behind the gate; `remote` is the address from which it seems to be asked."""
    access = Access(AccessRules(**rules), judge=judge or FakeJudge(), clock=LoopClock())

    @web.middleware
    async def gate(request: web.Request, handler: Any) -> web.StreamResponse:
        return await access.gate(request.clone(remote=remote) if remote != "127.0.0.1" else request, handler)

    app = web.Application(middlewares=[gate])
    app.add_routes([web.route(method, path, _echo) for method, path in ROUTES])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:
            yield session
    finally:
        await runner.cleanup()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


REVIEW, AUTO, OFF = HttpAuth.TOKEN_REVIEW, HttpAuth.AUTO, HttpAuth.OFF
GATE = [
    pytest.param({"auth": REVIEW}, "", {}, "GET", 200, id="reads are open"),
    pytest.param({"auth": REVIEW, "open_reads": False}, "", {}, "GET", 401, id="unless told otherwise"),
    pytest.param({"auth": REVIEW, "open_reads": False}, "", bearer("bob"), "GET", 200, id="any user reads"),
    pytest.param({"auth": REVIEW}, "", {}, "POST", 401, id="a change without a token"),
    pytest.param({"auth": REVIEW}, "", bearer("eve"), "POST", 401, id="a token of nobody"),
    pytest.param({"auth": REVIEW}, "", bearer("eve"), "GET", 401, id="a wrong token is told also to readers"),
    pytest.param({"auth": REVIEW}, "", bearer("bob"), "POST", 403, id="a user without the role"),
    pytest.param({"auth": REVIEW}, "", bearer("ann"), "POST", 200, id="a user with it"),
    pytest.param({"auth": REVIEW}, "", {"Authorization": "Basic YTpi"}, "POST", 401, id="another scheme"),
    pytest.param({"auth": REVIEW}, "", {"Authorization": "Bearer"}, "POST", 401, id="no token at all"),
    pytest.param({"auth": REVIEW}, "", bearer("x" * 7000), "POST", 401, id="a long token"),
    pytest.param({"auth": AUTO, "in_pod": True}, "", {}, "POST", 401, id="in a pod everybody needs one"),
    pytest.param({"auth": AUTO}, "", {}, "POST", 200, id="elsewhere this machine needs none"),
    pytest.param({"auth": AUTO}, "10.0.0.9", {}, "POST", 401, id="but others do"),
    pytest.param({"auth": AUTO}, "::ffff:127.0.0.1", {}, "POST", 200, id="mapped loopback"),
    pytest.param({"auth": AUTO}, "", {"Origin": "http://evil"}, "POST", 403, id="no page in a browser"),
    pytest.param({"auth": AUTO}, "", bearer("bob"), "POST", 403, id="a token that is shown counts"),
    pytest.param({"auth": OFF, "in_pod": True}, "10.0.0.9", {}, "POST", 200, id="off asks nobody"),
]


@pytest.mark.parametrize(("rules", "remote", "headers", "method", "status"), GATE)
async def test_gate(
    rules: dict[str, Any], remote: str, headers: dict[str, str], method: str, status: int
) -> None:
    path = "/v1/services" if method == "GET" else "/v1/faults"
    async with (
        gated(remote=remote or "127.0.0.1", **rules) as session,
        session.request(method, path, headers=headers) as answer,
    ):
        assert answer.status == status
        if status == 401:
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        if status >= 400:
            error = (await answer.json())["error"]
            assert set(error) == {"what", "where", "advice"}
            assert "xxxx" not in str(error)  # of the long token


WANTED = [
    ("POST", "/v1/workloads/mindie/p0/reset", "", "create workloads/reset", "mindie", "p0"),
    ("POST", "/v1/workloads/mindie/p0/adopt", "", "create workloads/adopt", "mindie", "p0"),
    ("POST", "/v1/workloads/mindie/p0/recover", "", "create workloads/recover", "mindie", "p0"),
    ("POST", "/v1/services/mindie/ms.1/ranktable/push", "", "create services/push", "mindie", "ms.1"),
    ("POST", "/v1/nodes/node-1/isolations", "", "create nodes/isolations", "", "node-1"),
    ("DELETE", "/v1/nodes/node-1/isolations/a:b", "", "delete nodes/isolations", "", "node-1"),
    ("POST", "/v1/pauses", '{"scope": "namespace/mindie"}', "create pauses", "mindie", ""),
    ("POST", "/v1/pauses", '{"scope": "service/mindie/ms"}', "create pauses", "mindie", ""),
    ("POST", "/v1/pauses", '{"scope": "cluster"}', "create pauses", "", ""),
    ("POST", "/v1/pauses", '{"scope": "namespace/../x"}', "create pauses", "", ""),
    ("POST", "/v1/pauses", '{"scope": 7}', "create pauses", "", ""),
    ("POST", "/v1/pauses", "{", "create pauses", "", ""),
    ("DELETE", "/v1/pauses/service/mindie/ms", "", "delete pauses", "mindie", ""),
    ("DELETE", "/v1/pauses/cluster", "", "delete pauses", "", ""),
    ("POST", "/v1/faults", "", "create faults", "", ""),
]


async def test_what_a_role_has_to_name() -> None:
    judge = FakeJudge()
    async with gated(judge, auth=REVIEW) as session:
        for method, path, body, words, namespace, name in WANTED:
            async with session.request(method, path, data=body, headers=bearer("ann")) as answer:
                assert answer.status == 200, path
            found = judge.wanted[-1]
            verb, kind = words.split()
            resource, _, sub = kind.partition("/")
            assert found == Attributes(
                verb=verb, resource=resource, subresource=sub, namespace=namespace, name=name
            )


@pytest.mark.parametrize("error", [Unreachable("away"), Denied("we may not create tokenreviews", status=403)])
async def test_what_cannot_be_judged_is_not_done(error: ClusterError) -> None:
    async with gated(FakeJudge(error=error), auth=REVIEW) as session:
        async with session.post("/v1/faults", headers=bearer("ann")) as answer:
            assert answer.status == 503
            assert "cannot be checked" in await answer.text()
        async with session.get("/v1/services") as answer:
            assert answer.status == 200


async def test_the_owner_of_the_token_is_recorded_and_nobody_else() -> None:
    async with gated(auth=AUTO) as session:
        for headers, person in (
            (bearer("ann"), "ann"),
            (bearer("system:serviceaccount:ops:bot"), "system.serviceaccount.ops.bot"),
            ({}, "bob"),
        ):
            async with session.post("/v1/faults", data="bob", headers=headers) as answer:
                assert (await answer.json())["person"] == person


async def test_an_address_that_asks_too_often_waits_and_probes_do_not() -> None:
    async with gated(auth=OFF, rate_per_s=3.0) as session:
        statuses = []
        for _ in range(5):
            async with session.get("/v1/services") as answer:
                statuses.append(answer.status)
        assert statuses == [200] * 3 + [429] * 2
        async with session.get("/healthz") as answer:
            assert answer.status == 200


BAD_NAMES = ("%2e%2e", "a%2Fb", "-x", "x" * 254, "a%00", "%E4%B8%AD", "a b")


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_what_is_no_name_is_refused_before_anybody_is_asked(name: str) -> None:
    from yarl import URL  # noqa: PLC0415 - only here: the path must go out as written

    judge = FakeJudge()
    async with gated(judge, auth=REVIEW) as session:
        base = str(session._base_url).rstrip("/")
        url = URL(f"{base}/v1/workloads/mindie/{name}/reset".replace(" ", "%20"), encoded=True)
        async with aiohttp.ClientSession() as plain, plain.post(url, headers=bearer("ann")) as answer:
            assert answer.status in (400, 404)
    assert judge.wanted == []


@given(name=st.text(max_size=80))
def test_whoever_owns_the_token_fits_where_persons_are_recorded(name: str) -> None:
    from mindie_ha.policy import persons  # noqa: PLC0415 - the other end of the contract

    assert persons.named(person_of({USER: User(name)}, "", otherwise="api"))  # type: ignore[arg-type]
