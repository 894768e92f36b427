"""`mindx-dl-deviceinfo-<node>` -> what the device plugin says about the cards of one node.

A report is taken whole or not at all: the checksum is recomputed over the parsed content, as the plugin
made it, and whatever does not fit raises `InputError`; the caller then keeps the last good report and
notes why. What a card's fault does is decided code by code (`policy/effects.py`): a card that is listed as
unhealthy acts, and so does one whose restart code is hidden behind a PreSeparate summary. Faults of the link
never act. A card in reset is no fault until the reset takes too long.

Source: fault input contract §1.2-1.4, §2.1; vectors §7.1, §7.2; case 045.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mindie_ha.intake import bodies, code_tables, device_lists
from mindie_ha.intake.code_tables import ChipCodes
from mindie_ha.intake.device_lists import ListedCode
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.levels import Family, Level, worst
from mindie_ha.model.nodes import DeviceReport
from mindie_ha.policy.effects import Effect, Placement, Subject, row_of

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


def parse(node: str, data: Mapping[str, str], *, now_s: float, tables: ChipCodes | None = None) -> DeviceInfo:
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
    return from_list(
        node,
        devices,
        updated_at_s=float(updated_at_s),
        now_s=now_s,
        tables=tables,
        where=where,
        told_by=f"ConfigMap {CONFIG_MAP_PREFIX}{node}, UpdateTime {updated_at_s}",
    )


def from_list(
    node: str,
    devices: Mapping[str, str],
    *,
    updated_at_s: float,
    now_s: float,
    tables: ChipCodes | None,
    where: str,
    told_by: str,
) -> DeviceInfo:
    """The report and faults in a `DeviceList`; `told_by` becomes the evidence."""
    listed = device_lists.listed_codes(devices, tables=tables or code_tables.defaults().chip)
    chips = _physical(devices, device_lists.UNHEALTHY, where=where)
    links = _physical(devices, device_lists.NETWORK_UNHEALTHY, where=where)
    resetting = _physical(devices, device_lists.RECOVERING, where=where)
    facts = _facts(listed, unhealthy=chips, links=links, now_s=now_s)
    found = [
        _fault(node, device, network, details, now_s=now_s, told_by=told_by)
        for (network, device), details in sorted(facts.items())
    ]
    found += [
        _resetting(node, device, now_s=now_s, told_by=told_by)
        for device in sorted(resetting - chips)
        if not any(fault.device == device and fault.acts for fault in found)
    ]
    report = DeviceReport(
        node=node,
        unhealthy=chips | {fault.device for fault in found if fault.cause is Cause.CHIP_UNHEALTHY},
        network_unhealthy=links,
        resetting=resetting,
        sub_healthy=frozenset(
            fault.device
            for fault in found
            if fault.cause is not Cause.NETWORK_UNHEALTHY
            and any(fact.level is Level.SUB_HEALTH for fact in fault.details)
        ),
        updated_at_s=updated_at_s,
    )
    return DeviceInfo(report=report, faults=tuple(sorted(found, key=_acting_first)))


def check_code(devices: Mapping[str, str] | None, update_time: int) -> str:
    """The checksum of a `DeviceInfo`: SHA-256 over the struct as Go writes it."""
    ordered = None if devices is None else {key: devices[key] for key in sorted(devices, key=_utf8)}
    content = {"DeviceList": ordered, "UpdateTime": update_time}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(go_bytes(text)).hexdigest()


def go_bytes(text: str) -> bytes:
    """JSON text as Go's encoder writes it: it escapes what Python's leaves alone."""
    for character, escape in _GO_ESCAPES:
        text = text.replace(character, escape)
    return _utf8(text)


def continued(faults: Iterable[Fault], *, previous: Iterable[Fault]) -> tuple[Fault, ...]:
    """`faults` with the first-seen times of those, and of those codes, that an earlier report already had."""
    earlier = tuple(previous)
    first_seen_s = {fault.identity: fault.first_seen_s for fault in earlier}
    codes = {
        (fault.source, fault.device, fact.identity): fact.first_seen_s
        for fault in earlier
        for fact in fault.details
    }
    return tuple(
        replace(
            fault,
            first_seen_s=first_seen_s.get(fault.identity, fault.first_seen_s),
            details=tuple(
                replace(
                    fact,
                    first_seen_s=codes.get((fault.source, fault.device, fact.identity), fact.first_seen_s),
                )
                for fact in fault.details
            ),
        )
        for fault in faults
    )


def _utf8(text: str) -> bytes:
    """Bytes as Go has them: what is no character becomes the replacement character."""
    if text.isascii():
        return text.encode()
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text).encode()


def _physical(devices: Mapping[str, str], suffix: str, *, where: str) -> frozenset[str]:
    return frozenset(map(device_lists.physical_name, device_lists.names(devices, suffix, where=where)))


def _facts(
    listed: Iterable[ListedCode], *, unhealthy: frozenset[str], links: frozenset[str], now_s: float
) -> dict[tuple[bool, str], list[CodeFact]]:
    """The codes of each card and of each card's link. A card that is listed without a reason has one fact
    that says so."""
    found: dict[tuple[bool, str], list[CodeFact]] = {}
    for item in listed:
        network = item.family is Family.NETWORK
        fact = CodeFact(
            code=item.code,
            level=item.level,
            family=item.family,
            listed=item.device in (links if network else unhealthy),
            first_seen_s=now_s,
            told_at_s=item.told_at_s,
        )
        found.setdefault((network, item.device), []).append(fact)
    for network, devices in ((False, unhealthy), (True, links)):
        family = Family.NETWORK if network else Family.CHIP
        for device in devices:
            facts = found.setdefault((network, device), [])
            if all(row_of(fact.family, fact.level).placement is Placement.OPEN for fact in facts):
                facts.append(CodeFact("", Level.UNEXPLAINED, family, listed=True, first_seen_s=now_s))
    return found


def acts(fact: CodeFact) -> bool:
    """Whether a code asks for a recovery of what runs on the card, silence windows aside."""
    effect = row_of(fact.family, fact.level).on(Subject.INFERENCE)
    return effect.recovers or (effect is Effect.LISTED and fact.listed)


def _fault(
    node: str, device: str, network: bool, details: list[CodeFact], *, now_s: float, told_by: str
) -> Fault:
    acting = [fact for fact in details if acts(fact)]
    if network:
        cause = Cause.NETWORK_UNHEALTHY
    else:
        listed = any(fact.listed for fact in details)
        cause = Cause.CHIP_UNHEALTHY if acting or listed else Cause.CHIP_FAULT_LISTED
    level = worst(fact.level for fact in acting or details)
    return Fault(
        source=FaultSource.DEVICE,
        cause=cause,
        node=node,
        device=device,
        codes=tuple(dict.fromkeys(fact.code for fact in details if fact.code)),
        level=level if level is not Level.UNEXPLAINED else "",
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=told_by,
        acts=bool(acting),
        details=tuple(details),
    )


def _resetting(node: str, device: str, *, now_s: float, told_by: str) -> Fault:
    return Fault(
        source=FaultSource.DEVICE,
        cause=Cause.CHIP_RESETTING,
        node=node,
        device=device,
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=f"{told_by}: the card is being reset",
        acts=False,
    )


def _acting_first(fault: Fault) -> tuple[bool, str, str]:
    return (not fault.acts, fault.cause, fault.device)
