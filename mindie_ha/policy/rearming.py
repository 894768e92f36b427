"""A person re-arms a parked workload. Pure.

The park and the attempts since the last stable stretch are forgotten, and with the recovery that parked its
closed rungs are gone already; what is paid for good (`software_retries_spent`) stays paid. The word of the
person is part of the ledger, and its Event is told once by whoever looks next, so that it does not matter
whether the API or a kubeconfig wrote it.
"""

from __future__ import annotations

from mindie_ha.model.decisions import Notice
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import Rearm, WorkloadLedger
from mindie_ha.model.workloads import Workload
from mindie_ha.policy import budgets, persons, records

OWNER_GAVE_UP = "OwnerGaveUp"
BUDGET_SPENT = "BudgetSpent"


def command(workload: ObjectKey) -> str:
    """How a person re-arms a workload."""
    return f"mindie-ha reset {workload}"


def remedy(workload: Workload, *, reason: str) -> str:
    """What a person does about a park: a reset alone does not always help."""
    if workload.failed or reason == OWNER_GAVE_UP:
        return f"delete {workload.kind} {workload.key} and apply it anew: its owner has given up for good"
    again = f"`{command(workload.key)}`"
    if reason == BUDGET_SPENT:
        return f"raise its label {budgets.LABEL_RETRY_TIMES} first, then {again}"
    return again


def word(*, person: str, text: str) -> tuple[str, str]:
    """Who asks and why, as recorded; the reason may be left out. Raises InputError."""
    return persons.named(person), persons.reason(text) if text.strip() else ""


def rearmed(ledger: WorkloadLedger, *, person: str, text: str, now_s: float) -> WorkloadLedger:
    """The ledger without its park; one that is not parked stays as it is. Raises InputError."""
    who, why = word(person=person, text=text)
    if ledger.parked is None:
        return ledger
    said = Rearm(person=who, text=why, reason=ledger.parked.reason, at_s=now_s)
    return records.changed(ledger, parked=None, attempts=(), rearmed=said)


def told(ledger: WorkloadLedger, *, key: ObjectKey) -> tuple[WorkloadLedger, tuple[Notice, ...]]:
    """The ledger in which a person's word is told, and what is to be told now."""
    said = ledger.rearmed
    if said is None or said.told:
        return ledger, ()
    why = f": {said.text}" if said.text else ""
    who = said.person.removeprefix(persons.PERSON)
    message = f"{key}: re-armed by {who}{why}; it was parked ({said.reason})"
    ledger = records.changed(ledger, rearmed=said.model_copy(update={"told": True}))
    return ledger, (Notice("Rearmed", message, key=f"rearmed:{ledger.workload_uid}@{said.at_s:.3f}"),)
