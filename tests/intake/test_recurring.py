"""A cluster's own frequency and duration rules: what is remembered, and which level a code gets."""

from __future__ import annotations

import json

import pytest

from mindie_ha.intake import recurring
from mindie_ha.intake.recurrences import Occurrence
from mindie_ha.intake.recurring import Appearance
from mindie_ha.intake.rules import Rules, parse
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.ledgers import NodeLedger, Recurrence
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.nodes import DeviceReport, Node
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.policy import isolating
from mindie_ha.policy.isolations import plan_node

CARD, CODE = "Ascend910-3", "80C98000"
HOUR_S = 3600.0
HELD = {CARD: "job"}


def rules(*, times: int = 2, level: str = "ManuallySeparateNPU", release_s: int = 0) -> Rules:
    frequency = {
        "EventId": [CODE],
        "TimeWindow": 86_400,
        "Times": times,
        "FaultHandling": level,
        "ReleaseTimeWindow": release_s,
    }
    duration = {
        "EventId": ["80E18005"],
        "FaultTimeout": 20,
        "RecoverTimeout": 60,
        "FaultHandling": "SeparateNPU",
    }
    return parse(json.dumps({"FaultFrequency": [frequency], "FaultDuration": [duration]}), where="test")


def fault(at_s: float, *, code: str = CODE, level: Level = Level.NOT_HANDLE) -> Fault:
    fact = CodeFact(code, level, Family.CHIP, first_seen_s=at_s)
    return Fault(
        FaultSource.DEVICE, Cause.CHIP_FAULT_LISTED, node="n0", device=CARD, acts=False, details=(fact,)
    )


def played(
    *came_s: float,
    own: Rules | None = None,
    held: dict[str, str] | None = None,
    others: tuple[Appearance, ...] = (),
) -> tuple[Recurrence, ...]:
    """The memory after a code came at these times, each time for a minute."""
    known: tuple[Recurrence, ...] = ()
    used = own or rules()
    holders = HELD if held is None else held
    for at_s in came_s:
        for faults, now_s in (((fault(at_s),), at_s), ((), at_s + 60)):
            known = recurring.followed(known, faults, rules=used, held=holders, others=others, now_s=now_s)
    return known


@pytest.mark.parametrize(
    ("came_s", "own", "held", "level"),
    [
        pytest.param((0.0,), rules(), None, "", id="once"),
        pytest.param((0.0, HOUR_S), rules(), None, "ManuallySeparateNPU", id="V27-twice"),
        pytest.param((0.0, 25 * HOUR_S), rules(), None, "", id="V90-the-first-is-out-of-the-window"),
        pytest.param((0.0, HOUR_S), rules(times=3), None, "", id="V27-two-of-three"),
        pytest.param((0.0, HOUR_S), rules(), {}, "", id="051-nobody-held-the-card"),
        pytest.param((0.0, HOUR_S), Rules({}, {}), None, "", id="no-rule"),
    ],
)
def test_a_code_that_comes_often_is_raised(
    came_s: tuple[float, ...], own: Rules, held: dict[str, str] | None, level: str
) -> None:
    found = played(*came_s, own=own, held=held)
    assert [one.level for one in found if one.level] == ([level] if level else [])


def test_a_code_that_stays_is_one_occurrence_also_over_a_restart() -> None:
    known = recurring.followed((), [fault(0.0)], rules=rules(), held=HELD, now_s=0.0)
    again = recurring.followed(known, [fault(500.0)], rules=rules(), held=HELD, now_s=500.0)
    assert again == known, "after a restart the first sight is a later one"


@pytest.mark.parametrize(
    ("apart_s", "level"), [(30.0, ""), (31.0, "ManuallySeparateNPU")], ids=["V91", "31-s"]
)
def test_the_same_code_on_two_cards_of_a_job_does_not_count(apart_s: float, level: str) -> None:
    other = Appearance("job", Occurrence("n1/Ascend910-0", CODE, HOUR_S + apart_s))
    found = played(0.0, HOUR_S, others=(other,))
    assert [one.level for one in found] == [level]
    stranger = Appearance("another", other.occurrence)
    assert played(0.0, HOUR_S, others=(stranger,))[0].level


def test_a_raised_level_falls_after_a_clean_time_where_the_rule_says_so() -> None:
    own = rules(level="SeparateNPU", release_s=600)
    known = played(0.0, HOUR_S, own=own)
    assert known[0].level == "SeparateNPU"
    assert recurring.followed(known, (), rules=own, held=HELD, now_s=HOUR_S + 660) == known
    assert recurring.followed(known, (), rules=own, held=HELD, now_s=HOUR_S + 661) == ()


def test_a_raised_code_acts() -> None:
    known = played(0.0, HOUR_S)
    (found,) = recurring.raised([fault(HOUR_S)], known, rules=rules(), now_s=HOUR_S)
    assert (found.acts, found.cause, found.level) == (True, Cause.CHIP_UNHEALTHY, "ManuallySeparateNPU")
    assert recurring.raised([fault(0.0)], (), rules=rules(), now_s=0.0) == (fault(0.0),)


@pytest.mark.parametrize(("age_s", "acts"), [(20.0, False), (20.1, True)], ids=["V28-20-s", "V28-longer"])
def test_a_code_that_lasts_is_raised(age_s: float, acts: bool) -> None:
    lasts = fault(100.0, code="80E18005")
    (found,) = recurring.raised([lasts], (), rules=rules(), now_s=100.0 + age_s)
    assert found.acts is acts
    assert recurring.raises_at_s([lasts], rules=rules(), now_s=100.0) == pytest.approx(120.001)


def test_the_card_is_isolated_until_a_person_releases_it_and_counts_anew() -> None:
    view = NodeView(Node("n0", uid="u"), report=DeviceReport("n0"), recurring=played(0.0, HOUR_S))
    decided = plan_node(view, wanted=frozenset(), settings=Settings(), now_s=2 * HOUR_S)
    assert (decided.changed, decided.tainted) == (True, True)
    assert [(one.id, one.until) for one in decided.ledger.isolations] == [(f"Repeated:{CARD}", "released")]
    assert [notice.reason for notice in decided.notices] == ["IsolationManual"]
    stored = NodeLedger.model_validate_json(decided.ledger.model_dump_json())
    freed = isolating.released(stored, f"Repeated:{CARD}", person="ann", now_s=3 * HOUR_S)
    assert freed.recurring == ()
    again = NodeView(Node("n0", uid="u"), report=DeviceReport("n0"), recurring=(), ledger=freed)
    assert plan_node(again, wanted=frozenset(), settings=Settings(), now_s=3 * HOUR_S).ledger.isolations == ()


def test_counting_alone_is_remembered_and_taints_nothing() -> None:
    view = NodeView(Node("n0", uid="u"), report=DeviceReport("n0"), recurring=played(0.0))
    decided = plan_node(view, wanted=frozenset(), settings=Settings(), now_s=HOUR_S)
    assert (decided.changed, decided.tainted, decided.ledger.recurring) == (True, False, view.recurring)
