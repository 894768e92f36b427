"""The phase table: every phase has an owner, an end, and an exit that leads on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.recoveries import Phase
from mindie_ha.policy import ownership, verdicts
from mindie_ha.policy.ladders import LADDERS
from mindie_ha.policy.looks import Look
from mindie_ha.policy.recovering import MAX_STEPS
from mindie_ha.policy.rungs.phases import TRANSITIONS, Overdue, PhaseRule, deadline_s
from tests.policy.worlds import World, service

ROWS = [pytest.param(phase, rule, id=phase.value) for phase, rule in TRANSITIONS.items()]


@pytest.fixture(scope="module")
def world() -> World:
    world = service()
    world.break_card(world.pods_of("p0")[0])
    world.look()
    return world


@pytest.mark.parametrize(("phase", "rule"), ROWS)
@pytest.mark.parametrize("last_rung", [True, False])
def test_every_phase_has_an_owner_an_end_and_an_exit(
    world: World, phase: Phase, rule: PhaseRule, last_rung: bool
) -> None:
    view = world.view().workloads[0]
    recovery = view.ledger.recovery
    assert recovery is not None
    look = Look(
        view=view,
        claim=ownership.claim(view.workload, view.podgroup, settings=world.settings),
        verdict=verdicts.judge(view),
        settings=world.settings,
        now_s=world.now_s,
    )
    ends_at_s = deadline_s(replace(look, last_rung=last_rung, wider_from_s=12.0), recovery, phase)
    overdue = rule.last_overdue if last_rung else rule.overdue
    assert rule.owner
    assert rule.exits
    if ends_at_s is None or overdue is Overdue.CONDITION:
        assert rule.condition
    else:
        assert ends_at_s > world.now_s


def test_every_exit_is_a_phase_of_the_table_and_every_phase_is_reached() -> None:
    reached = {Phase.ISOLATE}
    waiting = [Phase.ISOLATE]
    while waiting:
        for phase in TRANSITIONS[waiting.pop()].exits:
            if phase is not None and phase not in reached:
                reached.add(phase)
                waiting.append(phase)
    assert reached == set(TRANSITIONS)


def test_the_regular_way_ends_within_the_planners_bound() -> None:
    way = [Phase.ISOLATE]
    while (phase := TRANSITIONS[way[-1]].exits[0]) is not None:
        way.append(phase)
    assert way[-1] is Phase.SETTLE
    assert len(way) < MAX_STEPS


def test_every_ladder_has_rungs_each_of_its_own_name() -> None:
    assert all(len({rung.name for rung in row.rungs}) == len(row.rungs) for row in LADDERS)
    assert all(row.rungs for row in LADDERS)
