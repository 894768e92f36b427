"""How long a broken link is borne: what the containers and the annotation say of link recovery."""

from __future__ import annotations

import pytest

from mindie_ha.intake.jobs.links import OpRetry, op_retry_of, read_op_retry


@pytest.mark.parametrize(
    ("text", "whole_s"),
    [
        ("MaxCnt:3, HoldTime:5000, IntervalTime:1000", 8.0),
        ("MaxCnt:10,HoldTime:60000,IntervalTime:60000", 660.0),
        ("HoldTime:0", 3.0),
    ],
)
def test_the_parameters_say_how_long_it_takes(text: str, whole_s: float) -> None:
    found = read_op_retry(text)
    assert found is not None
    assert found.whole_s == whole_s


@pytest.mark.parametrize(
    "text",
    ["", "MaxCnt:three", "MaxCnt:3,MaxCnt:3", "MaxCnt:999999999", "HoldTime:60001", "IntervalTime:999999999"],
)
def test_what_nobody_takes_makes_no_fault_wait_for_ever(text: str) -> None:
    assert read_op_retry(text) is None
    enabled = {"HCCL_OP_RETRY_ENABLE": "L1:1", "HCCL_OP_RETRY_PARAMS": text}
    assert op_retry_of([enabled.get], {}) == OpRetry()
