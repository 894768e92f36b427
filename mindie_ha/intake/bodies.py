"""JSON text from outside -> plain values, without surprises.

Every text is hostile: too large, too deep, of another type, not JSON at all. Each of these raises
`InputError` with what, where and what to do, and nothing else is ever raised. What is returned can be written
down again: JSON can spell half of a character (`"\\ud800"`), which no ledger and no answer could hold.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from mindie_ha.model.errors import InputError

MAX_NUMBER = 2**63 - 1
MAX_TEXT = 4 * 1024 * 1024  # more than any ConfigMap can hold
_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")  # a surrogate, or a half of a good pair


def parse_object(text: str, *, where: str) -> dict[str, object]:
    """The JSON object in `text`."""
    value = parse(text, where=where)
    if not isinstance(value, dict):
        raise InputError(f"expected an object, got {_kind(value)}", where=where)
    return value


def parse(text: str, *, where: str) -> object:
    """The JSON value in `text`; NaN and Infinity are no JSON."""
    if len(text) > MAX_TEXT:
        raise InputError(f"{len(text)} characters are more than {MAX_TEXT}", where=where)
    try:
        value: Any = json.loads(text, parse_constant=_no_constant)
        if _MAYBE_HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("a text has half of a character (a lone surrogate)", where=where) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=where) from None
    return value


def as_object(value: object, *, where: str) -> dict[str, object]:
    """`value` as an object."""
    if not isinstance(value, dict):
        raise InputError(f"expected an object, got {_kind(value)}", where=where)
    return value


def as_whole_number(value: object, *, where: str) -> int:
    """`value` as an integer; true and false are none, an absent one is 0 as in the reference."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"expected a whole number, got {_kind(value)}", where=where)
    if abs(value) > MAX_NUMBER:
        raise InputError("number is out of range", where=where)
    return value


def _no_constant(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
