"""What a reset forgets, and what it does not."""

from __future__ import annotations

import pytest

from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import Attempt, Park, WorkloadLedger
from mindie_ha.policy import rearming

PARKED = WorkloadLedger(
    workload="AscendJob/mindie/p0",
    workload_uid="u",
    epoch=4,
    software_retries_spent=2,
    attempts=(Attempt(epoch=4, rung="job", at_s=1.0),),
    parked=Park(reason="LadderSpent", message="10 attempts", at_s=5.0),
)


def test_park_and_attempts_go_and_what_is_paid_stays() -> None:
    after = rearming.rearmed(PARKED, person="ann", text=" swapped ", now_s=9.0)
    assert (after.parked, after.attempts) == (None, ())
    assert (after.epoch, after.software_retries_spent) == (4, 2)
    assert after.rearmed is not None
    assert (after.rearmed.person, after.rearmed.text, after.rearmed.reason) == (
        "person:ann",
        "swapped",
        "LadderSpent",
    )


def test_twice_is_once() -> None:
    once = rearming.rearmed(PARKED, person="ann", text="", now_s=9.0)
    assert rearming.rearmed(once, person="bob", text="", now_s=10.0) is once


@pytest.mark.parametrize(
    ("person", "text"), [("a b", ""), ("", ""), ("ann", "two\nlines"), ("ann", "x" * 201)]
)
def test_what_cannot_be_recorded_is_refused(person: str, text: str) -> None:
    with pytest.raises(InputError):
        rearming.rearmed(PARKED, person=person, text=text, now_s=9.0)


def test_the_word_is_told_once() -> None:
    after = rearming.rearmed(PARKED, person="ann", text="", now_s=9.0)
    told, notices = rearming.told(after, key=ObjectKey("mindie", "p0"))
    assert [notice.message for notice in notices] == [
        "mindie/p0: re-armed by ann; it was parked (LadderSpent)"
    ]
    assert rearming.told(told, key=ObjectKey("mindie", "p0")) == (told, ())
