"""One watch stream as events: lines in, `Changed`, `Bookmark` or the error that ended it out.

A watch at too old a version answers HTTP 200 and one ERROR event with code 410: that becomes `Gone`, as does
a real 410. A line that is no JSON (or longer than the bound) ends the watch with `Unparsable`: what it said
is unknown, only a fresh list tells. A malformed *object* on a good line costs that object only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.slim import SlimObject, decode_json, raw_key, slim
from mindie_ha.cluster.sources import Source
from mindie_ha.cluster.transports import error_of, within
from mindie_ha.model.errors import Gone, InputError
from mindie_ha.model.ids import ObjectKey


class Unparsable(Gone):
    """A line could not be read: list again."""


@dataclass(frozen=True, slots=True)
class Changed:
    """An object was added or modified (`new`), deleted (`new` None), or is malformed (`refused`)."""

    key: ObjectKey
    new: SlimObject | None
    resource_version: str
    uid: str = ""  # of a deleted object, where told
    refused: InputError | None = None


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed up to this version."""

    resource_version: str


async def watch_once(
    client: Client, source: Source, *, resource_version: str, timeout_s: float, inactivity_s: float
) -> AsyncGenerator[Changed | Bookmark, None]:
    """Events from a version on until the server ends the stream; raises ClusterError kinds."""
    async with (
        client.watch(
            source.resource, source.selection, resource_version=resource_version, timeout_s=timeout_s
        ) as lines,
        aclosing(within(inactivity_s, lines)) as timely,
    ):
        async for line in timely:
            yield event_of(line, source)


def event_of(line: bytes, source: Source) -> Changed | Bookmark:
    """One line as an event; raises Gone, Unparsable, or what an ERROR event says."""
    kind = source.resource.kind
    try:
        content = decode_json(line, where=f"watch of {source.name}")
    except InputError as error:
        raise Unparsable(str(error)) from error
    body = content.get("object")
    if not isinstance(body, dict):
        raise Unparsable(f"watch of {source.name}: a line without an object")
    match content.get("type"):
        case "BOOKMARK":
            return Bookmark(_version(body))
        case "ERROR":
            code = body.get("code")
            status = code if isinstance(code, int) else 500
            raise error_of(status, orjson.dumps(body), {}, action=f"watch {source.resource.plural}")
        case "ADDED" | "MODIFIED":
            key = _key(body, source)
            try:
                return Changed(key, slim(body, source.model, kind=kind), _version(body))
            except InputError as error:
                return Changed(key, None, _version(body), refused=error)
        case "DELETED":
            return Changed(_key(body, source), None, _version(body), uid=_text(body, "uid"))
        case other:
            raise Unparsable(f"watch of {source.name}: unknown event type {other!r}"[:200])


def _key(body: dict[str, Any], source: Source) -> ObjectKey:
    key = raw_key(body)
    if key is None:
        raise Unparsable(f"watch of {source.name}: an object without a name")
    return key


def _version(body: dict[str, Any]) -> str:
    return _text(body, "resourceVersion")


def _text(body: dict[str, Any], field: str) -> str:
    metadata = body.get("metadata")
    value = metadata.get(field) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


__all__ = ["Bookmark", "Changed", "Unparsable", "event_of", "watch_once"]
