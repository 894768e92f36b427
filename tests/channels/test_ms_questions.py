"""What MS pods' endpoints say: a table of answers, then real HTTP and TLS, with pods that misbehave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mindie_ha.channels.ms_endpoints import MAX_BODY, Answer, HttpEndpoints, Unanswered, open_session
from mindie_ha.channels.ms_questions import ask
from mindie_ha.model.errors import SettingsError
from mindie_ha.model.roles import Activity, Inquiry, Told
from mindie_ha.model.settings import RoleSettings
from mindie_ha.sim.ms.probes import coordinator_sites
from mindie_ha.sim.ms.settings import MsSettings

A, S, U = Activity.ACTIVE, Activity.STANDBY, Activity.UNKNOWN
TLS = Path(__file__).parents[1] / "data" / "tls"
IP = "127.5.7.1"
Answers = dict[str, int | bytes | None]


class Pod:
    """Answers from a table: a status, a body with status 200, or None for nothing."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def get(self, ip: str, port: int, path: str) -> Answer:
        self.asked.append(path)
        found = self.answers.get(path, 404)
        if found is None:
            raise Unanswered("no answer")
        return Answer(200, found) if isinstance(found, bytes) else Answer(found)

    async def close(self) -> None:
        return None


IDLE: Answers = {"/v1/readiness": 503, "/v1/health": 200, "/v2/health/ready": 503}


@pytest.mark.parametrize(
    ("answers", "activity", "healthy", "reached", "malformed"),
    [
        pytest.param({"/v1/readiness": 200}, A, True, True, False, id="ready is active"),
        pytest.param(
            {**IDLE, "/v2/health/ready": 200}, S, True, True, False, id="could serve, is not master"
        ),
        pytest.param({**IDLE, "/recvs_info": b'{"is_master": true}'}, A, True, True, False, id="idle master"),
        pytest.param(
            {**IDLE, "/recvs_info": b'{"is_master": false}'}, U, True, True, False, id="idle, no master"
        ),
        pytest.param({**IDLE, "/recvs_info": None}, U, True, True, False, id="idle, management not reached"),
        pytest.param({**IDLE, "/recvs_info": b"["}, U, True, True, True, id="idle, no JSON"),
        pytest.param({**IDLE, "/recvs_info": b"[" * 4000}, U, True, True, True, id="idle, deep JSON"),
        pytest.param(
            {**IDLE, "/recvs_info": b'{"is_master": 1}'}, U, True, True, True, id="idle, no boolean"
        ),
        pytest.param({**IDLE, "/recvs_info": 403}, U, True, True, False, id="idle, not for us"),
        pytest.param({**IDLE, "/v1/health": 500, "/v2/health/ready": 200}, S, False, True, False, id="ill"),
        pytest.param({"/v1/readiness": None}, U, None, False, False, id="nothing answers"),
        pytest.param({"/v1/readiness": 418}, U, None, True, True, id="no answer of MS"),
        pytest.param({**IDLE, "/v2/health/ready": None}, U, None, False, False, id="silent half way"),
    ],
)
async def test_a_coordinator_of_motor(
    answers: Answers, activity: Activity, healthy: bool | None, reached: bool, malformed: bool
) -> None:
    told = await ask(Pod(answers), Inquiry.SERVES, IP, settings=RoleSettings())
    assert (told.activity, told.healthy, told.reached, told.malformed) == (
        activity,
        healthy,
        reached,
        malformed,
    )
    idle = IDLE.items() <= answers.items()
    assert ("it has no Prefill or no Decode to serve" in told.reason) is idle


@pytest.mark.parametrize(
    ("answers", "activity", "healthy"),
    [
        pytest.param({"/readiness": 200}, A, True, id="master"),
        pytest.param({"/readiness": 503, "/liveness": 200}, S, True, id="standby"),
        pytest.param({"/readiness": 503, "/liveness": 503}, U, False, id="ill"),
        pytest.param({"/readiness": None}, U, None, id="nothing answers"),
    ],
)
async def test_pymotor(answers: Answers, activity: Activity, healthy: bool | None) -> None:
    told = await ask(Pod(answers), Inquiry.LEADS, IP, settings=RoleSettings())
    assert (told.activity, told.healthy) == (activity, healthy)


async def test_a_controller_of_motor_tells_only_that_it_lives() -> None:
    told = await ask(Pod({"/v1/health": 200}), Inquiry.LIVES, IP, settings=RoleSettings())
    assert (told.activity, told.healthy) == (U, True)


async def test_what_has_side_effects_is_never_asked() -> None:
    for inquiry in Inquiry:
        pod = Pod({"/readiness": 503, **IDLE})
        await ask(pod, inquiry, IP, settings=RoleSettings())
        assert not [path for path in pod.asked if "running-status" in path or "backup" in path]


