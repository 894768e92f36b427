"""The map `DeviceList`, as the device plugin and the fused list of ClusterD both write it.

Keys are `<resource>` plus a suffix (`-Unhealthy`, `-NetworkUnhealthy`, `-Recovering`, `-Fault`), where the
resource is `huawei.com/Ascend910` (910A, A2, A3), `huawei.com/npu` (A5), `huawei.com/Ascend310P`, with or
without `-V`, `-VPro`, `-IPro`, `huawei.com/Ascend310`, or a name of the cluster's own. Every value is a
string: names joined by commas, or a JSON array inside a string for the fault list. An unreadable fault list
means "no causes known", never "healthy": the unhealthy list stands by itself. Each fault object is split into
its codes, because its own level is only a summary and may hide what has to be done.

Source: fault input contract §1.2, §1.3, §4.1, V12-V21, V31; cases 033, 035.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mindie_ha.intake import bodies
from mindie_ha.intake.code_tables import ChipCodes
from mindie_ha.intake.stamps import to_seconds
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Family, Level, parse_level

UNHEALTHY = "-Unhealthy"
NETWORK_UNHEALTHY = "-NetworkUnhealthy"
RECOVERING = "-Recovering"
FAULT = "-Fault"

MAX_DEVICES = 1024
MAX_CODES = 256
MAX_CODE = 64
MANUAL_CODE = "ManuallySeparateNPU"  # stands for the empty code of a manual isolation
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]{0,40}(-[0-9A-Za-z._]{1,24}){1,4}\Z")
_VIRTUAL = re.compile(r"(?P<prefix>.+?)-[0-9]+c(?:\.[0-9A-Za-z.]+)?-[0-9]+-(?P<chip>[0-9]+)\Z")
_SHARED = re.compile(r"(?P<prefix>.+?)-(?P<chip>[0-9]+)-[0-9]+\Z")
_TIME_MAPS = ("fault_time_and_level_map", "fault_time_map")  # the second: older writers
_LEVEL_KEYS = ("fault_handling", "fault_level", "large_model_fault_level")
_FAMILIES = {
    "CardUnhealthy": Family.CHIP,
    "CardNetworkUnhealthy": Family.NETWORK,
    "PublicFault": Family.PUBLIC,
}


@dataclass(frozen=True, slots=True)
class ListedCode:
    """One code of one card; `code` is empty where none was told (a card listed for its neighbour)."""

    device: str  # the physical card
    code: str
    level: Level
    family: Family
    told_at_s: float = 0.0


def device_list(value: object, *, where: str) -> dict[str, str] | None:
    """`value` as the map it must be: strings to strings; None for null."""
    if value is None:
        return None
    found: dict[str, str] = {}
    for key, text in bodies.as_object(value, where=where).items():
        if not isinstance(text, str):
            raise InputError("every value must be a string", where=f"{where}.{key}")
        found[key] = text
    return found


def names(devices: Mapping[str, str], suffix: str, *, where: str) -> frozenset[str]:
    """The device names under all keys that end with `suffix`; a malformed name refuses the whole."""
    found: set[str] = set()
    for key, text in devices.items():
        if "/" in key and key.endswith(suffix):
            found.update(split_names(text, where=f"{where}.{key}"))
    return frozenset(found)


def split_names(text: str, *, where: str) -> list[str]:
    """Names joined by commas; blanks do not matter, a malformed name refuses the whole."""
    listed = [name.strip() for name in text.split(",") if name.strip()]
    if len(listed) > MAX_DEVICES:
        raise InputError(f"{len(listed)} devices are more than {MAX_DEVICES}", where=where)
    for name in listed:
        if not _NAME.match(name):
            raise InputError(f"{name[:64]!r} is not a device name like Ascend910-3", where=where)
    return listed


def physical_name(name: str) -> str:
    """The card that a name means: `Ascend910-2c-100-0` (virtual) and `Ascend910-0-3` (shared) are on
    `Ascend910-0`; everything else is a card itself."""
    match = _VIRTUAL.match(name) or _SHARED.match(name)
    return f"{match['prefix']}-{match['chip']}" if match else name


def listed_codes(devices: Mapping[str, str], *, tables: ChipCodes) -> tuple[ListedCode, ...]:
    """Every readable code of the fault lists; what cannot be read is left out."""
    found: list[ListedCode] = []
    for key, text in sorted(devices.items()):
        if "/" in key and key.endswith(FAULT):
            for item in _objects(text):
                found.extend(_codes(item, tables))
    return tuple(dict.fromkeys(found))


def _objects(text: str) -> list[dict[str, object]]:
    if text in ("", "[]", "null"):
        return []
    try:
        items = bodies.parse(text, where=FAULT)
    except InputError:
        return []
    if not isinstance(items, list):
        return []
    return [item for item in items[: 2 * MAX_DEVICES] if isinstance(item, dict)]


def _codes(item: Mapping[str, object], tables: ChipCodes) -> Iterator[ListedCode]:
    name = item.get("npu_name")
    if not isinstance(name, str) or not _NAME.match(name):
        return
    kind = item.get("fault_type")
    family = _FAMILIES.get(kind, Family.CHIP) if isinstance(kind, str) else Family.CHIP
    summary = next((text for key in _LEVEL_KEYS if isinstance(text := item.get(key), str) and text), "")
    text = item.get("fault_code")
    codes = [code.strip().upper()[:MAX_CODE] for code in text.split(",")] if isinstance(text, str) else []
    told = _time_map(item)
    device = physical_name(name)
    levels: set[Level] = set()
    for code in dict.fromkeys(code for code in codes[:MAX_CODES] if code):
        told_level, time_s = _told(told.get(code), summary)
        level = told_level or _default(code, family, tables)
        levels.add(level)
        yield ListedCode(device, code, level, family, time_s)
    level = parse_level(summary)
    if level is Level.MANUALLY_SEPARATE and level not in levels:
        yield ListedCode(device, MANUAL_CODE, level, family)
    elif not levels and summary:
        yield ListedCode(device, "", level, family)


def _time_map(item: Mapping[str, object]) -> dict[str, object]:
    value = next((found for key in _TIME_MAPS if isinstance(found := item.get(key), dict)), {})
    return {str(code).strip().upper(): entry for code, entry in value.items()}


def _told(entry: object, summary: str) -> tuple[Level | None, float]:
    """Level and time of one code: its own, else the object's level; older maps hold the time alone."""
    if not isinstance(entry, dict):
        return (parse_level(summary) if summary else None), to_seconds(entry)
    level = entry.get("fault_level")
    text = level if level and isinstance(level, str) else summary
    return (parse_level(text) if text else None), to_seconds(entry.get("fault_time"))


def _default(code: str, family: Family, tables: ChipCodes) -> Level:
    return tables.network_level(code) if family is Family.NETWORK else tables.level(code)
