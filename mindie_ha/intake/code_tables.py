"""Which fault code has which level: the shipped tables, and what a cluster changed in them.

Writers usually tell the level of each code; the tables answer where they do not (older device plugins) and
say what a code means by default. A user's table replaces the shipped one whole, as in the writers. One that
cannot be read raises `InputError` and the caller keeps the last good one; a blemish inside a readable table
(a code in two groups, a malformed entry) is a finding, reported once, and hurts only itself.

Source: fault input contract §2.2, §2.4, §2.5; case 035; vectors V22-V26, V30, V33-V38, V45-V47.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from mindie_ha.intake import bodies
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Level, worst

MAX_CODES = 20_000
_CHIP_CODE = re.compile(r"[0-9A-F]{1,16}\Z")
_NODE_CODE = re.compile(r"[0-9A-Z]{8}\Z")
_SWITCH_CODE = re.compile(r"\[[^,\[\]\s]+(,[^,\[\]\s]+){3}\]\Z")
MAX_SWITCH_CODE = 50

_CHIP_GROUPS = {
    "NotHandleFaultCodes": Level.NOT_HANDLE,
    "SubHealthFaultCodes": Level.SUB_HEALTH,
    "RestartRequestCodes": Level.RESTART_REQUEST,
    "RestartBusinessCodes": Level.RESTART_BUSINESS,
    "FreeRestartNPUCodes": Level.FREE_RESTART,
    "RestartNPUCodes": Level.RESTART_NPU,
    "PreSeparateNPUCodes": Level.PRE_SEPARATE,
    "SeparateNPUCodes": Level.SEPARATE,
}
_NETWORK_GROUPS = {
    "NotHandleFaultNetworkCodes": Level.NOT_HANDLE,
    "SubHealthFaultNetworkCodes": Level.SUB_HEALTH,
    "PreSeparateNPUNetworkCodes": Level.PRE_SEPARATE,
    "SeparateNPUNetworkCodes": Level.SEPARATE,
}
_SWITCH_GROUPS = {
    "NotHandleFaultCodes": Level.NOT_HANDLE,
    "SubHealthFaultCodes": Level.SUB_HEALTH,
    "RestartRequestFaultCodes": Level.RESTART_REQUEST,
    "PreSeparateFaultCodes": Level.PRE_SEPARATE,
    "ResetFaultCodes": Level.SEPARATE,
    "SeparateFaultCodes": Level.SEPARATE,
}
_NODE_GROUPS = {
    "NotHandleFaultCodes": Level.NOT_HANDLE,
    "PreSeparateFaultCodes": Level.PRE_SEPARATE,
    "SeparateFaultCodes": Level.SEPARATE,
}
_LINK_LEVELS = (Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE, Level.SEPARATE)


@dataclass(frozen=True, slots=True)
class ChipCodes:
    """Levels of chip codes, and of the codes that concern a chip's link."""

    chip: Mapping[str, Level] = field(default_factory=dict)
    network: Mapping[str, Level] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    def level(self, code: str) -> Level:
        """The level of a chip code; UNKNOWN if it is in no group."""
        return self.chip.get(code.upper(), Level.UNKNOWN)

    def network_level(self, code: str) -> Level:
        """The level of a link code: a restart cannot mend a link, an unknown one keeps new work away."""
        code = code.upper()
        level = self.network.get(code) or self.chip.get(code)
        if level is None:
            return Level.PRE_SEPARATE
        return level if level in _LINK_LEVELS else Level.NOT_HANDLE

    def judge(self, codes: Iterable[str], *, network: bool = False) -> Level:
        """The level of a chip with these codes, as the device plugin decides where no severity is recorded:
        codes in no group count as SeparateNPU, but only if none of the codes is known."""
        listed = tuple(codes)
        if network:
            return worst(self.network_level(code) for code in listed)
        known = [level for code in listed if (level := self.level(code)) is not Level.UNKNOWN]
        return worst(known) if known or not listed else Level.SEPARATE


@dataclass(frozen=True, slots=True)
class SwitchCodes:
    """Levels of assembled switch codes."""

    levels: Mapping[str, Level] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    def level(self, code: str) -> Level:
        """The level of a code like `[0x08520003,na,cpu,na]`; UNKNOWN if it is in no group."""
        return self.levels.get(code, Level.UNKNOWN)


@dataclass(frozen=True, slots=True)
class NodeCodes:
    """Levels of board codes."""

    levels: Mapping[str, Level] = field(default_factory=dict)

    def level(self, code: str) -> Level:
        """The level of an eight-character code; UNKNOWN if NodeD would not report it."""
        return self.levels.get(code.upper(), Level.UNKNOWN)


