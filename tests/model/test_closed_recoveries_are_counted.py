"""The count of closed recoveries goes on where the ledger keeps only the newest few of them."""

from __future__ import annotations

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.ledgers import MAX_CLOSED, WorkloadLedger
from mindie_ha.model.recoveries import Intent, IntentKind
from mindie_ha.policy.records import opened

INTENT = Intent(kind=IntentKind.FAULT, cause=Cause.POD_FAILED, at_s=0.0, summary="PodFailed")


@pytest.mark.parametrize(
    ("epoch", "is_open", "closed"),
    [
        pytest.param(0, False, 0, id="none"),
        pytest.param(1, True, 0, id="first-open"),
        pytest.param(MAX_CLOSED + 32, False, MAX_CLOSED + 32, id="many"),
        pytest.param(MAX_CLOSED + 32, True, MAX_CLOSED + 31, id="many-and-one-open"),
    ],
)
def test_every_closed_recovery_counts(epoch: int, is_open: bool, closed: int) -> None:
    recovery = opened(epoch=epoch, intent=INTENT, rung="job", now_s=1.0) if is_open else None
    ledger = WorkloadLedger(workload="AscendJob/a/b", workload_uid="u", epoch=epoch, recovery=recovery)
    assert ledger.recoveries_closed == closed
