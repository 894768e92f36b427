"""The gate in a controller that runs: TokenReview, who is recorded, tables for their own peers, TLS."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from mindie_ha.app.listening import Listener
from mindie_ha.cluster.client import Client
from mindie_ha.cluster.reviews import Attributes, Reviews, User
from mindie_ha.cluster.transports import Reply
from mindie_ha.kit.clock import LoopClock
from mindie_ha.model.errors import Denied, Unreachable
from mindie_ha.model.settings import GrpcSettings, HttpAuth, HttpSettings, PeerCheckMode, Settings
from tests.engine.clusters import listening

from .test_http_api import TABLE, live

TLS = Path(__file__).parents[1] / "data" / "tls"
PAUSE = {"scope": "namespace/mindie", "reason": "a test", "person": "mallory"}


def settings(**grpc: object) -> Settings:
    changes = {"http": HttpSettings(listen="127.0.0.1:0", auth=HttpAuth.TOKEN_REVIEW)}
    found = listening().model_copy(update=changes)
    asked = GrpcSettings.model_validate({"listen": "127.0.0.1:0", **grpc})
    return found.model_copy(update={"grpc": asked})


async def test_the_token_is_reviewed_its_owner_recorded_and_neither_logged() -> None:
    async with live(settings()) as (c, session):
        for token, status in (("", 401), ("secret-of-nobody", 401), ("sim:ann", 201)):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with session.post("/v1/pauses", json=PAUSE, headers=headers) as answer:
                assert answer.status == status
        async with session.get("/v1/pauses") as answer:
            (pause,) = (await answer.json())["pauses"]
        assert "ann" in str(pause)
        assert "mallory" not in str(pause)
        log = c.runs[-1].log.getvalue()
        assert "secret-of-nobody" not in log
        assert "sim:ann" not in log


async def test_under_enforcement_a_table_is_for_its_peers_and_for_users() -> None:
    async with live(settings(peer_check=PeerCheckMode.ENFORCE)) as (_, session):
        async with session.get(TABLE) as answer:
            assert answer.status == 403
            assert "trusted_proxies" in await answer.text()
        async with session.get(TABLE, headers={"Authorization": "Bearer sim:ann"}) as answer:
            assert answer.status == 200
        async with session.get("/v1/services") as answer:
            assert answer.status == 200


class Line:
    """Answers reviews from a list and notes what was sent."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.sent: list[tuple[str, bytes]] = []

    async def request(self, method: str, path: str, **rest: object) -> Reply:
        self.sent.append((f"{method} {path}", bytes(rest["body"])))  # type: ignore[call-overload]
        return self.replies.pop(0) if self.replies else Reply(201, b"{}")


def reviews(line: Line) -> Reviews:
    return Reviews(Client(line), clock=LoopClock())  # type: ignore[arg-type]


@pytest.mark.looptime
async def test_answers_are_remembered_for_a_little_while() -> None:
    good = Reply(201, b'{"status": {"authenticated": true, "user": {"username": "ann", "groups": ["g", 7]}}}')
    line = Line(good, Reply(201, b'{"status": {"allowed": true}}'), good)
    asked = reviews(line)
    wanted = Attributes(verb="create", resource="pauses", namespace="mindie")
    for _ in range(3):
        user = await asked.who("t")
        assert user == User("ann", groups=("g",))
        assert await asked.may(user, wanted)
    assert [path for path, _ in line.sent] == [
        "POST /apis/authentication.k8s.io/v1/tokenreviews",
        "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
    ]
    assert b'"group":"mindie-ha.io"' in line.sent[1][1]
    await asyncio.sleep(11)
    await asked.who("t")
    assert len(line.sent) == 3


HOSTILE = [
    b"[]",
    b"{}",
    b'{"status": 7}',
    b'{"status": {"authenticated": true}}',
    b'{"status": {"authenticated": "true", "user": {"username": "x"}}}',
    b'{"status": {"authenticated": true, "user": {"username": 7}}}',
    b'{"status": {"authenticated": true, "user": {"username": ""}}}',
]


@pytest.mark.parametrize("body", HOSTILE)
async def test_an_answer_that_does_not_say_yes_is_a_no(body: bytes) -> None:
    asked = reviews(Line(Reply(201, body), Reply(201, body)))
    assert await asked.who("t") is None
    assert not await asked.may(User("x"), Attributes(verb="create", resource="pauses"))


async def test_errors_never_hold_the_token() -> None:
    said = b'{"kind": "Status", "message": "cannot create tokenreviews with secret"}'
    for reply, kind in ((Reply(403, said), Denied), (Reply(201, b"<html>secret"), Unreachable)):
        with pytest.raises(kind) as refused:
            await reviews(Line(reply)).who("secret")
        assert "secret" not in str(refused.value)


async def ok(request: web.Request) -> web.Response:
    del request
    return web.Response(text="ok")


async def test_http_speaks_tls_and_follows_its_certificate_files(tmp_path: Path) -> None:
    for name in ("server.crt", "server.key"):
        shutil.copy(TLS / name, tmp_path / name)
    app = web.Application()
    app.add_routes([web.get("/", ok)])
    runner = web.AppRunner(app)
    await runner.setup()
    heard: list[bool] = []
    http = HttpSettings(
        listen="127.0.0.1:0", tls_cert=str(tmp_path / "server.crt"), tls_key=str(tmp_path / "server.key")
    )
    listener = Listener(runner, http, clock=LoopClock(), heard=lambda used, _text: heard.append(used))
    try:
        port = await listener.start()
        trust = ssl.create_default_context(cafile=str(TLS / "ca.crt"))
        trust.check_hostname = False
        async with aiohttp.ClientSession() as old:
            assert await shown(port, trust) == der("server.crt")
            async with old.get(f"https://127.0.0.1:{port}/", ssl=trust) as answer:
                assert await answer.text() == "ok"
            for part in ("crt", "key"):
                shutil.copy(TLS / f"client.{part}", tmp_path / f"server.{part}")
            await listener.renew()
            assert await shown(port, trust) == der("client.crt")
            async with old.get(f"https://127.0.0.1:{port}/", ssl=trust) as answer:  # the open connection
                assert await answer.text() == "ok"
        assert heard == [True]
    finally:
        await runner.cleanup()
        listener.close()


async def shown(port: int, trust: ssl.SSLContext) -> bytes:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


def der(name: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert((TLS / name).read_text(encoding="ascii"))


async def test_with_a_client_ca_all_but_probes_need_a_certificate() -> None:
    http = HttpSettings(
        listen="127.0.0.1:0",
        tls_cert=str(TLS / "server.crt"),
        tls_key=str(TLS / "server.key"),
        tls_client_ca=str(TLS / "ca.crt"),
    )
    async with live(settings().model_copy(update={"http": http})) as (c, _):
        base = f"https://127.0.0.1:{c.app.http_port}"
        anonymous = ssl.create_default_context(cafile=str(TLS / "ca.crt"))
        known = ssl.create_default_context(cafile=str(TLS / "ca.crt"))
        known.load_cert_chain(str(TLS / "client.crt"), str(TLS / "client.key"))
        for context in (anonymous, known):
            context.check_hostname = False
        async with aiohttp.ClientSession(base) as session:
            for path, context, status in (
                ("/healthz", anonymous, 200),
                ("/v1/services", anonymous, 401),
                ("/v1/services", known, 200),
            ):
                async with session.get(path, ssl=context, headers={"Connection": "close"}) as answer:
                    assert answer.status == status
