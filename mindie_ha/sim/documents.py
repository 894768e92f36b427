"""The server's call sites for everything that describes kinds rather than stores objects.

Discovery, OpenAPI, table printing and validation are pure functions over the table of kinds; the core
calls them through this record, so each can be exchanged in a test. A description that is absent leaves its
route answering 404 with the reason (tables: the plain object, as for `Accept: application/json`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindie_ha.sim.requests import ApiResponse
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Cause

Object = dict[str, Any]  # one Kubernetes object as decoded JSON

RootDocuments = Callable[[str, Sequence[Resource]], Object | None]
"""`discovery.root_documents(path, resources)`: the body of /api, /apis, /apis/<g>, /api/v1,
/apis/<g>/<v>, /version; None where the path is not one of them (404)."""

RenderTable = Callable[[Resource, Sequence[Object], float], Object]
"""`tables.render(resource, objects, now_s)`: a meta.k8s.io/v1 Table, one row an object in the same order;
row objects are PartialObjectMetadata. The core adds list metadata and honours `includeObject`. `now_s` is Unix time."""

Validate = Callable[[Resource, Object], Sequence[Cause]]
"""`schemas.validate(resource, obj)`: what is wrong with the object about to be stored. Any cause with reason
`BadRequest` makes the answer 400 with the message of that cause (JSON of the wrong type, as a typed decoder
refuses it); otherwise 422 with all causes."""

OpenApiDocument = Callable[
    [str, Mapping[str, str], Mapping[str, str], Sequence[Resource]], ApiResponse | None
]
"""`openapi.document(path, query, headers, resources)`: the answer for /openapi/v2,
/openapi/v3[/...]; None is 404."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The four descriptions; None where one is absent."""

    root: RootDocuments | None = None
    table: RenderTable | None = None
    validate: Validate | None = None
    openapi: OpenApiDocument | None = None


def built_in() -> Documents:
    """The descriptions that come with the embedded cluster."""
    return Documents()
