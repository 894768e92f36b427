"""OpenAPI v2 as protobuf, the only form in which kubectl reads `/openapi/v2`.

The message is `openapi.v2.Document` of gnostic; only what a Kubernetes document needs is encoded: paths with
their PATCH operation, and definitions. The wire format is simple enough to write out: a field is a tag
(number and wire type) and a length with bytes. Field numbers are those of gnostic's OpenAPIv2.proto.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Schema = Mapping[str, Any]


def encode(document: Mapping[str, Any]) -> bytes:
    """The protobuf bytes of an OpenAPI v2 document."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_message(2, _named(path, _path(item))) for path, item in document["paths"].items())
    return (
        _text(1, document["swagger"])
        + _message(2, info)
        + _message(8, paths)
        + _message(9, _named_schemas(document["definitions"]))
    )


def _path(item: Mapping[str, Any]) -> bytes:
    return _message(8, _operation(item["patch"])) if "patch" in item else b""


def _operation(operation: Mapping[str, Any]) -> bytes:
    parameters = b"".join(
        # ParametersItem.parameter, Parameter.non_body_parameter, .query_parameter_sub_schema
        _message(8, _message(1, _message(2, _message(3, _query_parameter(parameter)))))
        for parameter in operation["parameters"]
    )
    ok = _message(1, _named("200", _message(1, _text(1, "OK"))))  # Responses with one ResponseValue.response
    return _text(5, operation["operationId"]) + parameters + _message(9, ok) + _extensions(13, operation)


def _query_parameter(parameter: Mapping[str, Any]) -> bytes:
    return (
        _text(2, "query")
        + _text(3, parameter["description"])
        + _text(4, parameter["name"])
        + _text(6, parameter["type"])
    )


def _schema(schema: Schema) -> bytes:
    parts = [
        _text(number, schema.get(key, "")) for number, key in ((1, "$ref"), (2, "format"), (4, "description"))
    ]
    parts += [_text(19, name) for name in schema.get("required", ())]
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        parts.append(_message(21, _message(1, _schema(additional))))
    if "type" in schema:
        parts.append(_message(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_message(25, _named_schemas(schema["properties"])))
    parts.append(_extensions(31, schema))
    return b"".join(parts)


def _named_schemas(schemas: Mapping[str, Schema]) -> bytes:
    return b"".join(_message(1, _named(name, _schema(schema))) for name, schema in schemas.items())


def _extensions(number: int, node: Mapping[str, Any]) -> bytes:
    """`x-…` keys as NamedAny; the value is YAML text, and JSON is YAML."""
    extensions: Iterable[str] = (key for key in node if key.startswith("x-"))
    return b"".join(_message(number, _named(key, _text(2, json.dumps(node[key])))) for key in extensions)


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _message(2, value)


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode()) if value else b""


def _message(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
