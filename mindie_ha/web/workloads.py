"""Routes about one workload.

    POST /v1/workloads/{ns}/{name}/reset           {"reason"?, "person"?}: re-arm it where it is parked

A change is recorded in the workload's ledger before it is answered.
"""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from mindie_ha.engine.rearm_desk import Rearmed
from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.web.access import person_of
from mindie_ha.web.answers import asked, json_response, refusal, text_of

FIELDS = frozenset({"reason", "person"})
ANYBODY = "api"


class Desk(Protocol):
    """`engine.rearm_desk.RearmDesk`."""

    async def reset(self, key: ObjectKey, *, text: str, person: str) -> Rearmed:
        """End the park of a workload."""
        ...


DESK: web.AppKey[Desk] = web.AppKey("rearm_desk", Desk)


def install(app: web.Application, *, desk: Desk) -> None:
    """Add the routes."""
    app[DESK] = desk
    app.add_routes([web.post("/v1/workloads/{namespace}/{name}/reset", _reset)])


async def _reset(request: web.Request) -> web.Response:
    key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
    try:
        body = await asked(request, FIELDS)
        person = person_of(request, text_of(body, "person"), otherwise=ANYBODY)
        done = await request.app[DESK].reset(key, text=text_of(body, "reason"), person=person)
    except MindieHaError as error:
        return refusal(error, where=request.path, advice="GET /v1/services shows every workload")
    return json_response(plain(done))


def plain(done: Rearmed) -> dict[str, object]:
    """The answer as plain data, the same from the API and from a kubeconfig."""
    park = done.park.model_dump(mode="json") if done.park is not None else None
    return {"workload": str(done.workload), "changed": done.changed, "parked": park}
