"""What people say when they ask for something: who they are, why, and for how long. Pure.

The same bounds wherever a person's word is recorded (isolations, resets, pauses), so that nothing that is
kept can outgrow its record or break a line of output.
"""

from __future__ import annotations

import re

from mindie_ha.model.errors import InputError

PERSON = "person:"
MAX_TEXT = 200
MAX_FOR_S = 90 * 86_400.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._-]{0,62}\Z")


def named(person: str) -> str:
    """`person:<name>`. Raises InputError for what is no name."""
    if not _NAME.match(person):
        advice = "letters, digits, @ . _ -, at most 63"
        raise InputError(f"{person[:64]!r} is no user name", where="person", advice=advice)
    return PERSON + person


def reason(text: str) -> str:
    """The reason in one line. Raises InputError where there is none, too much of it, or something in it that
    a terminal would act upon: it is printed wherever the record is shown."""
    text = text.strip()
    advice = f"one line of at most {MAX_TEXT} characters"
    if not text:
        raise InputError("a reason is needed", where="reason", advice=advice)
    if len(text) > MAX_TEXT:
        raise InputError(f"{len(text)} characters are too many", where="reason", advice=advice)
    if not text.isprintable():
        odd = next(one for one in text if not one.isprintable())
        raise InputError(f"{odd!r} cannot be printed", where="reason", advice=advice)
    return text


def lasting(for_s: float | None) -> float | None:
    """A duration in seconds; None: until taken back. Raises InputError."""
    if for_s is not None and not 0 < for_s <= MAX_FOR_S:
        advice = f"more than 0, at most {MAX_FOR_S:g}"
        raise InputError(f"{for_s:g} s is out of range", where="for_s", advice=advice)
    return for_s
