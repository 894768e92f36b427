"""Who may delete when only some may at the same time."""

from __future__ import annotations

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.recoveries import Intent, IntentKind, Phase, Recovery
from mindie_ha.model.views import Turn
from mindie_ha.policy.turns import Crowd, judge, turn_of

INTENT = Intent(kind=IntentKind.FAULT, cause=Cause.CHIP_UNHEALTHY, at_s=1.0, summary="s")


def queued(name: str, at_s: float) -> Turn:
    return Turn(name, at_s, queues=True)


def acting(name: str, until_s: float = 900.0) -> Turn:
    return Turn(name, 1.0, acts_until_s=until_s)


@pytest.mark.parametrize(
    ("limit", "turns", "waits"),
    [
        pytest.param(1, (queued("me", 5.0),), False, id="alone"),
        pytest.param(1, (), True, id="not-recorded-yet"),
        pytest.param(1, (queued("me", 5.0), acting("a")), True, id="full"),
        pytest.param(2, (queued("me", 5.0), acting("a")), False, id="room"),
        pytest.param(1, (queued("me", 5.0), queued("a", 4.0)), True, id="an-older-one-first"),
        pytest.param(1, (queued("me", 5.0), queued("a", 6.0)), False, id="a-younger-one-later"),
        pytest.param(1, (queued("me", 5.0), queued("a", 5.0)), True, id="equal-age-by-name"),
        pytest.param(2, (queued("me", 5.0), queued("a", 4.0), acting("b")), True, id="older-takes-the-last"),
        pytest.param(1, (queued("me", 5.0), acting("a", until_s=100.0)), False, id="overdue-frees-its-place"),
        pytest.param(1, (queued("me", 5.0), Turn("a", 1.0)), False, id="who-waits-for-something-else"),
    ],
)
def test_the_oldest_go_first(limit: int, turns: tuple[Turn, ...], waits: bool) -> None:
    hold = judge((Crowd(limit, turns, "the cluster"),), "me", now_s=100.0)
    assert hold.on is waits
    assert hold.condition in ("", "HeldByLimit")


def test_both_limits_count() -> None:
    mine = queued("me", 5.0)
    crowds = (Crowd(1, (mine,), "mindie/svc"), Crowd(1, (mine, acting("a")), "the cluster"))
    assert "the cluster" in judge(crowds, "me", now_s=1.0).message
    assert not judge((), "me", now_s=1.0).on


@pytest.mark.parametrize(
    ("phase", "condition", "acts", "queues"),
    [
        (Phase.ISOLATE, "", False, False),
        (Phase.BACKOFF, "HeldByLimit", False, True),
        (Phase.BACKOFF, "HeldByPause", False, False),
        (Phase.STOP, "DeletionNotAccepted", True, False),
        (Phase.GONE, "ForcingDeletion", True, False),
        (Phase.PLACE, "", True, False),
        (Phase.PLACE, "WaitingForCapacity", False, False),
        (Phase.SETTLE, "", True, False),
    ],
    ids=str,
)
def test_what_takes_a_place(phase: Phase, condition: str, acts: bool, queues: bool) -> None:
    recovery = Recovery(
        epoch=1,
        intent=INTENT,
        rung="job",
        phase=phase,
        phase_since_s=10.0,
        opened_at_s=5.0,
        condition=condition,
    )
    turn = turn_of("a/b", recovery)
    assert (turn.acts_until_s is not None, turn.queues) == (acts, queues)
    assert turn.acts_until_s in (None, 610.0)
