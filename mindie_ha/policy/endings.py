"""How a recovery ends: closed with an outcome, or parked for a person.

Both are one record and one thing told. Nothing is parked while a mark of ours still keeps new pods off a bad
card: the mark goes first, so that no isolation is left behind without anybody who would take it back.
"""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.model.decisions import Decision, Notice
from mindie_ha.model.recoveries import Outcome, Recovery
from mindie_ha.policy import manners, obligations, rearming, records
from mindie_ha.policy.looks import Look, say


def park(look: Look, *, reason: str, message: str) -> Decision:
    """Stop, say so loudly, and wait for a person; but not while a mark of ours is still needed."""
    recovery = look.view.ledger.recovery
    blocking = obligations.blocking(look, recovery) if recovery is not None else ()
    if blocking:
        sentence = f"will park ({reason}) when {blocking[0].ref} is no longer needed"
        wake_at_s = look.now_s + look.settings.phases.list_lag_s
        waits = say(look, rule="park", sentence=sentence, wake_at_s=wake_at_s, outcome=Outcome.WAITING)
        return replace(waits, actions=manners.taken_back(look, recovery, at_once=True))
    remedy = rearming.remedy(look.workload, reason=reason)
    text = f"{message}. Nothing more is done until a person acts: {remedy}"
    ledger = records.parked(look.view.ledger, reason=reason, message=message, now_s=look.now_s)
    notice = Notice(
        reason, f"{look.workload.key}: {text}", warning=True, key=f"park:{look.workload.uid}#{ledger.epoch}"
    )
    return Decision(
        workload=look.workload.key,
        ledger=ledger,
        sentence=f"parked ({reason}): {text}",
        rule="park",
        notices=(notice,),
        outcome=Outcome.PARKED,
    )


def close(look: Look, recovery: Recovery, outcome: Outcome, summary: str) -> Decision:
    """End the open recovery; who belongs to the workload is counted anew."""
    ledger = records.closed(
        look.view.ledger,
        recovery,
        outcome=outcome,
        summary=summary,
        members=records.members_of(look.alive) if look.complete else (),
        now_s=look.now_s,
    )
    took_s = look.now_s - recovery.opened_at_s
    sentence = f"recovery {recovery.epoch} closed as {outcome} after {took_s:.1f} s: {summary}"
    key = f"closed:{look.workload.uid}#{recovery.epoch}"
    return Decision(
        workload=look.workload.key,
        ledger=ledger,
        sentence=sentence,
        rule="close",
        notices=(Notice("RecoveryClosed", f"{look.workload.key}: {sentence}", key=key),),
        outcome=outcome,
    )
