"""The map `DeviceList`, as the device plugin and the fused list of ClusterD both write it.

Keys are `<resource>` plus a suffix (`-Unhealthy`, `-NetworkUnhealthy`, `-Fault`), where the resource is
`huawei.com/Ascend910` (910A, A2, A3) or `huawei.com/npu`; other resources follow the same form. Every
value is a string: names joined by commas, or a JSON array inside a string for the fault list. An
unreadable fault list means "no causes known", never "healthy": the unhealthy list stands by itself.

Source: fault input contract §1.2, §1.3, V12-V21.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.intake import bodies
from mindie_ha.model.errors import InputError

UNHEALTHY = "-Unhealthy"
NETWORK_UNHEALTHY = "-NetworkUnhealthy"
FAULT = "-Fault"

MAX_DEVICES = 1024
MAX_CODES = 256
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}(-[0-9a-z]{1,16}){1,4}\Z")


@dataclass(frozen=True, slots=True)
class ListedFault:
    """One entry of the fault list. `network`: it concerns the link, not the chip."""

    device: str
    level: str
    codes: tuple[str, ...]
    network: bool


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
            found.update(_names(text, where=f"{where}.{key}"))
    return frozenset(found)


def faults(devices: Mapping[str, str]) -> tuple[ListedFault, ...]:
    """Every readable entry of the fault lists; what cannot be read is left out."""
    found: list[ListedFault] = []
    for key, text in sorted(devices.items()):
        if "/" in key and key.endswith(FAULT):
            found.extend(_faults(text))
    return tuple(found)


def _names(text: str, *, where: str) -> list[str]:
    listed = [name.strip() for name in text.split(",") if name.strip()]
    if len(listed) > MAX_DEVICES:
        raise InputError(f"{len(listed)} devices are more than {MAX_DEVICES}", where=where)
    for name in listed:
        if not _NAME.match(name):
            raise InputError(f"{name[:64]!r} is not a device name like Ascend910-3", where=where)
    return listed


def _faults(text: str) -> list[ListedFault]:
    try:
        items = bodies.parse(text, where=FAULT)
    except InputError:
        return []
    if not isinstance(items, list):
        return []
    return [fault for item in items[: 2 * MAX_DEVICES] if (fault := _fault(item)) is not None]


def _fault(item: object) -> ListedFault | None:
    if not isinstance(item, dict):
        return None
    name = item.get("npu_name")
    if not isinstance(name, str) or not _NAME.match(name):
        return None
    level = item.get("fault_handling") or item.get("fault_level") or item.get("large_model_fault_level")
    text = item.get("fault_code")
    codes = text.split(",") if isinstance(text, str) else []
    kept = dict.fromkeys(code.strip().upper()[:32] for code in codes[:MAX_CODES] if code.strip())
    return ListedFault(
        device=name,
        level=level[:64] if isinstance(level, str) else "",
        codes=tuple(kept),
        network=item.get("fault_type") == "CardNetworkUnhealthy",
    )
