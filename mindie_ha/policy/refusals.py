"""When no further attempt is made: the retries are paid, or too many attempts stand since all was well.

A refusal is a reason to park. A program that fails where the label allows no retry at all is not even that:
it is shown, and nothing follows. Source: design §5.3; rescheduling contract G2-G9.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.decisions import Notice
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.policy import budgets, rearming
from mindie_ha.policy.looks import Look
from mindie_ha.policy.verdicts import Verdict, describe


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no further attempt is made: a reason to park."""

    reason: str
    message: str


def is_unpaid(look: Look, verdict: Verdict) -> bool:
    """Whether programs failed for which the label allows no retry at all."""
    return verdict.software and budgets.retries_allowed(look.workload) == 0


def refuse(look: Look, ledger: WorkloadLedger, verdict: Verdict) -> Refusal | None:
    """Whether an attempt that answers `verdict` is beyond its limits."""
    allowed = budgets.retries_allowed(look.workload)
    if verdict.software and budgets.retries_left(look.workload, ledger) == 0:
        worst = describe(verdict.acting[0])
        spent = f"all {allowed} retries" if allowed else "no retry"
        label = budgets.LABEL_RETRY_TIMES
        return Refusal(rearming.BUDGET_SPENT, f"{worst}: label {label} allows no more ({spent} in total)")
    limit = look.settings.budgets.max_attempts
    if len(ledger.attempts) >= limit:
        message = f"{limit} attempts without {look.settings.budgets.stable_s:g} stable seconds between"
        return Refusal("LadderSpent", message)
    return None


def not_paid(look: Look, verdict: Verdict) -> Notice:
    """What to tell of a failure that is shown only."""
    worst = describe(verdict.acting[0])
    message = f"{look.workload.key}: {worst}: not acted on, label {budgets.LABEL_RETRY_TIMES} is absent or 0"
    key = f"not-paid:{look.workload.uid}"
    return Notice("SoftwareFaultNotPaid", message, warning=True, key=key)
