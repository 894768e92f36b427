"""The route that hands a job to us.

    POST /v1/workloads/{ns}/{name}/adopt           {"mode"?, "pod_rescheduling"?, "person"?}

It is answered when the job carries the labels.
"""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from mindie_ha.engine.adoption_desk import Adopted
from mindie_ha.model.errors import InputError, MindieHaError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.web.access import person_of
from mindie_ha.web.answers import asked, json_response, refusal, text_of

FIELDS = frozenset({"mode", "pod_rescheduling", "person"})
ANYBODY = "api"


class Desk(Protocol):
    """`engine.adoption_desk.AdoptionDesk`."""

    async def adopt(self, key: ObjectKey, *, mode: str, pod_rescheduling: bool, person: str) -> Adopted:
        """Set the labels that make a job ours."""
        ...


DESK: web.AppKey[Desk] = web.AppKey("adoption_desk", Desk)


def install(app: web.Application, *, desk: Desk) -> None:
    """Add the route."""
    app[DESK] = desk
    app.add_routes([web.post("/v1/workloads/{namespace}/{name}/adopt", _adopt)])


async def _adopt(request: web.Request) -> web.Response:
    key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
    try:
        body = await asked(request, FIELDS)
        pods = body.get("pod_rescheduling", False)
        if not isinstance(pods, bool):
            raise InputError("must be true or false", where="pod_rescheduling")
        done = await request.app[DESK].adopt(
            key,
            mode=text_of(body, "mode"),
            pod_rescheduling=pods,
            person=person_of(request, text_of(body, "person"), otherwise=ANYBODY),
        )
    except MindieHaError as error:
        return refusal(error, where=request.path, advice="GET /v1/services shows every workload")
    return json_response(plain(done))


def plain(done: Adopted) -> dict[str, object]:
    """The answer as plain data, the same from the API and from a kubeconfig."""
    return {
        "workload": str(done.workload),
        "changed": done.changed,
        "labels": dict(done.labels),
        "says": list(done.says),
    }
