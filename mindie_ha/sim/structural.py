"""Structural schemas of custom kinds: what they refuse, and which fields they do not know.

The words are those of the API server's schema validation, for example
`spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mindie_ha.sim.definitions import QUANTITY, Schema, builtin, resolve
from mindie_ha.sim.statuses import Cause
from mindie_ha.sim.syntax import canonical_quantity

_ANY = "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"
_ZERO: dict[str, type] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": float,
}  # fmt: skip


def causes(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    """Every rule of the schema that the value breaks, in the order of the object."""
    if schema.get(_EITHER):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield _wrong_type(value, path, "integer,string")
        return
    wanted = schema.get("type")
    if wanted and not _is(value, wanted):
        yield _wrong_type(value, path, wanted)
        return
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        shown = ", ".join(f'"{item}"' for item in allowed)
        yield Cause(
            "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {shown}', path
        )
    if schema.get("format") == "date-time" and not _is_time(value):
        text = f'Invalid value: "{value}": {path} in body must be of type date-time: "{value}"'
        yield Cause("FieldValueInvalid", text, path)
    yield from _bounds(schema, value, path)
    if isinstance(value, dict):
        yield from _members(schema, value, path)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from causes(schema["items"], item, f"{path}[{index}]")


def _members(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Cause]:
    for name in schema.get("required", ()):
        if name not in value:
            yield Cause("FieldValueRequired", "Required value", _join(path, name))
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for name, item in value.items():
        if name in properties:
            yield from causes(properties[name], item, _join(path, name))
        elif isinstance(others, dict):
            yield from causes(others, item, _join(path, name))


def _bounds(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and value < low:
        text = f"Invalid value: {value}: {path} in body should be greater than or equal to {low}"
        yield Cause("FieldValueInvalid", text, path)
    if high is not None and value > high:
        text = f"Invalid value: {value}: {path} in body should be less than or equal to {high}"
        yield Cause("FieldValueInvalid", text, path)


def unknown(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Paths of members that the schema does not know; works on built-in and structural schemas."""
    target = resolve(schema)
    if isinstance(value, list) and "items" in target:
        for index, item in enumerate(value):
            yield from unknown(target["items"], item, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    properties = target.get("properties")
    others = target.get("additionalProperties")
    for name, item in value.items():
        if properties and name in properties:
            yield from unknown(properties[name], item, _join(path, name))
        elif isinstance(others, dict):
            yield from unknown(others, item, _join(path, name))
        elif properties and not others and not target.get(_ANY):
            yield _join(path, name)


def canonical(schema: Schema, value: Any) -> Any:
    """The value as a server stores it: without unknown members and nulls, quantities as canonical text.

    A null in a list is the zero value of its type, as for Go. The same object where nothing changes.
    """
    target = resolve(schema)
    if value is None:
        zero = _ZERO.get(target.get("type", ""))
        return zero and zero()
    if target is builtin()[QUANTITY] and isinstance(value, str | int | float):
        return canonical_quantity(value)
    if isinstance(value, list) and "items" in target:
        kept = [canonical(target["items"], item) for item in value]
        return value if all(a is b for a, b in zip(kept, value, strict=True)) else kept
    if not isinstance(value, dict):
        return value
    properties = target.get("properties")
    others = target.get("additionalProperties")
    result: dict[str, Any] = {}
    for name, item in value.items():
        if properties and name in properties:
            if item is not None:
                result[name] = canonical(properties[name], item)
        elif isinstance(others, dict):
            result[name] = canonical(others, item)
        elif not properties or others or target.get(_ANY):
            result[name] = item
    unchanged = len(result) == len(value) and all(result[name] is item for name, item in value.items())
    return value if unchanged else result


def _is(value: Any, wanted: str) -> bool:
    match wanted:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, str)


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _wrong_type(value: Any, path: str, wanted: str) -> Cause:
    kind = _kind(value)
    text = f'Invalid value: "{kind}": {path} in body must be of type {wanted}: "{kind}"'
    return Cause("FieldValueTypeInvalid", text, path)


def _kind(value: Any) -> str:
    for kind in ("object", "array", "boolean", "integer", "number"):
        if _is(value, kind):
            return kind
    return "null" if value is None else "string"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
