"""The server's call sites for everything that describes kinds rather than stores objects.

Discovery, OpenAPI, table printing and validation are pure functions over the table of kinds; the core
calls them through this record, so each can be exchanged in a test. The order in which a written object meets
them is a real server's: types (400), unknown fields where asked for (400), the stored form, rules (422).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mindie_ha.sim import discovery, openapi, schemas, tables
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import FieldCause, Object


class RenderTable(Protocol):
    """`tables.render`: a Table with one row an object in the same order; `now_s` is Unix time."""

    def __call__(
        self,
        resource: Resource,
        objects: Sequence[Object],
        now_s: float,
        *,
        include_object: str = ...,
        list_metadata: Object | None = ...,
    ) -> Object:
        """Render."""
        ...


class OpenApiDocument(Protocol):
    """`openapi.document`: the answer for /openapi/v2 and /openapi/v3[/...]; None is 404."""

    def __call__(
        self,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        resources: Iterable[Resource],
    ) -> ApiResponse | None:
        """Answer."""
        ...


@dataclass(frozen=True, slots=True)
class Documents:
    """The descriptions that come with the embedded cluster; a test may exchange each."""

    discover: Callable[[ApiRequest, Iterable[Resource]], ApiResponse | None] = discovery.answer
    table: RenderTable = tables.render
    openapi: OpenApiDocument = openapi.document
    decode_error: Callable[[Resource, Object], str | None] = schemas.decode_error
    unknown_fields: Callable[[Resource, Object], Sequence[str]] = schemas.unknown_fields
    canonical: Callable[[Resource, Object], Object] = schemas.canonical
    broken_rules: Callable[[Resource, Object], Sequence[FieldCause]] = schemas.broken_rules
