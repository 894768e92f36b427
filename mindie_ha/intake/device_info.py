"""`mindx-dl-deviceinfo-<node>` -> what the device plugin says about the cards of one node.

A report is taken whole or not at all: the checksum is recomputed over the parsed content, as the plugin
made it, and whatever does not fit raises `InputError`; the caller then keeps the last good report and
notes why. A card in the unhealthy list acts at once. Everything else (link faults, entries of the fault
list) is recorded and shown; the entries also name the codes of an unhealthy card.

Source: fault input contract §1.2-1.4; vectors §7.1, §7.2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mindie_ha.intake import bodies, device_lists
from mindie_ha.intake.device_lists import ListedFault
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.nodes import DeviceReport

CONFIG_MAP_PREFIX = "mindx-dl-deviceinfo-"
KEY = "DeviceInfoCfg"

# What Go's encoder escapes and Python's does not.
_GO_ESCAPES = (
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("&", "\\u0026"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A report that was accepted, and the faults in it (by device, the acting ones first)."""

    report: DeviceReport
    faults: tuple[Fault, ...]


def parse(node: str, data: Mapping[str, str], *, now_s: float) -> DeviceInfo:
    """Read the ConfigMap's `data`. Raises InputError for anything but a report with a right CheckCode."""
    where = f"{CONFIG_MAP_PREFIX}{node}[{KEY}]"
    text = data.get(KEY)
    if text is None:
        raise InputError(f"no key {KEY}", where=where, advice="is it written by the Ascend device plugin?")
    root = bodies.parse_object(text, where=where)
    info = bodies.as_object(root.get("DeviceInfo"), where=f"{where}.DeviceInfo")
    devices = device_lists.device_list(info.get("DeviceList"), where=f"{where}.DeviceList")
    updated_at_s = bodies.as_whole_number(info.get("UpdateTime"), where=f"{where}.UpdateTime")
    if root.get("CheckCode") != check_code(devices, updated_at_s):
        raise InputError("CheckCode does not fit the content", where=where, advice="somebody edited it")
    if not devices:
        raise InputError("no device is listed", where=where, advice="the device plugin does not report")
    report = DeviceReport(
        node=node,
        unhealthy=device_lists.names(devices, device_lists.UNHEALTHY, where=where),
        network_unhealthy=device_lists.names(devices, device_lists.NETWORK_UNHEALTHY, where=where),
        updated_at_s=float(updated_at_s),
    )
    return DeviceInfo(report=report, faults=_faults(report, device_lists.faults(devices), now_s=now_s))


def check_code(devices: Mapping[str, str] | None, update_time: int) -> str:
    """The checksum of a `DeviceInfo`: SHA-256 over the struct as Go writes it."""
    ordered = None if devices is None else {key: devices[key] for key in sorted(devices, key=_utf8)}
    content = {"DeviceList": ordered, "UpdateTime": update_time}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    for character, escape in _GO_ESCAPES:
        text = text.replace(character, escape)
    return hashlib.sha256(_utf8(text)).hexdigest()


def continued(faults: Iterable[Fault], *, previous: Iterable[Fault]) -> tuple[Fault, ...]:
    """`faults` with the first-seen time of those that an earlier report already had."""
    first_seen_s = {fault.identity: fault.first_seen_s for fault in previous}
    return tuple(
        replace(fault, first_seen_s=first_seen_s.get(fault.identity, fault.first_seen_s)) for fault in faults
    )


def _utf8(text: str) -> bytes:
    """Bytes as Go has them: what is no character becomes the replacement character."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text).encode()


def _faults(report: DeviceReport, listed: tuple[ListedFault, ...], *, now_s: float) -> tuple[Fault, ...]:
    chip = {item.device for item in listed if not item.network}
    kinds = (
        (Cause.CHIP_UNHEALTHY, report.unhealthy, False),
        (Cause.NETWORK_UNHEALTHY, report.network_unhealthy, True),
        (Cause.CHIP_FAULT_LISTED, chip - report.unhealthy, False),
    )
    return tuple(
        _fault(report, device, cause, _about(listed, device, network=network), now_s)
        for cause, devices, network in kinds
        for device in sorted(devices)
    )


def _about(listed: tuple[ListedFault, ...], device: str, *, network: bool) -> list[ListedFault]:
    return [item for item in listed if item.device == device and item.network is network]


def _fault(report: DeviceReport, device: str, cause: Cause, about: list[ListedFault], now_s: float) -> Fault:
    codes = tuple(dict.fromkeys(code for item in about for code in item.codes))
    levels = [item.level for item in about if item.level]
    return Fault(
        source=FaultSource.DEVICE,
        cause=cause,
        node=report.node,
        device=device,
        codes=codes,
        level=levels[0] if levels else "",
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=f"ConfigMap {CONFIG_MAP_PREFIX}{report.node}, UpdateTime {report.updated_at_s:.0f}",
        acts=cause is Cause.CHIP_UNHEALTHY,
    )
