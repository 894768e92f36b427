"""What a recovery says about its fault: what failed, where, and never a node for a process."""

from __future__ import annotations

import pytest

from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.policy.verdicts import describe

CARD = Fault(
    source=FaultSource.DEVICE,
    cause=Cause.CHIP_UNHEALTHY,
    node="node-1",
    device="Ascend910-3",
    codes=("80E18005",),
    pod="p0-master-0",
)
EXIT = Fault(
    source=FaultSource.POD,
    cause=Cause.POD_FAILED,
    node="node-7",
    pod="d0-worker-0",
    evidence="pod mindie/d0-worker-0 is Failed, exit code 137",
)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(
            CARD, "ChipUnhealthy: Ascend910-3 on node-1 (80E18005) under pod p0-master-0", id="card"
        ),
        pytest.param(
            EXIT, "PodFailed: pod mindie/d0-worker-0 is Failed, exit code 137 (on node-7)", id="process"
        ),
    ],
)
def test_a_fault_in_words_names_what_failed(fault: Fault, words: str) -> None:
    assert describe(fault) == words
