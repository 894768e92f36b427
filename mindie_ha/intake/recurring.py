"""Codes of cards that come often or last long get the level that the cluster's own rules name.

The rules are those that people wrote into `faultCustomization.json` of `mindx-dl-fault-config`. The shipped
ones are the device plugin's, whose reports show their result already. Occurrences are remembered in the
ledger of the node, since a card that is separated by hand must stay so over our restart: one entry for a code
on a card, no more times than its rule needs. Only what came while somebody held the card counts; the same
code on two cards of one job within half a minute is the program's fault and counts for neither. A code that
stays is one occurrence. Duration rules look at how long the code has been there now. Pure functions.

Source: fault input contract §2.3, §4.5; vectors V27-V29, V90, V91; cases 051, 085.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mindie_ha.intake import device_info
from mindie_ha.intake.recurrences import (
    Occurrence,
    Span,
    frequency_released,
    frequent,
    is_software,
    lasting,
)
from mindie_ha.intake.rules import Rules
from mindie_ha.model.faults import Cause, CodeFact, Fault
from mindie_ha.model.ledgers import MAX_RECURRING, Recurrence
from mindie_ha.model.levels import Family, Level, worst

Place = tuple[str, str]  # card, code


@dataclass(frozen=True, slots=True)
class Appearance:
    """A code on a card of a job, on any node."""

    job: str
    occurrence: Occurrence


def followed(
    known: Iterable[Recurrence],
    faults: Iterable[Fault],
    *,
    rules: Rules,
    held: Mapping[str, str],
    others: Iterable[Appearance] = (),
    now_s: float,
) -> tuple[Recurrence, ...]:
    """What is to be remembered of one node now. `held`: the job (its UID) that holds each card."""
    if not rules.frequency:
        return ()
    before = {(one.device, one.code): one for one in known if one.code in rules.frequency}
    seen = _seen(faults, rules)
    elsewhere = tuple(others)
    found = []
    for place in sorted(before.keys() | seen.keys()):
        entry = before.get(place) or Recurrence(device=place[0], code=place[1], ended_at_s=0.0)
        came_s = seen.get(place)
        if came_s is None:
            entry = entry if entry.ended_at_s is not None else entry.model_copy(update={"ended_at_s": now_s})
        elif entry.ended_at_s is not None and place[0] in held:
            entry = _came(entry, came_s)
        entry = _without_programs(entry, held.get(place[0], ""), elsewhere)
        entry = _judged(entry, rules, now_s=now_s)
        if entry.at_s or entry.level:
            found.append(entry)
    return tuple(sorted(found, key=lambda one: (not one.level, one.device, one.code))[:MAX_RECURRING])


def raised(
    faults: Iterable[Fault], known: Iterable[Recurrence], *, rules: Rules, now_s: float
) -> tuple[Fault, ...]:
    """The faults with the levels that the rules give their codes now."""
    levels = {(one.device, one.code): Level(one.level) for one in known if one.level}
    if not levels and not rules.duration:
        return tuple(faults)
    return tuple(_raised(fault, levels, rules, now_s) for fault in faults)


def _seen(faults: Iterable[Fault], rules: Rules) -> dict[Place, float]:
    return {
        (fault.device, fact.code): fact.first_seen_s
        for fault in faults
        for fact in fault.details
        if fact.family is Family.CHIP and fact.code in rules.frequency
    }


def _came(entry: Recurrence, at_s: float) -> Recurrence:
    kept = entry.at_s if at_s in entry.at_s else (*entry.at_s, at_s)
    return entry.model_copy(update={"at_s": kept, "ended_at_s": None})


def _without_programs(entry: Recurrence, job: str, others: tuple[Appearance, ...]) -> Recurrence:
    if not entry.at_s or not job:
        return entry
    same = [one.occurrence for one in others if one.job == job]
    last = Occurrence(entry.device, entry.code, entry.at_s[-1])
    if not is_software(last, same):
        return entry
    return entry.model_copy(update={"at_s": entry.at_s[:-1]})


def _judged(entry: Recurrence, rules: Rules, *, now_s: float) -> Recurrence:
    rule = rules.frequency[entry.code]
    if entry.level:
        last_s = entry.at_s[-1] if entry.at_s else entry.raised_at_s
        gone = frequency_released(
            rule, last_occurrence_s=last_s, last_recovery_s=entry.ended_at_s, now_s=now_s
        )
        update = {"level": "", "at_s": ()} if gone else {"at_s": entry.at_s[-1:]}
        return entry.model_copy(update=update)
    recent = tuple(at_s for at_s in entry.at_s if now_s - rule.window_s < at_s)[-rule.times :]
    if frequent(rule, recent, now_s=now_s):
        return entry.model_copy(update={"at_s": recent[-1:], "level": rule.level.value, "raised_at_s": now_s})
    return entry if recent == entry.at_s else entry.model_copy(update={"at_s": recent})


def _raised(fault: Fault, levels: Mapping[Place, Level], rules: Rules, now_s: float) -> Fault:
    details = tuple(_fact(fault, fact, levels, rules, now_s) for fact in fault.details)
    if details == fault.details:
        return fault
    acting = [fact for fact in details if device_info.acts(fact)]
    level = worst(fact.level for fact in acting or details)
    return replace(
        fault,
        cause=Cause.CHIP_UNHEALTHY if acting else fault.cause,
        level="" if level is Level.UNEXPLAINED else level,
        evidence=f"{fault.evidence}; raised by a rule of faultCustomization.json",
        acts=bool(acting),
        details=details,
    )


def _fact(
    fault: Fault, fact: CodeFact, levels: Mapping[Place, Level], rules: Rules, now_s: float
) -> CodeFact:
    if fact.family is not Family.CHIP:
        return fact
    told = [fact.level]
    told += [levels[fault.device, fact.code]] if (fault.device, fact.code) in levels else []
    if fact.code in rules.duration:
        level, _ = lasting(rules.duration[fact.code], [Span(fact.first_seen_s)], now_s=now_s)
        told += [level] if level is not None else []
    return replace(fact, level=worst(told))


def raises_at_s(faults: Iterable[Fault], *, rules: Rules, now_s: float) -> float | None:
    """When time alone raises the next level."""
    times = [
        fact.first_seen_s + rules.duration[fact.code].timeout_s + 0.001
        for fault in faults
        for fact in fault.details
        if fact.family is Family.CHIP and fact.code in rules.duration
    ]
    return min((at_s for at_s in times if at_s >= now_s), default=None)
