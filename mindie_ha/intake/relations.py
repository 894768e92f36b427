"""Network faults that hurt: a link fault alone never deletes, together with its trigger it may.

A rule names a trigger (what a process or card reports when communication fails), the link faults that explain
it, and what is done: `Separate` or `SubHealth` for the cards, or for a switch the nodes, whose links are
faulty. Everything is asked for one job: trigger and links may be on different nodes of it. A link fault
waits for its trigger only so long; when its time is over without one, a switch makes its node sub-healthy and
a card's link is forgotten, except in an A3 job where a CQE error came in that time: that separates the
node. In A3 jobs CQE errors serve for nothing else. Pure functions of what is reported now.

Source: fault input contract §2.7, §4.6; rescheduling contract §5.5; vectors V83-V86.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from mindie_ha.intake import bodies
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Level

MAX_RULES = 1000
MAX_CODES = 64
MAX_LIFETIME_S = 86_400
CQE = frozenset({"8C1F8608", "4C1F8608"})
_LEVELS = {"Separate": Level.SEPARATE, "SubHealth": Level.SUB_HEALTH}
_RULES, _DURATIONS = "relation_rules.json", "relation_durations.json"


@dataclass(frozen=True, slots=True)
class Rule:
    """`trigger` together with all of `links` gives the places of the links `level`."""

    trigger: str
    links: frozenset[str]
    level: Level


@dataclass(frozen=True, slots=True)
class RelationRules:
    """The rules in force; `lifetimes_s`: how long a link fault waits for its trigger."""

    rules: tuple[Rule, ...] = ()
    lifetimes_s: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    @property
    def triggers(self) -> frozenset[str]:
        """Codes that are triggers."""
        return frozenset(rule.trigger for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Seen:
    """A code that is reported now. `device` is empty for a switch; `at_s` is wall time."""

    node: str
    device: str
    code: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Match:
    """What follows for one card, or (`device` empty) for one node, since when, and because of which codes."""

    node: str
    device: str
    level: Level
    at_s: float
    codes: tuple[str, ...]


def shipped() -> RelationRules:
    """The rules that ClusterD ships."""
    return parse(*shipped_texts(), where=_RULES)


def shipped_texts() -> tuple[str, str]:
    """The shipped `relationFaultCustomization.json` and `faultDuration.json`."""
    data = files("mindie_ha.intake").joinpath("data")
    rules, durations = (data.joinpath(name).read_text(encoding="utf-8") for name in (_RULES, _DURATIONS))
    return rules, durations


def parse(rules: str, durations: str, *, where: str) -> RelationRules:
    """Read both files; a bad element is left out and named. Raises InputError where a file is no array."""
    findings: list[str] = []
    found: list[Rule] = []
    for place, item in _items(rules, where=where):
        try:
            found.append(_rule(item, place))
        except InputError as error:
            findings.append(f"{error}; left out")
    lifetimes_s: dict[str, float] = {}
    for place, item in _items(durations, where=f"{where}: durations"):
        try:
            code = _code(item.get("FaultCode"), f"{place}.FaultCode")
            lifetimes_s.setdefault(code, _lifetime_s(item, place))
        except InputError as error:
            findings.append(f"{error}; left out")
    return RelationRules(tuple(found), lifetimes_s, tuple(findings))


def matches(
    seen: Iterable[Seen], rules: RelationRules, *, now_s: float, a3: bool = False
) -> tuple[tuple[Match, ...], float | None]:
    """What the faults of one job mean together, the worst for each place; and when time alone changes it."""
    links, triggers = _sorted(seen, rules)
    found = _by_rules(links, triggers, rules, a3=a3)
    wakes = []
    for link in links:
        ends_at_s = link.at_s + rules.lifetimes_s[link.code]
        if now_s <= ends_at_s:
            wakes.append(ends_at_s)
        elif not any((one.node, one.device) == (link.node, link.device) for one in found):
            found += _too_late(link, triggers, lifetime_s=rules.lifetimes_s[link.code], a3=a3)
    return _worst_of(found), min(wakes, default=None)


def accompanied(link_at_s: float, triggers_at_s: Iterable[float], *, within_s: float) -> bool:
    """Whether a trigger came while the link fault waited for one."""
    return any(link_at_s <= at_s <= link_at_s + within_s for at_s in triggers_at_s)


def _by_rules(
    links: Sequence[Seen], triggers: Sequence[Seen], rules: RelationRules, *, a3: bool
) -> list[Match]:
    found = []
    for rule in rules.rules:
        if a3 and rule.trigger in CQE:
            continue
        for trigger in (one for one in triggers if one.code == rule.trigger):
            waiting = [
                link
                for link in links
                if link.code in rule.links and trigger.at_s - link.at_s <= rules.lifetimes_s[link.code]
            ]
            if {link.code for link in waiting} != rule.links:
                continue
            complete_at_s = max(
                trigger.at_s,
                *(min(link.at_s for link in waiting if link.code == code) for code in rule.links),
            )
            found += [_match(link, rule.level, (rule.trigger, link.code), complete_at_s) for link in waiting]
    return found


def _too_late(link: Seen, triggers: Sequence[Seen], *, lifetime_s: float, a3: bool) -> list[Match]:
    ended_at_s = link.at_s + lifetime_s
    if not link.device:
        return [_match(link, Level.SUB_HEALTH, (link.code,), ended_at_s)]
    errors = [one for one in triggers if one.code in CQE]
    if a3 and accompanied(link.at_s, (one.at_s for one in errors), within_s=lifetime_s):
        return [Match(link.node, "", Level.SEPARATE, ended_at_s, (errors[0].code, link.code))]
    return []


def _match(link: Seen, level: Level, codes: tuple[str, ...], at_s: float) -> Match:
    return Match(link.node, link.device, level, max(at_s, link.at_s), codes)


def _worst_of(found: Iterable[Match]) -> tuple[Match, ...]:
    """One for each place: Separate beats SubHealth, then the earlier one counts."""
    best: dict[tuple[str, str], Match] = {}
    for match in sorted(found, key=lambda one: (-one.level.rank, one.at_s, one.codes)):
        best.setdefault((match.node, match.device), match)
    return tuple(best[place] for place in sorted(best))


def _sorted(seen: Iterable[Seen], rules: RelationRules) -> tuple[list[Seen], list[Seen]]:
    known = list(dict.fromkeys(seen))
    names = rules.triggers
    return (
        [one for one in known if one.code in rules.lifetimes_s],
        [one for one in known if one.code in names],
    )


def _items(text: str, *, where: str) -> list[tuple[str, dict[str, object]]]:
    value = bodies.parse(text, where=where)
    if not isinstance(value, list):
        raise InputError("expected an array", where=where)
    if len(value) > MAX_RULES:
        raise InputError(f"{len(value)} elements are more than {MAX_RULES}", where=where)
    return [(f"{where}[{index}]", one if isinstance(one, dict) else {}) for index, one in enumerate(value)]


def _rule(item: Mapping[str, object], where: str) -> Rule:
    links = item.get("RelationFaults")
    if not isinstance(links, list) or not 0 < len(links) <= MAX_CODES:
        raise InputError(f"RelationFaults must be an array of 1-{MAX_CODES} codes", where=where)
    strategy = item.get("FaultStrategy")
    level = _LEVELS.get(strategy) if isinstance(strategy, str) else None
    if level is None:
        raise InputError(f"FaultStrategy must be one of {', '.join(_LEVELS)}", where=where)
    return Rule(
        trigger=_code(item.get("TriggerFault"), f"{where}.TriggerFault"),
        links=frozenset(_code(link, f"{where}.RelationFaults") for link in links),
        level=level,
    )


def _lifetime_s(item: Mapping[str, object], where: str) -> float:
    value = bodies.as_whole_number(item.get("TimeOutInterval"), where=f"{where}.TimeOutInterval")
    if not 0 <= value <= MAX_LIFETIME_S:
        raise InputError(f"TimeOutInterval must be 0-{MAX_LIFETIME_S}", where=where)
    return float(value)


def _code(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 64:
        raise InputError("expected a fault code", where=where)
    return value.strip().upper()