@dataclass(frozen=True, slots=True)
class CodeTables:
    """All three tables as they are in force."""

    chip: ChipCodes = field(default_factory=ChipCodes)
    switch: SwitchCodes = field(default_factory=SwitchCodes)
    node: NodeCodes = field(default_factory=NodeCodes)


def assembled(alarm: int, fault: int | None, peer: int | None) -> str:
    """A switch code in its written form; None stands for "not applicable"."""
    peers = {0: "cpu", 1: "npu", 2: "L2"}
    named = "na" if peer is None else peers.get(peer, "na")
    return f"[0x{alarm:08x},{'na' if fault is None else fault},{named},na]"


@cache
def defaults() -> CodeTables:
    """The tables as the writers ship them."""
    data = files("mindie_ha.intake").joinpath("data")

    def text(name: str) -> str:
        return data.joinpath(name).read_text(encoding="utf-8")

    return CodeTables(
        chip=parse_chip(text("chip_codes.json"), where="chip_codes.json"),
        switch=parse_switch(text("switch_codes.json"), where="switch_codes.json"),
        node=parse_node(text("node_codes.json"), where="node_codes.json"),
    )


def default_rules() -> str:
    """The shipped `faultCustomization.json`."""
    return files("mindie_ha.intake").joinpath("data", "chip_rules.json").read_text(encoding="utf-8")


def parse_chip(text: str, *, where: str) -> ChipCodes:
    """`faultCode.json`. Of a code in two groups the worse level counts."""
    root = bodies.parse_object(text, where=where)
    _some_group(root, {**_CHIP_GROUPS, **_NETWORK_GROUPS}, where=where)
    findings: list[str] = []
    chip = _worst_of(root, _CHIP_GROUPS, _CHIP_CODE, findings, where=where)
    network = _worst_of(root, _NETWORK_GROUPS, _CHIP_CODE, findings, where=where)
    return ChipCodes(MappingProxyType(chip), MappingProxyType(network), tuple(findings))


def parse_switch(text: str, *, where: str) -> SwitchCodes:
    """`SwitchFaultCode.json`. Malformed codes are left out and named."""
    root = bodies.parse_object(text, where=where)
    _some_group(root, _SWITCH_GROUPS, where=where)
    findings: list[str] = []
    levels = _worst_of(root, _SWITCH_GROUPS, _SWITCH_CODE, findings, where=where, upper=False)
    return SwitchCodes(MappingProxyType(levels), tuple(findings))


def parse_node(text: str, *, where: str) -> NodeCodes:
    """`NodeDConfiguration.json`. As in NodeD any malformed or repeated code refuses the whole table."""
    root = bodies.parse_object(text, where=where)
    groups = bodies.as_object(root.get("FaultTypeCode"), where=f"{where}.FaultTypeCode")
    _some_group(groups, _NODE_GROUPS, where=where)
    levels: dict[str, Level] = {}
    for name, level in _NODE_GROUPS.items():
        for code in _codes(groups, name, where=where):
            shown = code.upper()
            if not _NODE_CODE.match(shown):
                raise InputError(f"{code[:32]!r} is not a code of 8 characters", where=f"{where}.{name}")
            if shown in levels:
                raise InputError(f"{shown} stands twice", where=where, advice="list each code once")
            levels[shown] = level
    return NodeCodes(MappingProxyType(levels))


def _worst_of(
    root: Mapping[str, object],
    groups: Mapping[str, Level],
    form: re.Pattern[str],
    findings: list[str],
    *,
    where: str,
    upper: bool = True,
) -> dict[str, Level]:
    levels: dict[str, Level] = {}
    for name, level in groups.items():
        for text in _codes(root, name, where=where):
            code = text.strip().upper() if upper else text.strip()
            if not form.match(code) or len(code) > MAX_SWITCH_CODE:
                findings.append(f"{where}.{name}: {text[:60]!r} is no code; left out")
                continue
            if code in levels:
                findings.append(f"{where}: {code} stands twice; the worse level counts")
            levels[code] = worst((levels.get(code, level), level))
    return levels


def _codes(root: Mapping[str, object], name: str, *, where: str) -> list[str]:
    value = root.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise InputError("expected an array of strings", where=f"{where}.{name}")
    if len(value) > MAX_CODES:
        raise InputError(f"{len(value)} codes are more than {MAX_CODES}", where=f"{where}.{name}")
    return value


def _some_group(root: Mapping[str, object], groups: Mapping[str, Level], *, where: str) -> None:
    if not root.keys() & groups.keys():
        names = ", ".join(list(groups)[:3])
        raise InputError("none of its groups is known", where=where, advice=f"expected e.g. {names}")
