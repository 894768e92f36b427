"""Silence windows: how long a job bears a fault before it is answered.

A job's annotations name codes and levels, each with seconds (`80E01801:30, RestartRequest`). A code's own
window decides alone; levels are asked only for codes that have none. A server without a level annotation is
silent on RestartRequest for 60 s: the service repeats the request itself. When a window ends with the fault
still there, the fault acts as if it had none; a fault that went and came back starts a new window. Public
faults are never silenced by annotation. A job whose programs run collectives again after a link error
(`intake/jobs/links.py`) bears link faults for as long as that takes. A malformed number means the default of
60 s, and is named.

Source: fault input contract §4.4; rescheduling contract §5.1; vectors V87-V89; case 049.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mindie_ha.model.faults import CodeFact
from mindie_ha.model.levels import Family, Level, parse_level
from mindie_ha.model.workloads import Role

CODES = "huawei.com/schedule.filter.faultCode"
LEVELS = "huawei.com/schedule.filter.faultLevel"
DEFAULT_S = 60
MAX_S = 86_400
MAX_ITEMS = 1000
MAX_TEXT = 64 * 1024
LINK_CODES = frozenset({"81078603"})  # L1 link down, also where it is told of the chip

_FULL_WIDTH = {0xFF0C: ",", 0xFF1A: ":"}

# Split at commas, but not at those inside the brackets of a switch code.
_ITEM = re.compile(r"(?:\[[^\[\]]*\]|[^,\[])+|\[")
_NEVER = (
    Family.PUBLIC,
    Family.NETWORK,
    Family.POD_LABEL,
    Family.POD_STATUS,
    Family.NODE_MARK,
    Family.NODE,
    Family.RELATION,
)


@dataclass(frozen=True, slots=True)
class Windows:
    """Seconds of silence by code and by level name as written, and what was wrong with the text."""

    codes: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    link_s: float = 0.0  # how long the programs themselves try to get over a link fault

    def window_s(self, fact: CodeFact) -> float:
        """How long this fault is borne; 0: not at all."""
        return max(self._told_s(fact), self.link_s if is_link(fact) else 0.0)

    def _told_s(self, fact: CodeFact) -> float:
        if fact.family in _NEVER:
            return 0.0
        if fact.code.upper() in self.codes:
            return float(self.codes[fact.code.upper()])
        named = [seconds for name, seconds in self.levels.items() if parse_level(name) is fact.level]
        return float(max(named, default=0)) if fact.level is not Level.UNKNOWN else 0.0

    def until_s(self, fact: CodeFact) -> float:
        """The time from which it is answered, if it is still there."""
        return fact.first_seen_s + self.window_s(fact)


def is_link(fact: CodeFact) -> bool:
    """Whether it says that a link is broken, and not what it leads to."""
    return fact.family in (Family.NETWORK, Family.RELATION) or fact.code.upper() in LINK_CODES


def windows(annotations: Mapping[str, str], *, role: Role, link_s: float = 0.0) -> Windows:
    """The windows of one job."""
    findings: list[str] = []
    codes = parse_items(annotations.get(CODES, ""), where=CODES, findings=findings)
    levels = parse_items(annotations.get(LEVELS, ""), where=LEVELS, findings=findings)
    if not levels and role is Role.SERVER:
        levels = {Level.RESTART_REQUEST.value: DEFAULT_S}
    by_code = {code.upper(): seconds for code, seconds in codes.items()}
    return Windows(by_code, levels, tuple(findings), link_s)


def parse_items(text: str, *, where: str, findings: list[str]) -> dict[str, int]:
    """`item` or `item:seconds`, joined by commas; full-width commas and colons count too."""
    if len(text) > MAX_TEXT:
        findings.append(f"{where}: {len(text)} characters are more than {MAX_TEXT}; ignored")
        return {}
    found: dict[str, int] = {}
    for part in _ITEM.findall(text.translate(_FULL_WIDTH)):
        name, colon, told = (piece.strip() for piece in part.partition(":"))
        if not name:
            continue
        if len(found) >= MAX_ITEMS:
            findings.append(f"{where}: more than {MAX_ITEMS} items; the rest is ignored")
            break
        found[name] = _seconds(told, name, where=where, findings=findings) if colon else DEFAULT_S
    return found


def _seconds(text: str, name: str, *, where: str, findings: list[str]) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= MAX_S:
        return int(text)
    if text:
        told = f"{text[:20]!r} is not 0-{MAX_S} whole seconds"
        findings.append(f"{where}: {name[:60]}: {told}; {DEFAULT_S} is used")
    return DEFAULT_S
