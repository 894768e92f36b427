"""Routes about nodes and the faults of the fleet.

    GET    /v1/faults?node=NAME                    every current fault, where it was read, whom it hits
    GET    /v1/nodes  /v1/nodes/{node}             taint, isolations and faults
    POST   /v1/nodes/{node}/isolations             {"reason", "person", "device"?, "for_s"?}
    DELETE /v1/nodes/{node}/isolations/{id}?person=NAME

A change is recorded in the node's ledger before it is answered; the taint follows.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from aiohttp import web

from mindie_ha.engine.isolation_desk import Recorded
from mindie_ha.intake import bodies
from mindie_ha.model.errors import (
    ClusterError,
    Conflict,
    InputError,
    LeaseLost,
    LedgerUnreadable,
    MindieHaError,
    NotFound,
)
from mindie_ha.web.answers import json_response, problem
from mindie_ha.web.fault_reports import FleetReporter, isolation_report

FIELDS = frozenset({"reason", "person", "device", "for_s"})
ANYBODY = "api"


class Desk(Protocol):
    """`engine.isolation_desk.IsolationDesk`."""

    async def isolate(
        self, node: str, *, device: str, text: str, person: str, for_s: float | None
    ) -> Recorded:
        """Record a person's isolation."""
        ...

    async def release(self, node: str, isolation_id: str, *, person: str) -> Recorded:
        """Record that a person takes one back."""
        ...


FLEET: web.AppKey[FleetReporter] = web.AppKey("fleet", FleetReporter)
DESK: web.AppKey[Desk] = web.AppKey("desk", Desk)


def install(app: web.Application, *, fleet: FleetReporter, desk: Desk) -> None:
    """Add the routes."""
    app[FLEET] = fleet
    app[DESK] = desk
    app.add_routes(
        [
            web.get("/v1/faults", _faults),
            web.get("/v1/nodes", _nodes),
            web.get("/v1/nodes/{node}", _node),
            web.post("/v1/nodes/{node}/isolations", _isolate),
            web.delete("/v1/nodes/{node}/isolations/{id}", _release),
        ]
    )


async def _faults(request: web.Request) -> web.Response:
    fleet = request.app[FLEET]
    name = request.query.get("node", "")
    if name and not fleet.knows(name):
        return _no_node(name, where=request.path_qs)
    return json_response((await fleet.faults(node=name)).model_dump(mode="json"))


async def _nodes(request: web.Request) -> web.Response:
    found = await request.app[FLEET].nodes()
    return json_response({"nodes": [one.model_dump(mode="json") for one in found]})


async def _node(request: web.Request) -> web.Response:
    name = request.match_info["node"]
    found = await request.app[FLEET].node(name)
    if found is None:
        return _no_node(name, where=request.path)
    return json_response(found.model_dump(mode="json"))


async def _isolate(request: web.Request) -> web.Response:
    where = request.path
    try:
        wanted = _wanted(request, await request.read())
    except UnicodeDecodeError:
        return problem(400, "the body is not UTF-8", where=where)
    except InputError as error:
        return problem(400, error.what, where=error.where, advice=error.advice)
    return await _answer(wanted, where=where, changed=201)


def _wanted(request: web.Request, raw: bytes) -> Awaitable[Recorded]:
    """What a body asks for. Raises InputError, UnicodeDecodeError."""
    body = bodies.parse_object(raw.decode(), where=request.path)
    unknown = sorted(body.keys() - FIELDS)
    if unknown:
        advice = ", ".join(sorted(FIELDS))
        raise InputError(f"unknown field {unknown[0][:64]!r}", where=request.path, advice=advice)
    return request.app[DESK].isolate(
        request.match_info["node"],
        device=_text(body, "device"),
        text=_text(body, "reason"),
        person=_text(body, "person") or ANYBODY,
        for_s=_seconds(body),
    )


async def _release(request: web.Request) -> web.Response:
    person = request.query.get("person", ANYBODY)
    released = request.app[DESK].release(request.match_info["node"], request.match_info["id"], person=person)
    return await _answer(released, where=request.path, changed=200)


async def _answer(change: Awaitable[Recorded], *, where: str, changed: int) -> web.Response:
    try:
        recorded = await change
    except InputError as error:
        return problem(400, error.what, where=error.where, advice=error.advice)
    except NotFound as error:
        return problem(404, str(error), where=where, advice="GET /v1/nodes lists them")
    except (Conflict, LedgerUnreadable) as error:
        return problem(409, str(error), where=where, advice="nothing was recorded")
    except (ClusterError, LeaseLost) as error:
        return problem(503, str(error), where=where, advice="nothing may be recorded; ask again")
    except MindieHaError as error:
        return problem(500, str(error), where=where)
    entry = isolation_report(recorded.isolation).model_dump(mode="json")
    body = {"node": recorded.node, "isolation": entry, "changed": recorded.changed}
    return json_response(body, status=changed if recorded.changed else 200)


def _text(body: dict[str, object], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError("must be a text", where=name)
    return value


def _seconds(body: dict[str, object]) -> float | None:
    value = body.get("for_s")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("must be a number of seconds", where="for_s")
    try:
        return float(value)
    except OverflowError:
        raise InputError("is out of range", where="for_s") from None


def _no_node(name: str, *, where: str) -> web.Response:
    return problem(404, f"there is no node {name[:253]}", where=where, advice="GET /v1/nodes lists them")
