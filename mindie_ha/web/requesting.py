"""The route by which a person asks for a recovery.

    POST /v1/workloads/{ns}/{name}/recover         {"reason", "rung"?, "pods"?, "person"?}

It is answered when the wish stands in the workload's ledger.
"""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from mindie_ha.engine.request_desk import Requested
from mindie_ha.model.errors import InputError, MindieHaError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.policy.asking import Wish
from mindie_ha.web.access import person_of
from mindie_ha.web.answers import asked, json_response, refusal, text_of

FIELDS = frozenset({"reason", "rung", "pods", "person"})
ANYBODY = "api"


class Desk(Protocol):
    """`engine.request_desk.RequestDesk`."""

    async def recover(self, key: ObjectKey, wish: Wish) -> Requested:
        """Record a wish."""
        ...


DESK: web.AppKey[Desk] = web.AppKey("request_desk", Desk)


def install(app: web.Application, *, desk: Desk) -> None:
    """Add the route."""
    app[DESK] = desk
    app.add_routes([web.post("/v1/workloads/{namespace}/{name}/recover", _recover)])


async def _recover(request: web.Request) -> web.Response:
    key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
    try:
        body = await asked(request, FIELDS)
        wish = Wish(
            person=person_of(request, text_of(body, "person"), otherwise=ANYBODY),
            text=text_of(body, "reason"),
            rung=text_of(body, "rung"),
            pods=_names(body),
        )
        done = await request.app[DESK].recover(key, wish)
    except MindieHaError as error:
        return refusal(error, where=request.path, advice="GET /v1/services shows every workload")
    return json_response(plain(done), status=202)


def _names(body: dict[str, object]) -> tuple[str, ...]:
    """Names of pods; absent is none. Raises InputError."""
    found = body.get("pods")
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InputError("must be a list of names", where="pods")
    return tuple(str(each) for each in found)


def plain(done: Requested) -> dict[str, object]:
    """The answer as plain data, the same from the API and from a kubeconfig."""
    return {
        "workload": str(done.workload),
        "rung": done.rung,
        "pods": list(done.pods),
        "epoch": done.epoch,
        "says": done.says,
    }
