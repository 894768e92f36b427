"""`publicFaultConfiguration.json`: which codes public faults may carry, what each means, who may report.

The same form serves the defaults and a user's own table, which replaces them as a whole. A code that stands
in several lists has the gravest of its levels, as in the reference.

Source: fault input contract §2.6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.intake import bodies
from mindie_ha.model.errors import InputError

SEPARATE, PRE_SEPARATE = "SeparateNPU", "PreSeparateNPU"
SUB_HEALTH, NOT_HANDLE = "SubHealthFault", "NotHandleFault"

# In the order in which the reference looks a code up.
_LISTS = (
    ("SeparateNPUCodes", SEPARATE),
    ("PreSeparateNPUCodes", PRE_SEPARATE),
    ("SubHealthFaultCodes", SUB_HEALTH),
    ("NotHandleFaultCodes", NOT_HANDLE),
)
CODE_CHARS = 9
MAX_CODES = 10_000
MAX_RESOURCES = 256
_RESOURCE = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class PublicCodes:
    """Level by code, and the programs that may report."""

    levels: Mapping[str, str]
    resources: frozenset[str]


def parse(text: str, *, where: str) -> PublicCodes:
    """Read a table. Raises InputError: a wrong table is refused as a whole."""
    body = bodies.parse_object(text, where=where)
    codes = bodies.as_object(body.get("publicFaultCode"), where=f"{where}.publicFaultCode")
    levels: dict[str, str] = {}
    for name, level in _LISTS:
        for code in _texts(codes.get(name), where=f"{where}.publicFaultCode.{name}", limit=MAX_CODES):
            if len(code) != CODE_CHARS or not code.isascii():
                raise InputError(
                    f"code {code[:32]!r} has not {CODE_CHARS} characters",
                    where=f"{where}.publicFaultCode.{name}",
                )
            levels.setdefault(code, level)
    place = f"{where}.publicFaultResource"
    resources = _texts(body.get("publicFaultResource"), where=place, limit=MAX_RESOURCES)
    for resource in resources:
        if not _RESOURCE.match(resource):
            raise InputError(f"{resource[:64]!r} is no name of letters, digits, '-', '_', '.'", where=place)
    if not levels or not resources:
        raise InputError("no code, or no resource: nothing could ever be reported", where=where)
    return PublicCodes(levels=levels, resources=frozenset(resources))


def _texts(value: object, *, where: str, limit: int) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError("expected an array of strings", where=where)
    if len(value) > limit:
        raise InputError(f"{len(value)} entries are more than {limit}", where=where)
    return [item for item in value if isinstance(item, str)]


__all__ = ["NOT_HANDLE", "PRE_SEPARATE", "SEPARATE", "SUB_HEALTH", "PublicCodes", "parse"]
