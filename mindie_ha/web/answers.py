"""How every route answers: JSON, and one clear shape for an error."""

from __future__ import annotations

import orjson
from aiohttp import web

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


def json_response(body: object, *, status: int = 200) -> web.Response:
    """`body` as JSON."""
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def problem(status: int, what: str, *, where: str, advice: str = "") -> web.Response:
    """One clear error: what, where, what to do."""
    return json_response({"error": {"what": what, "where": where, "advice": advice}}, status=status)


def refusal(error: MindieHaError, *, where: str, advice: str = "") -> web.Response:
    """What a change was refused for; `advice` helps who named something that is not there."""
    match error:
        case InputError():
            return problem(400, error.what, where=error.where, advice=error.advice)
        case NotFound():
            return problem(404, str(error), where=where, advice=advice)
        case Conflict() | LedgerUnreadable():
            return problem(409, str(error), where=where, advice="nothing was recorded")
        case ClusterError() | LeaseLost():
            return problem(503, str(error), where=where, advice="nothing may be recorded; ask again")
        case _:
            return problem(500, str(error), where=where)


async def asked(request: web.Request, fields: frozenset[str]) -> dict[str, object]:
    """The body of a request for a change, an object with no other than `fields`; an absent one is empty.

    Raises InputError.
    """
    raw = await request.read()
    try:
        body = bodies.parse_object(raw.decode() or "{}", where=request.path)
    except UnicodeDecodeError:
        raise InputError("the body is not UTF-8", where=request.path) from None
    unknown = sorted(body.keys() - fields)
    if unknown:
        advice = ", ".join(sorted(fields))
        raise InputError(f"unknown field {unknown[0][:64]!r}", where=request.path, advice=advice)
    return body


def text_of(body: dict[str, object], name: str) -> str:
    """A text of the body; absent is empty. Raises InputError."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError("must be a text", where=name)
    return value


def seconds_of(body: dict[str, object], name: str) -> float | None:
    """A number of seconds of the body; None where absent. Raises InputError."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("must be a number of seconds", where=name)
    try:
        return float(value)
    except OverflowError:
        raise InputError("is out of range", where=name) from None
