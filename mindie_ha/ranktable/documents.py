"""JSON text of unknown origin -> typed values, or one RanktableError that says where.

Promise: whatever the text is, nothing but RanktableError leaves this module. Bounds come first (size,
then nesting), so that a hostile ConfigMap costs a bounded amount of work. Types are strict as in the
reference: a number where a text is expected is an error, and so is null, which crashes the reference.

A key that occurs twice in one object is ambiguous (readers differ in which one wins), so it is
remembered and the caller decides; an `initializing` table is allowed to contain anything.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import NoReturn

from mindie_ha.model.ranktables import RanktableError

MAX_NESTING = 10
"""The consumer refuses deeper documents. Source: motor contract §1.1."""
MAX_TEXT = 256
"""Longest text of one field; the longest honest one is an IPv6 address or a hardware type."""

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded object and the keys that occurred more than once somewhere in it."""

    root: JsonObject
    repeated_keys: tuple[str, ...]


def decode(text: str | None, *, max_bytes: int, name: str) -> Document:
    """Decode `text`, which must be one JSON object within the bounds.

    `name` is what the text is called in errors, for example "hccl.json".
    """
    if text is None or not text.strip():
        raise RanktableError(
            f"{name} is missing or empty", where="$", advice="wait for its writer or create it"
        )
    # A character takes one to four bytes: the cheap test spares us from encoding what is far too long.
    if len(text) > max_bytes or len(text.encode(errors="surrogatepass")) > max_bytes:
        raise RanktableError(
            f"{name} is larger than {max_bytes} bytes", where="$", advice="write a smaller table"
        )
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, object]]) -> JsonObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.extend(key for key, times in counts.items() if times > 1)
        return found

    try:
        root: object = json.loads(text, object_pairs_hook=collect, parse_constant=_no_constant)
    except RecursionError:
        raise _too_deep(name) from None
    except ValueError as error:
        raise RanktableError(
            f"{name} is not JSON: {show(str(error))}", where="$", advice="correct the text"
        ) from error
    _check_nesting(root, name=name)
    return Document(root=as_object(root, where="$"), repeated_keys=tuple(repeated))


def as_object(value: object, *, where: str) -> JsonObject:
    """`value` as an object."""
    if not isinstance(value, dict):
        _wrong_type(value, "an object", where)
    return value


def as_text(value: object, *, where: str) -> str:
    """`value` as a short printable text."""
    if not isinstance(value, str):
        _wrong_type(value, "a text", where)
    if len(value) > MAX_TEXT or not value.isprintable():
        raise RanktableError(
            f"text is longer than {MAX_TEXT} or has unprintable characters: {show(value)}",
            where=where,
            advice="correct the value",
        )
    return value


def text_at(item: JsonObject, key: str, *, where: str) -> str:
    """The text at `key`, which must be there."""
    if key not in item:
        raise RanktableError(f'key "{key}" is missing', where=where, advice="add it")
    return as_text(item[key], where=f"{where}.{key}")


def optional_text_at(item: JsonObject, key: str, *, where: str) -> str:
    """The text at `key`, or "" if there is no such key. null is an error."""
    return as_text(item[key], where=f"{where}.{key}") if key in item else ""


def objects_at(item: JsonObject, key: str, *, where: str, required: bool) -> list[tuple[str, JsonObject]]:
    """The objects of the list at `key`, each with its path; empty if absent and not `required`."""
    if key not in item:
        if required:
            raise RanktableError(f'list "{key}" is missing', where=where, advice="add it")
        return []
    value = item[key]
    path = f"{where}.{key}"
    if not isinstance(value, list):
        _wrong_type(value, "a list", path)
    return [
        (f"{path}[{index}]", as_object(element, where=f"{path}[{index}]"))
        for index, element in enumerate(value)
    ]


def show(value: object) -> str:
    """A short ASCII picture of a foreign value, safe in logs and errors."""
    picture = ascii(value)
    return picture if len(picture) <= 60 else picture[:57] + "..."


def _wrong_type(value: object, expected: str, where: str) -> NoReturn:
    kind = "null" if value is None else type(value).__name__
    raise RanktableError(f"expected {expected}, got {kind}", where=where, advice="all scalars are JSON texts")


def _no_constant(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


def _too_deep(name: str) -> RanktableError:
    return RanktableError(
        f"{name} is nested deeper than {MAX_NESTING}", where="$", advice="write a flat table"
    )


def _check_nesting(root: object, *, name: str) -> None:
    level: list[object] = [root]
    for _ in range(MAX_NESTING):
        level = [child for value in level for child in _children(value) if isinstance(child, (dict, list))]
        if not level:
            return
    raise _too_deep(name)


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


__all__ = [
    "MAX_NESTING",
    "Document",
    "JsonObject",
    "as_object",
    "as_text",
    "decode",
    "objects_at",
    "optional_text_at",
    "show",
    "text_at",
]
