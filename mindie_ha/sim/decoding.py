"""Whether JSON fits the Go types of a built-in kind, and the decoder's own words where it does not.

A typed API server decodes before it validates, so `labels: {a: 1}` is a 400 from the JSON decoder, not a 422.
The message names the innermost Go struct, the path of JSON names (without list positions) and the Go type.
Only the first error is reported, as the decoder does; null fits everywhere.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Any

from mindie_ha.sim.definitions import INT_OR_STRING, QUANTITY, REFERENCE, Schema, resolve

_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")
_QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_JSON_KINDS = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_INTEGERS = {"int32": 31, "int64": 63}


def mismatch(schema: Schema, value: Any, *, struct: str, field: str = "") -> str | None:
    """The decoder's message for the first value of a wrong type, or None. `struct`: Go name of the object."""
    reference = _name(schema)
    if value is None:
        return None
    if reference in (QUANTITY, INT_OR_STRING):
        return _either(reference, value, struct, field)
    target = resolve(schema)
    match target.get("type"):
        case "object":
            return _mapping(schema, target, value, struct, field)
        case "array":
            return _sequence(schema, value, struct, field)
        case None:
            return None
    return _scalar(schema, target, value, struct, field)


def is_quantity(value: object) -> bool:
    """Whether a JSON value is a resource quantity."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or (isinstance(value, str) and _QUANTITY.fullmatch(value) is not None)


def _mapping(schema: Schema, target: Schema, value: Any, struct: str, field: str) -> str | None:
    if not isinstance(value, dict):
        return _cannot(value, struct, field, _go_type(schema))
    properties = target.get("properties")
    entries = target.get("additionalProperties")
    inner = _name(schema).rsplit(".", 1)[-1] or struct
    for key, item in value.items():
        problem = None
        if properties and key in properties:
            problem = mismatch(properties[key], item, struct=inner, field=f"{field}.{key}" if field else key)
        elif isinstance(entries, dict):
            problem = mismatch(entries, item, struct=struct, field=field)
        if problem:
            return problem
    return None


def _sequence(schema: Schema, value: Any, struct: str, field: str) -> str | None:
    if not isinstance(value, list):
        return _cannot(value, struct, field, _go_type(schema))
    items = resolve(schema)["items"]
    return next((p for item in value if (p := mismatch(items, item, struct=struct, field=field))), None)


def _scalar(schema: Schema, target: Schema, value: Any, struct: str, field: str) -> str | None:
    kind, form = target["type"], target.get("format", "")
    if kind == "string":
        if not isinstance(value, str):
            return _cannot(value, struct, field, _go_type(schema))
        return _text(value, form)
    if kind == "boolean":
        return None if isinstance(value, bool) else _cannot(value, struct, field, "bool")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _cannot(value, struct, field, _go_type(schema))
    if kind == "integer" and (isinstance(value, float) or abs(value) >= 1 << _INTEGERS.get(form, 63)):
        return _cannot(value, struct, field, _go_type(schema), shown=f"number {value}")
    return None


def _text(value: str, form: str) -> str | None:
    if form == "byte":
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error:
            return "illegal base64 data"
    if form == "date-time":
        try:
            datetime.fromisoformat(value)
        except ValueError:
            layout = "2006-01-02T15:04:05Z07:00"
            return f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
    return None


def _either(reference: str, value: Any, struct: str, field: str) -> str | None:
    if reference == QUANTITY:
        return None if is_quantity(value) else _QUANTITY_TEXT
    fits = isinstance(value, str | int) and not isinstance(value, bool)
    return None if fits else _cannot(value, struct, field, "intstr.IntOrString")


def _cannot(value: Any, struct: str, field: str, go_type: str, *, shown: str = "") -> str:
    kind = shown or _JSON_KINDS.get(type(value), "value")
    return f"json: cannot unmarshal {kind} into Go struct field {struct}.{field} of type {go_type}"


def _go_type(schema: Schema) -> str:
    """`string`, `int32`, `[]v1.Container`, `map[string]string`, `v1.PodSpec`."""
    reference = _name(schema)
    if reference:
        return ".".join(reference.split(".")[-2:])
    kind = schema.get("type", "string")
    if kind == "array":
        return f"[]{_go_type(schema['items'])}"
    if kind == "object":
        entries = schema.get("additionalProperties")
        return f"map[string]{_go_type(entries) if isinstance(entries, dict) else 'interface {}'}"
    if kind == "integer":
        return str(schema.get("format", "int64"))
    return {"boolean": "bool", "number": "float64"}.get(kind, "string")


def _name(schema: Schema) -> str:
    reference: str = schema.get("$ref", "")
    return reference.removeprefix(REFERENCE)
