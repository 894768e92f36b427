# ruff: noqa: ARG001
"""What the embedded API server refuses, with the reasons and words of a real one.

Three gates, in the order a request meets them: `decode_error` (wrong JSON types: HTTP 400 BadRequest before
anything else), `unknown_fields` (strict field validation, asked for by the client), `validate` (HTTP 422
Invalid with one cause a broken rule).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mindie_ha.sim.resources import Resource

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `Status.details.causes`: reason (`FieldValueInvalid`, …), message and field path."""

    reason: str
    message: str
    field: str


def decode_error(resource: Resource, obj: Object) -> str | None:
    """The message of the 400 that decoding gives for wrong JSON types, or None."""
    return None


def unknown_fields(resource: Resource, obj: Object) -> tuple[str, ...]:
    """Paths of fields the schema does not know, for `fieldValidation=Strict|Warn`."""
    return ()


def validate(resource: Resource, obj: Object) -> tuple[Cause, ...]:
    """Every rule that the (decodable, defaulted) object breaks; empty: accepted."""
    return ()
