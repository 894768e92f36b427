"""Budgets, back-off, brake and the operator's retries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.model.decisions import GrantRetries
from mindie_ha.model.ledgers import Attempt
from mindie_ha.model.settings import BrakeSettings, BudgetSettings
from mindie_ha.model.views import FleetView
from mindie_ha.policy import brakes, budgets
from tests.policy.worlds import World, service

BUDGETS = BudgetSettings()


def attempts(count: int, *, at_s: float = 1000.0) -> tuple[Attempt, ...]:
    return tuple(Attempt(epoch=1, rung="job", at_s=at_s) for _ in range(count))


def test_the_first_attempt_waits_for_nothing() -> None:
    assert budgets.not_before_s((), seed="x", settings=BUDGETS) == 0.0


@pytest.mark.parametrize(
    ("count", "pause_s"), [(1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (20, 600)], ids=str
)
def test_pauses_double_up_to_a_limit(count: int, pause_s: float) -> None:
    waited_s = budgets.not_before_s(attempts(count), seed="x", settings=BUDGETS) - 1000.0
    assert pause_s * 0.9 <= waited_s <= pause_s * 1.1


@given(st.text(), st.integers(1, 20))
def test_the_jitter_is_the_same_for_the_same_attempt(seed: str, count: int) -> None:
    first = budgets.not_before_s(attempts(count), seed=seed, settings=BUDGETS)
    assert first == budgets.not_before_s(attempts(count), seed=seed, settings=BUDGETS)


@pytest.mark.parametrize(
    ("fleet", "on"),
    [
        pytest.param(FleetView(nodes=4, ready=1, lost_recently=3), False, id="three-are-allowed"),
        pytest.param(FleetView(nodes=4, ready=1, lost_recently=4), True, id="four-of-four"),
        pytest.param(FleetView(nodes=100, ready=70, lost_recently=30), False, id="30-percent"),
        pytest.param(FleetView(nodes=100, ready=69, lost_recently=31), True, id="31-percent"),
        pytest.param(FleetView(nodes=2, ready=0, lost_recently=2), True, id="nothing-ready"),
        pytest.param(FleetView(), True, id="no-nodes-known"),
        pytest.param(
            FleetView(nodes=10, ready=6, lost_recently=4, braked_since_s=400.0),
            False,
            id="lifts-with-most-ready",
        ),
        pytest.param(
            FleetView(nodes=10, ready=5, lost_recently=5, braked_since_s=400.0), True, id="half-is-not-most"
        ),
        pytest.param(FleetView(nodes=10, ready=6, lost_recently=4, braked_since_s=401.0), True, id="not-yet"),
    ],
)
def test_the_brake(fleet: FleetView, on: bool) -> None:
    assert brakes.judge(fleet, settings=BrakeSettings(), now_s=1000.0).on is on


def test_the_brake_remembers_since_when() -> None:
    many = FleetView(nodes=4, ready=0, lost_recently=4, braked_since_s=7.0)
    assert brakes.braked_since_s(many, settings=BrakeSettings(), now_s=9.0) == 7.0
    few = FleetView(nodes=4, ready=4, braked_since_s=7.0)
    assert brakes.braked_since_s(few, settings=BrakeSettings(), now_s=9.0) is None


def with_retries(world: World, times: str = "3") -> World:
    job = world.job("p0")
    job.workload = replace(job.workload, labels={**job.workload.labels, "fault-retry-times": times})
    return world


def test_the_operators_entry_is_written_where_nobody_did() -> None:
    world = with_retries(service())
    world.settle(for_s=31.0)
    assert world.job("p0").retry_times == 3
    writes = world.writes
    world.settle(for_s=60.0)
    assert world.writes == writes == 1


@pytest.mark.parametrize("times", [0, 5])
def test_an_entry_that_stands_is_never_touched(times: int) -> None:
    world = with_retries(service())
    world.job("p0").retry_times = times
    world.settle(for_s=60.0)
    assert world.writes == 0


def test_an_entry_that_is_lost_is_written_again_at_a_pace() -> None:
    world = with_retries(service())
    grants = 0
    for _ in range(100):
        result = world.look(cut=True)
        grants += sum(
            isinstance(action, GrantRetries) for item in result.decisions for action in item.actions
        )
        world.now_s += 1.0
    assert grants in (3, 4)
