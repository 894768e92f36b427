"""Get, list and watch: versions, selections, pages, and the two shapes of an answer (objects or a Table).

A list with `limit` is consistent: every page shows the version of the first, rebuilt from the history, and
a token older than the history is a real 410 that carries a fresh token. A watch's position is fixed when
the request is answered, its subscription begins when the stream is read.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import orjson

from mindie_ha.sim.core import Core
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.selectors import selection
from mindie_ha.sim.statuses import (
    Cause,
    Object,
    bad_options,
    bad_request,
    expired,
    too_large_version,
    unexpected,
)
from mindie_ha.sim.storage import Key, Stored, kind_of
from mindie_ha.sim.watches import Encode, WatchOptions

FUTURE_WAIT_S = 3.0  # how long a list waits for a version that has not happened
WATCH_S = (1800.0, 3600.0)  # a watch without timeoutSeconds ends after a time in between
_JSON = {"content-type": "application/json"}
_PAGE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a "
    "new list without the continue parameter, or use the continue token in this response to retrieve "
    "the remainder of the results. Continuing with the provided token results in an inconsistent list - "
    "objects that were created, modified, or deleted between the time the first chunk was returned and "
    "now may show up in the list."
)


def wants_table(request: ApiRequest) -> bool:
    """Whether the first acceptable media type is a Table."""
    first = request.headers.get("accept", "").partition(",")[0].replace(" ", "")
    return "as=Table" in first and "v=v1" in first.split(";")


def get(core: Core, route: Route, request: ApiRequest) -> ApiResponse:
    """One object, or a Table of one row."""
    stored = core.existing(route.resource, route.namespace, route.name)
    return ApiResponse(200, one(core, route, request, stored), _JSON)


def one(core: Core, route: Route, request: ApiRequest, stored: Stored) -> bytes:
    """An object as the request wants to see it."""
    if wants_table(request):
        meta = {"resourceVersion": stored.obj["metadata"].get("resourceVersion", "")}
        return _table(core, route, [stored], meta, request.query)
    return stored.full()


async def list_(core: Core, route: Route, request: ApiRequest) -> ApiResponse:
    """A list, a page of a list, or a Table of it."""
    query = request.query
    chosen, meta = await _page(core, route, query)
    if wants_table(request):
        return ApiResponse(200, _table(core, route, chosen, meta, query), _JSON)
    return ApiResponse(200, listing(route, chosen, meta), _JSON)


def listing(route: Route, chosen: list[Stored], meta: Object) -> bytes:
    """The JSON of a list; items of built-in kinds stand without kind and apiVersion, as on a real server."""
    resource = route.resource
    items = [stored.full() if resource.custom else stored.item() for stored in chosen]
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta}
    return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"


async def selected(core: Core, route: Route, query: Mapping[str, str]) -> list[Stored]:
    """The objects that a list with this query would show."""
    return (await _page(core, route, query))[0]


async def _page(core: Core, route: Route, query: Mapping[str, str]) -> tuple[list[Stored], Object]:
    selects = selection(route.resource, query)
    limit = _whole(query, "limit")
    version, start = await _position(core, route, query)
    kind = kind_of(route.resource)
    entries = core.store.snapshot(kind, route.namespace, version)
    shown_version = core.store.version if version is None else version
    if start is not None:
        entries = [entry for entry in entries if entry[0] >= start]
    if selects is not None:
        entries = [entry for entry in entries if selects(entry[1].obj)]
    meta: Object = {"resourceVersion": str(shown_version)}
    if limit and len(entries) > limit:
        meta["continue"] = _token(shown_version, entries[limit][0])
        if selects is None:
            meta["remainingItemCount"] = len(entries) - limit
        entries = entries[:limit]
    return [stored for _, stored in entries], meta


async def _position(core: Core, route: Route, query: Mapping[str, str]) -> tuple[int | None, Key | None]:
    """The version to show (None: the present) and the key to start at."""
    floor = core.store.collection(kind_of(route.resource)).floor
    token = query.get("continue", "")
    wanted = _version(query)
    match = query.get("resourceVersionMatch", "")
    _check_match(match, query)
    if token:
        version, start = _read_token(token)
        if version is not None and version < floor:
            raise expired(_PAGE_EXPIRED, fresh_continue=_token(-1, start))
        return version, start
    if wanted > core.store.version:
        await core.clock.sleep(FUTURE_WAIT_S)
        if wanted > core.store.version:
            raise too_large_version(wanted, core.store.version)
    if match == "Exact" or (not match and wanted and _whole(query, "limit")):
        if wanted < floor:
            raise expired("The resourceVersion for the provided list is too old.")
        return wanted, None
    return None, None


def _check_match(match: str, query: Mapping[str, str]) -> None:
    """Raises StatusError 422 for a resourceVersionMatch that is unknown or does not fit the rest."""
    cause = None
    version = query.get("resourceVersion", "")
    if match and not version:
        text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        cause = Cause("FieldValueForbidden", text, "resourceVersionMatch")
    elif match and query.get("continue"):
        text = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        cause = Cause("FieldValueForbidden", text, "resourceVersionMatch")
    elif match not in ("", "Exact", "NotOlderThan"):
        text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        cause = Cause("FieldValueNotSupported", text, "resourceVersionMatch")
    elif match == "Exact" and version == "0":
        text = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        cause = Cause("FieldValueForbidden", text, "resourceVersionMatch")
    if cause is not None:
        raise bad_options("ListOptions", cause)


def _token(version: int, start: Key) -> str:
    raw = orjson.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": list(start)})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_token(token: str) -> tuple[int | None, Key]:
    try:
        read: Any = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, (namespace, name) = int(read["rv"]), read["start"]
    except (ValueError, KeyError, TypeError):
        raise bad_request("continue key is not valid: it was not made by this server") from None
    return None if version < 0 else version, (str(namespace), str(name))


def _whole(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    if not text.isdecimal():
        raise bad_request(f'invalid value for {name}: "{text}" must be a whole number')
    return int(text)


def _version(query: Mapping[str, str]) -> int:
    text = query.get("resourceVersion", "") or "0"
    if not text.isdecimal():
        raise unexpected(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def watch(core: Core, route: Route, request: ApiRequest) -> ApiResponse:
    """A stream of events from `resourceVersion` on (`""`, `0`: everything that is, then live)."""
    query = request.query
    selects = selection(route.resource, query)
    version = _version(query)
    initial: tuple[Stored, ...] = ()
    streaming_list = query.get("sendInitialEvents", "") == "true"
    if version == 0 or streaming_list:
        version = core.store.version
        entries = core.store.snapshot(kind_of(route.resource), route.namespace)
        initial = tuple(stored for _, stored in entries if selects is None or selects(stored.obj))
    timeout_s = float(_whole(query, "timeoutSeconds")) or core.entropy.uniform(*WATCH_S)
    bookmarks = query.get("allowWatchBookmarks", "") in ("true", "1")
    options = WatchOptions(
        resource=route.resource,
        namespace=route.namespace,
        selects=selects,
        version=version,
        initial=initial,
        bookmarks=bookmarks,
        mark_initial_end=streaming_list and bookmarks,
        timeout_s=timeout_s,
        encode=_encoder(core, route, request),
    )
    return ApiResponse(200, headers=_JSON, stream=core.hub.stream(options))


def _encoder(core: Core, route: Route, request: ApiRequest) -> Encode:
    if not wants_table(request):
        return Stored.full
    query = request.query

    def encode(stored: Stored) -> bytes:
        meta = {"resourceVersion": stored.obj["metadata"]["resourceVersion"]}
        return _table(core, route, [stored], meta, query)

    return encode


def _table(core: Core, route: Route, chosen: list[Stored], meta: Object, query: Mapping[str, str]) -> bytes:
    table = core.documents.table(
        route.resource,
        [stored.obj for stored in chosen],
        core.clock.wall(),
        include_object=query.get("includeObject") or "Metadata",
        list_metadata=meta,
    )
    return orjson.dumps(table)
