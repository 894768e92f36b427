"""What a recovery may cost: retries for software failures, and time between attempts.

`fault-retry-times` pays for software failures only and never grows back. Attempts of the deleting rungs
are spaced: the first at once, then 10 s doubling to 600 s with jitter, counted since the last stable
stretch; after `max_attempts` a person has to look. The jitter is derived from the workload and the
attempt, not drawn, so that the same look at the same state gives the same plan.

Source: design §5.3; rescheduling contract G2-G9.
"""

from __future__ import annotations

import hashlib

from mindie_ha.model.ledgers import MAX_ATTEMPTS_KEPT, Attempt, WorkloadLedger
from mindie_ha.model.settings import BudgetSettings
from mindie_ha.model.workloads import Workload

LABEL_RETRY_TIMES = "fault-retry-times"
JITTER = 0.1


def retries_allowed(workload: Workload) -> int:
    """The label's value; absent, negative or not a number is 0 (as the scheduler reads it)."""
    text = workload.labels.get(LABEL_RETRY_TIMES, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0


def retries_left(workload: Workload, ledger: WorkloadLedger) -> int:
    """How many more software failures may be answered."""
    return max(0, retries_allowed(workload) - ledger.software_retries_spent)


def recent_attempts(ledger: WorkloadLedger, *, settings: BudgetSettings, now_s: float) -> tuple[Attempt, ...]:
    """Attempts since the last stable stretch."""
    stable_since_s = ledger.stable_since_s
    if stable_since_s is not None and now_s - stable_since_s >= settings.stable_s:
        return ()
    return ledger.attempts


def with_attempt(attempts: tuple[Attempt, ...], attempt: Attempt) -> tuple[Attempt, ...]:
    """`attempts` and one more, bounded."""
    return (*attempts, attempt)[-MAX_ATTEMPTS_KEPT:]


def not_before_s(attempts: tuple[Attempt, ...], *, seed: str, settings: BudgetSettings) -> float:
    """Wall time before which the next attempt may not delete; 0 for the first of a stretch."""
    if not attempts:
        return 0.0
    steps = min(len(attempts) - 1, 30)  # 2**30 is far beyond the limit and keeps the number small
    pause_s = min(settings.backoff_max_s, settings.backoff_first_s * 2.0**steps)
    return attempts[-1].at_s + pause_s * _jitter(f"{seed}#{len(attempts)}")


def longest_pause_s(settings: BudgetSettings) -> float:
    """No back-off is longer."""
    return settings.backoff_max_s * (1.0 + JITTER)


def _jitter(seed: str) -> float:
    """A factor between 1 - JITTER and 1 + JITTER."""
    digest = hashlib.sha256(seed.encode()).digest()
    share = int.from_bytes(digest[:4], "big") / 0xFFFFFFFF
    return 1.0 - JITTER + 2.0 * JITTER * share
