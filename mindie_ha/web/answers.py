"""How every route answers: JSON, and one clear shape for an error."""

from __future__ import annotations

import orjson
from aiohttp import web


def json_response(body: object, *, status: int = 200) -> web.Response:
    """`body` as JSON."""
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def problem(status: int, what: str, *, where: str, advice: str = "") -> web.Response:
    """One clear error: what, where, what to do."""
    return json_response({"error": {"what": what, "where": where, "advice": advice}}, status=status)
