"""One message about public faults, from any of the three entries -> what it says, checked.

The entries (ConfigMap, gRPC, HTTP) all bring the same plain values. The frame of a message is refused as a
whole; of its faults a bad one is left out with its reason and the good ones stay, unless none does. The
checks, their order and their bounds are those of the reference.

Source: fault input contract §3.2; vectors V52-V61, V67; case 041.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.intake import bodies
from mindie_ha.intake.public_codes import CODE_CHARS, PublicCodes
from mindie_ha.model.errors import InputError

VERSION = "1.0"
FAULT_TYPES = ("NPU", "Node", "Network", "Storage")
EARLIEST_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z
LATEST_MS = 9_999_999_999_999  # thirteen digits
MAX_FAULTS = 100
MAX_INFLUENCES = 1000
MAX_DEVICES = 32
MAX_DEVICE = 31
MAX_LOCATIONS = 10
MAX_LOCATION_KEY = 16
MAX_LOCATION_VALUE = 128
_ID = re.compile(r"[a-zA-Z0-9_.-]{8,128}\Z")
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
_DESCRIPTION = re.compile(r"[\S ]{0,512}\Z")


class Assertion(StrEnum):
    """What a report says of its fault."""

    OCCUR = "occur"
    RECOVER = "recover"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class Influence:
    """Cards of one node."""

    node: str
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReportedFault:
    """One fault of a message."""

    fault_id: str
    fault_type: str
    code: str
    level: str
    time_s: int
    assertion: Assertion
    influences: tuple[Influence, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message with at least one good fault, and why the others were left out."""

    id: str
    resource: str
    faults: tuple[ReportedFault, ...]
    left_out: tuple[InputError, ...] = ()


def resource_of(body: Mapping[str, object]) -> str:
    """Who sent it, before anything else is checked; empty where that is unreadable."""
    resource = body.get("resource")
    return resource if isinstance(resource, str) else ""


def read(
    body: Mapping[str, object], *, codes: PublicCodes, serials: Mapping[str, str], where: str
) -> Message:
    """Check `body`. `serials` gives the node of a serial number. Raises InputError where it is refused."""
    frame = f"{where} " if where else ""
    identity = _matching(body.get("id"), _ID, where=f"{frame}id", advice="8 to 128 of A-Z a-z 0-9 - _ .")
    _time_s(body.get("timestamp"), where=f"{frame}timestamp")
    if body.get("version") != VERSION:
        raise InputError(f"must be {VERSION!r}", where=f"{frame}version")
    resource = resource_of(body)
    if resource not in codes.resources:
        raise InputError(f"{resource[:64]!r} is not configured", where=f"{frame}resource")
    listed = body.get("faults")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_FAULTS:
        raise InputError(f"must be an array of 1 to {MAX_FAULTS} faults", where=f"{frame}faults")
    good: list[ReportedFault] = []
    left_out: list[InputError] = []
    for index, item in enumerate(listed):
        try:
            good.append(_fault(item, codes=codes, serials=serials, where=f"{frame}faults[{index}]"))
        except InputError as error:
            left_out.append(error)
    if not good:
        raise InputError(f"no valid fault: {left_out[0]}", where=f"{frame}faults")
    return Message(identity, resource, tuple(good), tuple(left_out))


def _fault(item: object, *, codes: PublicCodes, serials: Mapping[str, str], where: str) -> ReportedFault:
    body = bodies.as_object(item, where=where)
    fault_id = _matching(
        body.get("faultId"), _ID, where=f"{where}.faultId", advice="8 to 128 of A-Z a-z 0-9 - _ ."
    )
    fault_type = body.get("faultType")
    if not isinstance(fault_type, str) or fault_type not in FAULT_TYPES:
        raise InputError(f"must be one of {', '.join(FAULT_TYPES)}", where=f"{where}.faultType")
    code = body.get("faultCode")
    level = codes.levels.get(code) if isinstance(code, str) and len(code) == CODE_CHARS else None
    if not isinstance(code, str) or level is None:
        raise InputError(
            f"{str(code)[:32]!r} is not in the table of public fault codes", where=f"{where}.faultCode"
        )
    time_s = _time_s(body.get("faultTime"), where=f"{where}.faultTime")
    word = body.get("assertion")
    if not isinstance(word, str) or word not in set(Assertion):
        raise InputError(f"{str(word)[:32]!r} is none of {', '.join(Assertion)}", where=f"{where}.assertion")
    _check_location(body.get("faultLocation"), where=f"{where}.faultLocation")
    influences = _influences(body.get("influence"), serials=serials, where=f"{where}.influence")
    _check_description(body.get("description"), where=f"{where}.description")
    return ReportedFault(fault_id, fault_type, code, level, time_s, Assertion(word), influences)


def _matching(value: object, pattern: re.Pattern[str], *, where: str, advice: str) -> str:
    if not isinstance(value, str) or not pattern.match(value):
        raise InputError("missing or malformed", where=where, advice=advice)
    return value


def _time_s(value: object, *, where: str) -> int:
    """Milliseconds of 13 digits, as whole seconds."""
    number = bodies.as_whole_number(value, where=where)
    if not EARLIEST_MS <= number <= LATEST_MS:
        raise InputError(
            f"{number} is no time in milliseconds since 2025", where=where, advice="thirteen digits"
        )
    return number // 1000


def _check_location(value: object, *, where: str) -> None:
    if value is None:
        return
    location = bodies.as_object(value, where=where)
    if len(location) > MAX_LOCATIONS:
        raise InputError(f"{len(location)} entries are more than {MAX_LOCATIONS}", where=where)
    for key, text in location.items():
        if not isinstance(text, str) or _bytes(key) > MAX_LOCATION_KEY or _bytes(text) > MAX_LOCATION_VALUE:
            raise InputError(
                f"keys have at most {MAX_LOCATION_KEY} bytes, values at most {MAX_LOCATION_VALUE}",
                where=where,
            )


def _check_description(value: object, *, where: str) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not _DESCRIPTION.match(value):
        raise InputError("must be a text of at most 512 characters without tab or line break", where=where)


def _influences(value: object, *, serials: Mapping[str, str], where: str) -> tuple[Influence, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_INFLUENCES:
        raise InputError(f"must be an array of 1 to {MAX_INFLUENCES} entries", where=where)
    return tuple(
        _influence(item, serials=serials, where=f"{where}[{index}]") for index, item in enumerate(value)
    )


def _influence(item: object, *, serials: Mapping[str, str], where: str) -> Influence:
    body = bodies.as_object(item, where=where)
    name, serial = body.get("nodeName"), body.get("nodeSN")
    if isinstance(name, str) and _NODE.match(name):
        node = name
    else:
        found = serials.get(serial) if isinstance(serial, str) and serial else None
        if found is None:
            raise InputError("nodeName is malformed and nodeSN belongs to no node", where=where)
        node = found
    return Influence(node, _devices(body.get("deviceIds"), where=f"{where}.deviceIds"))


def _devices(value: object, *, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_DEVICES:
        raise InputError(f"must be an array of 1 to {MAX_DEVICES} card numbers", where=where)
    numbers = [
        number
        for number in value
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= MAX_DEVICE
    ]
    if len(numbers) != len(value) or len(set(numbers)) != len(numbers):
        raise InputError(f"card numbers are distinct and from 0 to {MAX_DEVICE}", where=where)
    return tuple(numbers)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


__all__ = ["Assertion", "Influence", "Message", "ReportedFault", "read", "resource_of"]
