"""Frequency and duration rules, evaluated over what happened: pure functions of (events, now).

Nothing is remembered here: the caller keeps the times of occurrences and recoveries of one code on one card,
bounded by the longest window. Source: fault input contract §2.3, §4.5; vectors V27-V29, V90, V91; case 051.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mindie_ha.intake.rules import Duration, Frequency
from mindie_ha.model.levels import Level

SOFTWARE_WINDOW_S = 30.0


@dataclass(frozen=True, slots=True)
class Span:
    """One occurrence of a code on a card; `end_s` None: it lasts."""

    start_s: float
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A code that appeared on a card of a job."""

    device: str  # "<node>/<card>"
    code: str
    at_s: float


def frequent(rule: Frequency, occurrences: Sequence[float], *, now_s: float) -> bool:
    """Whether the code came `rule.times` times within the window that ends now."""
    recent = [at_s for at_s in occurrences if now_s - rule.window_s < at_s <= now_s]
    return len(recent) >= rule.times


def frequency_released(
    rule: Frequency, *, last_occurrence_s: float, last_recovery_s: float | None, now_s: float
) -> bool:
    """Whether a raised level falls by itself: the code stayed away for longer than `release_after_s`."""
    if rule.release_after_s is None or last_recovery_s is None or last_recovery_s < last_occurrence_s:
        return False
    return now_s - last_recovery_s > rule.release_after_s


def lasting(rule: Duration, spans: Iterable[Span], *, now_s: float) -> tuple[Level | None, float | None]:
    """The level that the duration rule gives now (None: none), and when that changes if nothing happens.

    Both limits are strict: a fault of exactly `timeout_s` is not yet raised, a pause of exactly `recover_s`
    does not yet end it.
    """
    raised = False
    clean_since_s: float | None = None
    for span in sorted(spans, key=lambda one: one.start_s):
        if span.start_s > now_s:
            break
        if raised and clean_since_s is not None and span.start_s - clean_since_s > rule.recover_s:
            raised = False
        end_s = now_s if span.end_s is None else min(span.end_s, now_s)
        raised = raised or end_s - span.start_s > rule.timeout_s
        clean_since_s = None if span.end_s is None or span.end_s > now_s else end_s
        if clean_since_s is None:
            return (rule.level, None) if raised else (None, span.start_s + rule.timeout_s)
    if not raised or clean_since_s is None:
        return None, None
    if now_s - clean_since_s > rule.recover_s:
        return None, None
    return rule.level, clean_since_s + rule.recover_s


def is_software(occurrence: Occurrence, others: Iterable[Occurrence]) -> bool:
    """Whether the same code on two cards of one job says that the program, not a card, is at fault."""
    return any(
        other.code == occurrence.code
        and other.device != occurrence.device
        and abs(other.at_s - occurrence.at_s) <= SOFTWARE_WINDOW_S
        for other in others
    )
