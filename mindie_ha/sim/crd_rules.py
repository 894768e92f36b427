"""Rules of CustomResourceDefinitions: what a schema must be so that everything that reads it can rely on it.

A real server insists on structural schemas; the same points are checked here that matter for serving the
kind: no references, one schema per list, a type at the root, one stored version, complete printer columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindie_ha.sim import syntax
from mindie_ha.sim.statuses import Cause

Object = dict[str, Any]

_SCOPES = ("Cluster", "Namespaced")


def check(crd: Object) -> Iterator[Cause]:
    """Causes for a definition that cannot be served."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    for field in ("group", "scope"):
        if not spec.get(field):
            yield syntax.required(f"spec.{field}")
    if spec.get("scope") and spec["scope"] not in _SCOPES:
        yield syntax.unsupported("spec.scope", spec["scope"], _SCOPES)
    for field in ("plural", "kind"):
        if not names.get(field):
            yield syntax.required(f"spec.names.{field}")
    if crd["metadata"].get("name") != f"{names.get('plural')}.{spec.get('group')}":
        text = 'must be spec.names.plural+"."+spec.group'
        yield syntax.invalid("metadata.name", crd["metadata"].get("name", ""), text)
    versions = spec.get("versions") or []
    if sum(1 for version in versions if version.get("storage")) != 1:
        text = "must have exactly one version marked as storage version"
        yield syntax.invalid("spec.versions", "", text)
    for index, version in enumerate(versions):
        yield from _version(version, f"spec.versions[{index}]")


def _version(version: Object, path: str) -> Iterator[Cause]:
    if not version.get("name"):
        yield syntax.required(f"{path}.name")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield Cause(
            "FieldValueRequired", "Required value: schemas are required", f"{path}.schema.openAPIV3Schema"
        )
    else:
        where = f"{path}.schema.openAPIV3Schema"
        if schema.get("type") != "object":
            yield syntax.invalid(f"{where}.type", schema.get("type", ""), "must be object at the root")
        yield from _schema(schema, where)
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        for field in ("name", "type", "jsonPath"):
            if not column.get(field):
                yield syntax.required(f"{path}.additionalPrinterColumns[{index}].{field}")


def _schema(schema: Any, path: str) -> Iterator[Cause]:
    if not isinstance(schema, dict):
        yield Cause("FieldValueForbidden", "Forbidden: must be a schema object", path)
        return
    if "$ref" in schema:
        yield Cause("FieldValueForbidden", "Forbidden: $ref is not supported", f"{path}.$ref")
    for name, field in (schema.get("properties") or {}).items():
        yield from _schema(field, f"{path}.properties[{name}]")
    if "items" in schema:
        yield from _schema(schema["items"], f"{path}.items")
    others = schema.get("additionalProperties")
    if others is not None and not isinstance(others, bool):
        yield from _schema(others, f"{path}.additionalProperties")
