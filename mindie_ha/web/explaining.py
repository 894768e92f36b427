"""Routes that explain: why a workload is as it is, what would be done now, what was done.

    GET /v1/workloads/{ns}/{name}/why?limit=N      one workload: state, what it waits for, decisions in order
    GET /v1/plan?workload=NS/NAME                  the planner's word now; nothing of it is done by asking
    GET /v1/history?workload=NS/NAME               recoveries that are over, newest first

Planning for a whole fleet costs something, so one gathering of `plan` or `history` runs at a time.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from mindie_ha.model.errors import InputError, MindieHaError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.web.answers import json_response, refusal
from mindie_ha.web.explanations import Explainer

DEFAULT_LIMIT = 50
MAX_LIMIT = 2000
ADVICE = "GET /v1/services shows every workload"

EXPLAINER: web.AppKey[Explainer] = web.AppKey("explainer", Explainer)
TURN: web.AppKey[asyncio.Lock] = web.AppKey("explainer_turn", asyncio.Lock)


def install(app: web.Application, *, explainer: Explainer) -> None:
    """Add the routes."""
    app[EXPLAINER] = explainer
    app[TURN] = asyncio.Lock()
    app.add_routes(
        [
            web.get("/v1/workloads/{namespace}/{name}/why", _why),
            web.get("/v1/plan", _plan),
            web.get("/v1/history", _history),
        ]
    )


async def _why(request: web.Request) -> web.Response:
    key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
    try:
        found = await request.app[EXPLAINER].why(key, limit=_limit(request))
    except MindieHaError as error:
        return refusal(error, where=request.path, advice=ADVICE)
    return json_response(found.model_dump(mode="json"))


async def _plan(request: web.Request) -> web.Response:
    try:
        async with request.app[TURN]:
            found = await request.app[EXPLAINER].plan(_workload(request))
    except MindieHaError as error:
        return refusal(error, where=request.path, advice=ADVICE)
    return json_response(found.model_dump(mode="json"))


async def _history(request: web.Request) -> web.Response:
    try:
        async with request.app[TURN]:
            found = await request.app[EXPLAINER].history(_workload(request))
    except MindieHaError as error:
        return refusal(error, where=request.path, advice=ADVICE)
    return json_response(found.model_dump(mode="json"))


def _workload(request: web.Request) -> ObjectKey | None:
    """The workload that is asked for; None: all. Raises InputError."""
    text = request.query.get("workload", "")
    namespace, _, name = text.partition("/")
    if text and not (namespace and name and "/" not in name):
        raise InputError(f"{text[:64]!r} is no NAMESPACE/NAME", where="workload", advice=ADVICE)
    return ObjectKey(namespace, name) if text else None


def _limit(request: web.Request) -> int:
    text = request.query.get("limit", str(DEFAULT_LIMIT))
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InputError("limit is not a whole number", where="limit", advice="for example ?limit=50")
    return min(int(text), MAX_LIMIT)


__all__ = ["DEFAULT_LIMIT", "install"]
