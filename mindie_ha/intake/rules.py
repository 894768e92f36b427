"""`faultCustomization.json`: when a code that comes often, or lasts long, gets a worse level.

Both generations are read: with and without `ReleaseTimeWindow` and `FaultDuration`. As in the device plugin
a bad element is left out and named, the others stand; of a code in two elements the first counts.

Source: fault input contract §2.3; vectors V27-V29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mindie_ha.intake import bodies
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Level, parse_level

MAX_RULES = 1000
MAX_CODES = 1000
_WINDOW_S = (60, 864_000)
_TIMES = (1, 100)
_RELEASE_S = (60, 2**32)
_TIMEOUT_S = (0, 600)
_RECOVER_S = (0, 86_400)


@dataclass(frozen=True, slots=True)
class Frequency:
    """`times` occurrences within `window_s` raise the level. `release_after_s`: so long after the last
    recovery it falls again; None: only a person takes it back."""

    window_s: float
    times: int
    level: Level
    release_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Duration:
    """A fault that lasts longer than `timeout_s` has `level` until it was away longer than `recover_s`."""

    timeout_s: float
    recover_s: float
    level: Level


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force, by code."""

    frequency: Mapping[str, Frequency]
    duration: Mapping[str, Duration]
    findings: tuple[str, ...] = ()


RuleT = TypeVar("RuleT", Frequency, Duration)


def parse(text: str, *, where: str) -> Rules:
    """Read the file. Raises InputError if it is no object or its blocks are no arrays."""
    root = bodies.parse_object(text, where=where)
    findings: list[str] = []
    frequency: dict[str, Frequency] = {}
    duration: dict[str, Duration] = {}
    for place, item in _items(root, "FaultFrequency", where=where):
        try:
            _add(frequency, _event_ids(item, place), _frequency(item, place), findings, where=place)
        except InputError as error:
            findings.append(f"{error}; left out")
    for place, item in _items(root, "FaultDuration", where=where):
        try:
            _add(duration, _event_ids(item, place), _duration(item, place), findings, where=place)
        except InputError as error:
            findings.append(f"{error}; left out")
    return Rules(frequency, duration, tuple(findings))


def _add(
    rules: dict[str, RuleT], codes: Iterable[str], rule: RuleT, findings: list[str], *, where: str
) -> None:
    for code in codes:
        if code in rules:
            findings.append(f"{where}: {code} has a rule already; the first counts")
        else:
            rules[code] = rule


def _frequency(item: Mapping[str, object], where: str) -> Frequency:
    level = _level(item, where)
    told = item.get("ReleaseTimeWindow")
    release_s = None if told in (None, 0) else float(_between(item, "ReleaseTimeWindow", _RELEASE_S, where))
    if release_s is None and level is not Level.MANUALLY_SEPARATE:
        raise InputError("ReleaseTimeWindow is needed unless a person releases", where=where)
    return Frequency(
        window_s=float(_between(item, "TimeWindow", _WINDOW_S, where)),
        times=_between(item, "Times", _TIMES, where),
        level=level,
        release_after_s=release_s,
    )


def _duration(item: Mapping[str, object], where: str) -> Duration:
    level = _level(item, where)
    if level is Level.MANUALLY_SEPARATE:
        raise InputError("a duration cannot raise to ManuallySeparateNPU", where=where)
    return Duration(
        timeout_s=float(_between(item, "FaultTimeout", _TIMEOUT_S, where)),
        recover_s=float(_between(item, "RecoverTimeout", _RECOVER_S, where)),
        level=level,
    )


def _items(root: Mapping[str, object], name: str, *, where: str) -> list[tuple[str, dict[str, object]]]:
    value = root.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError("expected an array", where=f"{where}.{name}")
    if len(value) > MAX_RULES:
        raise InputError(f"{len(value)} rules are more than {MAX_RULES}", where=f"{where}.{name}")
    return [
        (f"{where}.{name}[{index}]", item if isinstance(item, dict) else {})
        for index, item in enumerate(value)
    ]


def _event_ids(item: Mapping[str, object], where: str) -> list[str]:
    value = item.get("EventId")
    if not isinstance(value, list) or not value or not all(isinstance(code, str) for code in value):
        raise InputError("EventId must be an array of codes", where=where)
    if len(value) > MAX_CODES:
        raise InputError(f"{len(value)} codes are more than {MAX_CODES}", where=where)
    return [code.strip().upper() for code in value if code.strip()]


def _level(item: Mapping[str, object], where: str) -> Level:
    value = item.get("FaultHandling")
    level = parse_level(value) if isinstance(value, str) else Level.UNKNOWN
    if level in (Level.UNKNOWN, Level.NORMAL, Level.SOFTWARE, Level.RETRY):
        raise InputError(f"FaultHandling {str(value)[:40]!r} is no level", where=where)
    return level


def _between(item: Mapping[str, object], name: str, bounds: tuple[int, int], where: str) -> int:
    value = bodies.as_whole_number(item.get(name), where=f"{where}.{name}")
    low, high = bounds
    if name not in item or not low <= value <= high:
        raise InputError(f"{name} must be {low}-{high}", where=where)
    return value
