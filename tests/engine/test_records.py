"""What a record of a decision says about the recovery that ended with it."""

from __future__ import annotations

from mindie_ha.engine.records import DecisionRecord, Recorder
from mindie_ha.model.decisions import Decision
from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import Epoch, ObjectKey, service_key
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.recoveries import Intent, IntentKind, Outcome
from mindie_ha.policy import records

KEY = ObjectKey("mindie", "p0")
FRESH = WorkloadLedger(workload="AscendJob/mindie/p0", workload_uid="u")
INTENT = Intent(kind=IntentKind.FAULT, cause=Cause.CHIP_UNHEALTHY, at_s=1.0, summary="a card")


def told(ledger: WorkloadLedger) -> DecisionRecord:
    heard: list[DecisionRecord] = []
    recorder = Recorder(listeners=[heard.append])
    decision = Decision(KEY, ledger, "parked", "park", outcome=Outcome.PARKED)
    recorder.workload(service_key("mindie", "svc"), decision, role="server", at_s=9.0)
    return heard[0]


def test_a_recovery_that_ends_in_a_park_counts_as_closed() -> None:
    recovery = records.opened(epoch=Epoch(1), intent=INTENT, rung="job", now_s=1.0)
    open_one = FRESH.model_copy(update={"recovery": recovery, "epoch": 1})
    closed = told(records.parked(open_one, reason="LadderSpent", message="m", now_s=9.0)).closed
    assert closed is not None
    assert (closed.outcome, closed.closed_at_s) == (Outcome.PARKED, 9.0)


def test_a_park_without_an_open_recovery_ends_none() -> None:
    assert told(records.parked(FRESH, reason="OwnerGaveUp", message="m", now_s=9.0)).closed is None
    recovery = records.opened(epoch=Epoch(1), intent=INTENT, rung="job", now_s=1.0)
    once = records.parked(
        FRESH.model_copy(update={"recovery": recovery}), reason="LadderSpent", message="m", now_s=2.0
    )
    armed_again = once.model_copy(update={"parked": None})
    assert told(records.parked(armed_again, reason="BudgetSpent", message="m", now_s=9.0)).closed is None
