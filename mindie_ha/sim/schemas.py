"""What the embedded API server refuses, with the reasons and words of a real one.

Three gates, in the order a request meets them: `decode_error` (wrong JSON types: HTTP 400 before anything
else), `unknown_fields` (strict field validation, asked for by the client), `validate` (HTTP 422 with one
cause a broken rule). Names, labels and annotations of the object itself are the core's own rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mindie_ha.sim import decoding, definitions, pod_rules, rules, structural
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Cause

Object = dict[str, Any]

__all__ = ["Cause", "broken_rules", "canonical", "decode_error", "strict_error", "unknown_fields", "validate"]

_META: definitions.Schema = {"$ref": definitions.REFERENCE + definitions.OBJECT_META}


def decode_error(resource: Resource, obj: Object) -> str | None:
    """The message of the 400 that decoding gives for wrong JSON types, or None.

    Of a custom object only the metadata is typed; it is decoded on its own, so paths start at ObjectMeta.
    """
    if resource.custom:
        problem = decoding.mismatch(_META, obj.get("metadata"), struct="ObjectMeta")
    else:
        schema = {"$ref": definitions.REFERENCE + definitions.definition_name(resource)}
        problem = decoding.mismatch(schema, obj, struct=resource.kind)
    return _refusal(resource, problem) if problem else None


def unknown_fields(resource: Resource, obj: Object) -> tuple[str, ...]:
    """Paths of fields the schema does not know, for `fieldValidation=Strict|Warn`."""
    return tuple(structural.unknown(_full_schema(resource), obj, ""))


def strict_error(resource: Resource, fields: Iterable[str]) -> str:
    """The message of the 400 for unknown fields under `fieldValidation=Strict`."""
    listed = ", ".join(f'unknown field "{field}"' for field in fields)
    return _refusal(resource, f"strict decoding error: {listed}")


def canonical(resource: Resource, obj: Object) -> Object:
    """The object as a server stores it: fields its schema does not know are dropped, quantities canonical."""
    kept: Object = structural.canonical(_full_schema(resource), obj)
    return kept


def validate(resource: Resource, obj: Object) -> tuple[Cause, ...]:
    """Everything the object breaks; empty: accepted.

    Wrong JSON types come alone, as one cause with reason `BadRequest` that carries the whole message.
    """
    problem = decode_error(resource, obj)
    return (Cause("BadRequest", problem, ""),) if problem else broken_rules(resource, obj)


def broken_rules(resource: Resource, obj: Object) -> tuple[Cause, ...]:
    """What `validate` finds in an object whose JSON types are known to be right."""
    if resource.custom:
        schema = definitions.schema_of(resource)
        body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
        return tuple(structural.causes(schema, body, ""))
    found = [*rules.check(resource, obj)]
    if resource.kind == "Pod":
        found += pod_rules.check(obj.get("spec") or {}, "spec")
    elif resource.group == "apps":
        template = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
        found += pod_rules.check(template, "spec.template.spec")
    return tuple(found)


def _full_schema(resource: Resource) -> definitions.Schema:
    schema = definitions.schema_of(resource)
    if not resource.custom or "properties" not in schema:
        return schema
    typed = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _META}
    return {**schema, "properties": {**schema["properties"], **typed}}


def _refusal(resource: Resource, problem: str) -> str:
    kind = resource.kind
    return f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {problem}'
