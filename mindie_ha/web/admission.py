"""The validating webhook: `POST /v1/admission`, asked by the API server, on its own port with TLS.

It knows nothing of the cluster and keeps nothing, so every replica may answer. A question that is none gets
a 400 and a fault of ours a 500: with `failurePolicy: Ignore` the API server goes on without us.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from mindie_ha.intake import bodies
from mindie_ha.intake.lints import admission
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import InputError
from mindie_ha.web.answers import json_response, refusal

PATH = "/v1/admission"
MAX_BODY = 3 * 1024 * 1024  # the API server takes no larger object
_ENFORCE: web.AppKey[bool] = web.AppKey("enforce", bool)
_METRICS: web.AppKey[Metrics] = web.AppKey("metrics", Metrics)


def make_admission_app(*, enforce: bool, metrics: Metrics) -> web.Application:
    """The application, ready to be served."""
    app = web.Application(client_max_size=MAX_BODY)
    app[_ENFORCE] = enforce
    app[_METRICS] = metrics
    app.add_routes([web.post(PATH, _review), web.get("/healthz", _healthz)])
    return app


async def _healthz(request: web.Request) -> web.Response:
    del request
    return json_response({"live": True})


async def _review(request: web.Request) -> web.Response:
    counted = request.app[_METRICS].admissions
    try:
        text = (await request.read()).decode("utf-8")
        asked = admission.read(bodies.parse_object(text, where=admission.WHERE))
    except (InputError, UnicodeDecodeError) as error:
        counted.labels("malformed").inc()
        told = error if isinstance(error, InputError) else InputError("is no text", where=admission.WHERE)
        return refusal(told, where=PATH)
    # A large manifest takes some milliseconds of rules: not on the loop that heartbeats others.
    found = await asyncio.to_thread(admission.answer, asked, enforce=request.app[_ENFORCE])
    response = found["response"]
    allowed = isinstance(response, dict) and response["allowed"] is True
    warned = isinstance(response, dict) and "warnings" in response
    counted.labels("refused" if not allowed else "warned" if warned else "allowed").inc()
    return json_response(found)
