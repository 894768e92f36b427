"""The small grammars of the API: names, label keys and values, quantities; with the server's own words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction

from mindie_ha.sim.statuses import Cause

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_NUMBER = re.compile(r"([+-]?[0-9.]+)(.*)")
_SUFFIXES = {suffix: 10 ** (3 * power) for power, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])}
_BINARY = {f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTPE", start=1)}
_SMALL = {"m": Fraction(1, 1000), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}


def required(field: str) -> Cause:
    """A field that must be there."""
    return Cause("FieldValueRequired", "Required value", field)


def invalid(field: str, value: object, text: str) -> Cause:
    """A value that may not be."""
    shown = (
        f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else value
    )
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {text}", field)


def unsupported(field: str, value: object, allowed: tuple[str, ...]) -> Cause:
    """A value outside of an enumeration."""
    listed = ", ".join(f'"{item}"' for item in sorted(allowed))
    return Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)


def dns_label(value: str, field: str) -> Iterator[Cause]:
    """A container, volume or namespace name."""
    if not value:
        yield required(field)
    elif len(value) > 63:
        yield invalid(field, value, "must be no more than 63 characters")
    elif not LABEL.fullmatch(value):
        yield invalid(field, value, LABEL_TEXT)


def labels(pairs: dict[str, str], field: str) -> Iterator[Cause]:
    """Keys and values of a label map."""
    for key, value in pairs.items():
        yield from qualified_name(key, field)
        if len(value) > 63:
            yield invalid(field, value, "must be no more than 63 characters")
        elif not _VALUE.fullmatch(value):
            yield invalid(field, value, _VALUE_TEXT)


def qualified_name(key: str, field: str) -> Iterator[Cause]:
    """`name` or `prefix/name`, as label keys, annotation keys, taint keys and resource names are."""
    name = key.rpartition("/")[2]
    if not name:
        yield invalid(field, key, "name part must be non-empty")
    elif len(name) > 63:
        yield invalid(field, key, "name part must be no more than 63 characters")
    elif not _NAME.fullmatch(name):
        yield invalid(field, key, _NAME_TEXT)


def quantity(value: str | float) -> Fraction:
    """The exact value of a quantity that decoded; 0 where it is none."""
    match = _NUMBER.fullmatch(str(value))
    if match is None:
        return Fraction(0)
    digits, suffix = match.groups()
    if suffix[:1] in ("e", "E") and suffix[1:].lstrip("+-").isdigit():
        return Fraction(digits) * Fraction(10) ** int(suffix[1:])
    factor = _SUFFIXES.get(suffix) or _BINARY.get(suffix) or _SMALL.get(suffix, Fraction(0))
    return Fraction(digits) * factor


def canonical_quantity(value: str | float) -> str:
    """The quantity as a server writes it back: `1000m` is `1`, `1024Mi` is `1Gi`, 0.5 is `500m`."""
    text = str(value)
    match = _NUMBER.fullmatch(text)
    exact = quantity(value)
    if match is None or (match.group(2)[:1] in ("e", "E") and match.group(2) != "E"):
        return text
    if not exact:
        return "0"
    binary = match.group(2) in _BINARY
    base, units = (1024, ("", *_BINARY)) if binary else (1000, tuple(_SUFFIXES))
    if exact.denominator != 1:
        base, units = 1000, ("n", "u", "m")
        exact *= 10**9
    amount, power = math.ceil(exact), 0
    while amount % base == 0 and power < len(units) - 1:
        amount, power = amount // base, power + 1
    return f"{amount}{units[power]}"
