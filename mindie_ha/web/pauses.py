"""Routes about pauses.

    GET    /v1/pauses                              every pause that counts now
    POST   /v1/pauses                              {"scope", "reason", "person"?, "for_s"?}
    DELETE /v1/pauses/{scope}?person=NAME          `cluster`, `namespace/NS` or `service/NS/JOBID`

A change is recorded before it is answered.
"""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from mindie_ha.engine.pause_desk import Paused
from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.pauses import Pause
from mindie_ha.web.access import person_of
from mindie_ha.web.answers import asked, json_response, refusal, seconds_of, text_of
from mindie_ha.web.reports import pause_report

FIELDS = frozenset({"scope", "reason", "person", "for_s"})
ANYBODY = "api"


class Desk(Protocol):
    """`engine.pause_desk.PauseDesk`."""

    async def pause(self, scope: str, *, text: str, person: str, for_s: float | None) -> Paused:
        """Record a pause."""
        ...

    async def resume(self, scope: str, *, person: str) -> Paused:
        """Record its end."""
        ...

    def standing(self) -> tuple[tuple[Pause, ...], str]:
        """The pauses that count now, and why their record cannot be read."""
        ...


DESK: web.AppKey[Desk] = web.AppKey("pause_desk", Desk)


def install(app: web.Application, *, desk: Desk) -> None:
    """Add the routes."""
    app[DESK] = desk
    app.add_routes(
        [
            web.get("/v1/pauses", _pauses),
            web.post("/v1/pauses", _pause),
            web.delete("/v1/pauses/{scope:.+}", _resume),
        ]
    )


async def _pauses(request: web.Request) -> web.Response:
    return json_response(listed(request.app[DESK]))


async def _pause(request: web.Request) -> web.Response:
    try:
        body = await asked(request, FIELDS)
        done = await request.app[DESK].pause(
            text_of(body, "scope"),
            text=text_of(body, "reason"),
            person=person_of(request, text_of(body, "person"), otherwise=ANYBODY),
            for_s=seconds_of(body, "for_s"),
        )
    except MindieHaError as error:
        return refusal(error, where=request.path, advice="GET /v1/services lists them")
    return json_response(plain(done), status=201 if done.changed else 200)


async def _resume(request: web.Request) -> web.Response:
    person = person_of(request, request.query.get("person", ""), otherwise=ANYBODY)
    try:
        done = await request.app[DESK].resume(request.match_info["scope"], person=person)
    except MindieHaError as error:
        return refusal(error, where=request.path)
    return json_response(plain(done))


def plain(done: Paused) -> dict[str, object]:
    """The answer as plain data, the same from the API and from a kubeconfig."""
    pause = pause_report(done.pause).model_dump(mode="json") if done.pause is not None else None
    replaced = pause_report(done.replaced).model_dump(mode="json") if done.replaced is not None else None
    found = {"scope": done.scope, "pause": pause, "changed": done.changed}
    return {**found, "replaced": replaced, "note": done.note}


def listed(desk: Desk) -> dict[str, object]:
    """Every pause as plain data."""
    found, error = desk.standing()
    return {"pauses": [pause_report(one).model_dump(mode="json") for one in found], "error": error}