# --- real HTTP ---------------------------------------------------------------------------------------------


class State:
    """A Coordinator that is this."""

    def __init__(self, *, active: bool, can_serve: bool = True) -> None:
        self.active = active
        self.can_serve = can_serve


def server_tls(*, mutual: bool = False) -> MsSettings:
    """A pod's settings with the test certificates."""
    ca = str(TLS / "ca.crt") if mutual else ""
    return MsSettings(tls_cert=str(TLS / "server.crt"), tls_key=str(TLS / "server.key"), tls_client_ca=ca)


OURS: dict[str, Any] = {"tls_cert": str(TLS / "client.crt"), "tls_key": str(TLS / "client.key")}
TRUSTING: dict[str, Any] = {"tls": True, "tls_ca": str(TLS / "ca.crt")}


async def asked(settings: RoleSettings, ip: str = IP) -> Told:
    """One pod asked by real HTTP."""
    endpoints = HttpEndpoints(settings, session=open_session)
    try:
        return await ask(endpoints, Inquiry.SERVES, ip, settings=settings)
    finally:
        await endpoints.close()


@pytest.mark.parametrize(
    ("pod", "settings", "activity", "reason"),
    [
        pytest.param(MsSettings(), {}, S, "200", id="plain"),
        pytest.param(server_tls(), TRUSTING, S, "200", id="TLS, our authority"),
        pytest.param(server_tls(), {**TRUSTING, "tls_server_name": "localhost"}, S, "200", id="its name too"),
        pytest.param(
            server_tls(), {**TRUSTING, "tls_server_name": "evil"}, U, "certificate", id="another name"
        ),
        pytest.param(server_tls(), {"tls": True}, U, "certificate", id="an authority we do not know"),
        pytest.param(server_tls(), {"tls": True, "tls_verify": False}, S, "200", id="not verified"),
        pytest.param(server_tls(mutual=True), {**TRUSTING, **OURS}, S, "200", id="mutual"),
        pytest.param(server_tls(mutual=True), TRUSTING, U, "", id="mutual, without ours"),
        pytest.param(server_tls(), {}, U, "no HTTP", id="TLS there, none here"),
        pytest.param(MsSettings(), TRUSTING, U, "TLS", id="none there, TLS here"),
    ],
)
async def test_tls_by_setting(
    pod: MsSettings, settings: dict[str, Any], activity: Activity, reason: str
) -> None:
    async with coordinator_sites(IP, State(active=False), settings=pod):
        told = await asked(RoleSettings(**settings))
    assert told.activity is activity
    assert reason in told.reason


@asynccontextmanager
async def hostile(handler: Any, ip: str = IP) -> AsyncIterator[None]:
    """A pod whose every endpoint is `handler`."""
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        for port in (1026, 1029):
            await web.TCPSite(runner, ip, port, reuse_address=True).start()
        yield
    finally:
        await runner.cleanup()


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65536)


async def test_an_endless_body_is_cut() -> None:
    endpoints = HttpEndpoints(RoleSettings(), session=open_session)
    async with hostile(endless):
        answer = await endpoints.get(IP, 1029, "/v1/readiness")
    await endpoints.close()
    assert len(answer.body) == MAX_BODY


async def test_a_pod_that_answers_bytes_by_bytes_costs_the_time_out() -> None:
    async def drips(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b" ")
            await asyncio.sleep(0.05)
        return response

    began_s = time.monotonic()
    async with hostile(drips):
        told = await asked(RoleSettings(timeout_s=0.3))
    assert not told.reached
    assert time.monotonic() - began_s < 2.0


async def test_redirects_are_not_followed() -> None:
    async def away(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/")

    async with hostile(away):
        told = await asked(RoleSettings())
    assert (told.activity, told.malformed) == (U, True)


@pytest.mark.parametrize("ip", ["127.5.7.9", "evil.example", "127.0.0.1@evil", ""])
async def test_an_address_that_is_none_or_nobodys_is_not_reached(ip: str) -> None:
    assert not (await asked(RoleSettings(timeout_s=0.5), ip)).reached


@pytest.mark.parametrize("name", ["tls_ca", "tls_cert"])
def test_a_tls_file_that_cannot_be_read_is_one_clear_error(name: str, tmp_path: Path) -> None:
    files = {name: str(tmp_path / "no.pem"), **({"tls_key": "no.key"} if name == "tls_cert" else {})}
    with pytest.raises(SettingsError, match="roles"):
        HttpEndpoints(RoleSettings(tls=True, **files), session=open_session)  # type: ignore[arg-type]
