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
from mindie_ha.model.errors import InputError, MindieHaError
from mindie_ha.web.access import person_of
from mindie_ha.web.answers import asked, json_response, problem, refusal, seconds_of, text_of
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
    try:
        body = await asked(request, FIELDS)
        wanted = request.app[DESK].isolate(
            request.match_info["node"],
            device=text_of(body, "device"),
            text=text_of(body, "reason"),
            person=person_of(request, text_of(body, "person"), otherwise=ANYBODY),
            for_s=seconds_of(body, "for_s"),
        )
    except InputError as error:
        return refusal(error, where=request.path)
    return await _answer(wanted, where=request.path, changed=201)


async def _release(request: web.Request) -> web.Response:
    person = person_of(request, request.query.get("person", ""), otherwise=ANYBODY)
    released = request.app[DESK].release(request.match_info["node"], request.match_info["id"], person=person)
    return await _answer(released, where=request.path, changed=200)


async def _answer(change: Awaitable[Recorded], *, where: str, changed: int) -> web.Response:
    try:
        recorded = await change
    except MindieHaError as error:
        return refusal(error, where=where, advice="GET /v1/nodes lists them")
    entry = isolation_report(recorded.isolation).model_dump(mode="json")
    body = {"node": recorded.node, "isolation": entry, "changed": recorded.changed}
    return json_response(body, status=changed if recorded.changed else 200)


def _no_node(name: str, *, where: str) -> web.Response:
    return problem(404, f"there is no node {name[:253]}", where=where, advice="GET /v1/nodes lists them")
