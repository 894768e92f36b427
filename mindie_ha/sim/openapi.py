"""The schemas of the served kinds as OpenAPI documents, for `kubectl explain`, `apply` and validation.

`/openapi/v2` is one document, as protobuf where the client names that media type (every kubectl does) and as
JSON otherwise. `/openapi/v3` lists one document a group version. Both describe PATCH of every kind with the
query parameters `dryRun` and `fieldValidation`: their presence is how kubectl learns that the server does it.
Documents are built at the first request and kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mindie_ha.sim import definitions, gnostic
from mindie_ha.sim.definitions import GVK, REFERENCE, Schema
from mindie_ha.sim.discovery import SERVER_VERSION
from mindie_ha.sim.requests import ApiResponse
from mindie_ha.sim.resources import Resource

Document = dict[str, Any]

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# Clients ask with an "@", which Go's media type parser refuses in an answer; servers answer with a dot.
_PROTOBUF_ASKED = (PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
_COMPONENTS = "#/components/schemas/"
_PARAMETERS = (
    ("dryRun", "When present, changes nothing that is stored; All is the only value."),
    ("fieldValidation", "What to do about unknown and doubled fields: Ignore, Warn or Strict."),
)


def document(
    path: str,
    query: Mapping[str, str],  # noqa: ARG001 - the hash of a v3 document's URL names the only version there is
    headers: Mapping[str, str],
    resources: Iterable[Resource],
) -> ApiResponse | None:
    """The answer for an `/openapi/...` path; None where there is none. `headers` has lower-case keys."""
    known = Served(resources)
    match path.strip("/").split("/", 2):
        case ["openapi", "v2"]:
            accept = headers.get("accept", "")
            if any(name in accept for name in _PROTOBUF_ASKED):
                return ApiResponse(200, _v2_protobuf(known), {"content-type": PROTOBUF})
            return _json(_v2_json(known))
        case ["openapi", "v3"]:
            return _json(_v3_index(known))
        case ["openapi", "v3", group_version]:
            body = _v3_json(group_version, known)
            return _json(body) if body else None
        case _:
            return None


class Served(tuple[Resource, ...]):
    """The served kinds as a cache key: also told apart by their schemas, which equality leaves out."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Served) and super().__eq__(other) and self._schemas() == other._schemas()

    def __hash__(self) -> int:
        return hash((tuple(self), self._schemas()))

    def _schemas(self) -> tuple[int, ...]:
        return tuple(id(resource.schema) for resource in self if resource.schema)


def _json(body: bytes) -> ApiResponse:
    etag = f'"{_digest(body)}"'
    return ApiResponse(200, body, {"content-type": "application/json", "etag": etag})


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest().upper()


@lru_cache(maxsize=4)
def _v2_json(resources: Served) -> bytes:
    return json.dumps(_v2(resources), separators=(",", ":")).encode()


@lru_cache(maxsize=4)
def _v2_protobuf(resources: Served) -> bytes:
    return gnostic.encode(_v2(resources))


def _v2(resources: Sequence[Resource]) -> Document:
    known = dict(definitions.builtin())
    known |= {definitions.definition_name(r): _custom(r, _v2_structural) for r in resources if r.custom}
    return {
        "swagger": "2.0",
        "info": _info(),
        "paths": {_object_path(r): {"patch": _patch(r, version=2)} for r in resources},
        "definitions": known,
    }


def _v3_index(resources: Served) -> bytes:
    paths = {}
    for path in dict.fromkeys(r.base_path.strip("/") for r in resources):
        digest = _digest(_v3_json(path, resources))
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return json.dumps({"paths": paths}, separators=(",", ":")).encode()


@lru_cache(maxsize=64)
def _v3_json(group_version: str, resources: Served) -> bytes:
    """The document of one group version; empty where nothing is served there."""
    served = [r for r in resources if r.base_path.strip("/") == group_version]
    if not served:
        return b""
    schemas: dict[str, Schema] = {}
    for resource in served:
        name = definitions.definition_name(resource)
        schemas[name] = _custom(resource, dict) if resource.custom else definitions.builtin()[name]
    waiting = list(schemas.values())
    while waiting:
        for name in _references(waiting.pop()):
            if name not in schemas:
                schemas[name] = definitions.builtin()[name]
                waiting.append(schemas[name])
    content = {
        "openapi": "3.0.0",
        "info": _info(),
        "paths": {_object_path(r): {"patch": _patch(r, version=3)} for r in served},
        "components": {"schemas": {name: _v3_schema(schema) for name, schema in sorted(schemas.items())}},
    }
    return json.dumps(content, separators=(",", ":")).encode()


def _references(node: Any) -> Iterable[str]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(REFERENCE)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _v3_schema(schema: Schema) -> Schema:
    """References point at components; one that has a description of its own becomes an `allOf`."""
    result: Schema = {}
    for key, value in schema.items():
        match key:
            case "$ref" if isinstance(value, str):
                target = {"$ref": _COMPONENTS + value.removeprefix(REFERENCE)}
                result |= target if len(schema) == 1 else {"allOf": [target], "default": {}}
            case "properties":
                result[key] = {name: _v3_schema(field) for name, field in value.items()}
            case "items" | "additionalProperties" if isinstance(value, dict):
                result[key] = _v3_schema(value)
            case _:
                result[key] = value
    return result


def _custom(resource: Resource, transform: Any) -> Schema:
    """A custom kind's schema as published: with full metadata and its group, version and kind."""
    schema: Schema = transform(_with_pod_specs(definitions.schema_of(resource)))
    meta = {"$ref": REFERENCE + definitions.OBJECT_META, "description": "Standard object's metadata."}
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {**schema, "properties": {**schema.get("properties", {}), "metadata": meta}, GVK: [kind]}


def _with_pod_specs(schema: Schema) -> Schema:
    """Refer to the built-in pod spec where the schema holds a copy of it: same types, and explained."""
    properties = schema.get("properties")
    if properties and properties.keys() == definitions.builtin()[definitions.POD_SPEC]["properties"].keys():
        return {"$ref": REFERENCE + definitions.POD_SPEC, "description": schema.get("description", "")}
    result = dict(schema)
    if properties:
        result["properties"] = {name: _with_pod_specs(field) for name, field in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            result[key] = _with_pod_specs(schema[key])
    return result


def _v2_structural(schema: Schema) -> Schema:
    """A structural schema in v2, which knows neither `anyOf` nor open objects: such nodes accept anything."""
    if schema.get("x-kubernetes-int-or-string"):
        return {key: value for key, value in schema.items() if key not in ("anyOf", "type")}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {key: value for key, value in schema.items() if key not in ("properties", "type")}
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {n: _v2_structural(f) for n, f in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            result[key] = _v2_structural(schema[key])
    return result


def _patch(resource: Resource, *, version: int) -> Document:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    parameters: list[Document] = []
    for name, text in _PARAMETERS:
        parameter: Document = {"name": name, "in": "query", "description": text}
        parameters.append(
            parameter | ({"type": "string"} if version == 2 else {"schema": {"type": "string"}})
        )
    return {
        "operationId": f"patch{resource.kind}{resource.version.capitalize()}",
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        GVK: kind,
    }


def _object_path(resource: Resource) -> str:
    namespace = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"{resource.base_path}{namespace}/{resource.plural}/{{name}}"


def _info() -> Document:
    return {"title": "Kubernetes", "version": SERVER_VERSION["gitVersion"]}
