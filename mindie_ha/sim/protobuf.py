"""Bodies in Kubernetes' protobuf encoding, read into the JSON form of the same object.

kubectl sends what its typed commands create only so. The envelope is four magic bytes and a message
`runtime.Unknown` (type, raw bytes); messages are read by the field numbers in package data, unknown fields
are skipped. Go writes every field that is no pointer, empty or not; JSON leaves empty strings and absent
times out, so those are dropped here; numbers and booleans that are zero stay, as a pointer to zero would.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

Object = dict[str, Any]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_DEPTH = 64
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIMES = (f"{_META}Time", f"{_META}MicroTime")


class ProtobufError(ValueError):
    """The bytes are no Kubernetes object in protobuf, or one of a kind that is not known here."""


@cache
def _table() -> tuple[dict[str, str], dict[str, dict[str, list[str]]]]:
    packed = files("mindie_ha.sim").joinpath("data/protobuf.json.gz").read_bytes()
    data = json.loads(gzip.decompress(packed))
    return data["roots"], data["messages"]


def decode(raw: bytes) -> Object:
    """The object with apiVersion and kind; raises ProtobufError."""
    if not raw.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message")
    try:
        envelope = dict(_fields(raw[len(_MAGIC) :]))
        type_meta = dict(_fields(_bytes(envelope.get(1, b""))))
        api_version, kind = _bytes(type_meta.get(1, b"")).decode(), _bytes(type_meta.get(2, b"")).decode()
        roots, _ = _table()
        name = roots.get(f"{api_version} {kind}")
        if name is None:
            raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}" in protobuf')
        body = _message(name, _bytes(envelope.get(2, b"")), 0)
    except (IndexError, UnicodeDecodeError, struct.error, OverflowError, OSError) as error:
        raise ProtobufError(f"malformed protobuf: {error}") from None
    return {**body, "apiVersion": api_version, "kind": kind}


def _message(name: str, raw: bytes, depth: int) -> Object:
    if depth > _DEPTH:
        raise ProtobufError("nested too deeply")
    known = _table()[1][name]
    result: Object = {}
    for number, value in _fields(raw):
        if str(number) not in known:
            continue
        key, kind, shape = known[str(number)]
        if shape == "map":
            entry = dict(_fields(_bytes(value)))
            item = _value(kind, entry.get(2, b"" if kind != "int" else 0), depth)
            result.setdefault(key, {})[_bytes(entry.get(1, b"")).decode()] = item
        elif shape == "list":
            result.setdefault(key, []).append(_value(kind, value, depth))
        elif shape == "inline":
            result.update(_message(kind, _bytes(value), depth + 1))
        else:
            item = _value(kind, value, depth)
            if item not in ("", None):
                result[key] = item
    return result


def _value(kind: str, value: bytes | int, depth: int) -> Any:
    match kind:
        case "string":
            return _bytes(value).decode()
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "bool":
            return bool(value)
        case "int":
            number = value if isinstance(value, int) else 0
            return number - (1 << 64) if number >> 63 else number
        case "double":
            return struct.unpack("<d", _bytes(value))[0]
        case _:
            return _special(kind, _bytes(value), depth)


def _special(kind: str, raw: bytes, depth: int) -> Any:
    """Messages whose JSON form is a scalar, and all others."""
    parts = dict(_fields(raw)) if kind in (*_TIMES, _QUANTITY, _INT_OR_STRING) else {}
    if kind in _TIMES:
        if not raw:
            return None
        seconds, nanos = int(parts.get(1, 0)), int(parts.get(2, 0))
        moment = datetime.fromtimestamp(seconds, UTC)
        shown = moment.strftime("%Y-%m-%dT%H:%M:%S")
        return f"{shown}.{nanos // 1000:06d}Z" if kind.endswith("MicroTime") else f"{shown}Z"
    if kind == _QUANTITY:
        return _bytes(parts.get(1, b"")).decode()
    if kind == _INT_OR_STRING:
        return _bytes(parts.get(3, b"")).decode() if parts.get(1) else int(parts.get(2, 0))
    return _message(kind, raw, depth + 1)


def _fields(raw: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(raw, at)
            yield tag >> 3, value
            continue
        if wire == 2:
            length, at = _varint(raw, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"malformed protobuf: wire type {wire}")
        if at + length > len(raw):
            raise ProtobufError("malformed protobuf: a field is longer than its message")
        yield tag >> 3, raw[at : at + length]
        at += length


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ProtobufError("malformed protobuf: a number is longer than 64 bits")


def _bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("malformed protobuf: a number where bytes belong")
    return value
