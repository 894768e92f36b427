"""What a process that has just started knows only from the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.decisions import Action, TellExit
from mindie_ha.model.levels import Level
from mindie_ha.model.recoveries import Phase
from tests.policy.gangs import JOB, Gang, gang


def restarted(world: Gang) -> None:
    """Another process sees every NotReady node for the first time."""
    for machine in world.machines.values():
        if not machine.node.ready:
            machine.node = replace(machine.node, not_ready_since_s=world.now_s)


def test_a_node_that_is_still_lost_has_not_come_back_because_its_patience_runs_again() -> None:
    world = gang()
    world.lose_node(world.node(1))
    world.now_s += 15.0
    world.look(cut=True)
    assert world.phase_of(JOB) is Phase.ISOLATE
    restarted(world)
    world.settle(for_s=3.0)
    assert world.old == {"0", "1"}
    assert world.job(JOB).ledger.epoch == 1


def test_a_node_that_did_come_back_is_left_alone() -> None:
    world = gang()
    lost = world.node(1)
    world.lose_node(lost)
    world.now_s += 15.0
    world.look(cut=True)
    world.heal_node(lost)
    world.settle(for_s=3.0)
    assert not world.deleted
    assert world.closed(JOB)


class Mute(Gang):
    """A cluster that refuses to write the word."""

    def _act(self, action: Action) -> None:
        if isinstance(action, TellExit):
            self.told.append(action)
        else:
            super()._act(action)


@pytest.mark.parametrize("away_s", [1.0, 20.0], ids=["at-once", "after-its-time"])
def test_a_word_that_was_recorded_and_not_written_is_written_by_whoever_comes_next(away_s: float) -> None:
    world = gang(labels={"subHealthyStrategy": "graceExit"})
    world.card(1, Level.SUB_HEALTH)
    while world.phase_of(JOB) is not Phase.STOP:
        world.look(cut=True)
        world.now_s += 1.0
    assert not world.told
    world.now_s += away_s
    world.look()
    assert [one.ending for one in world.told] == [True]
    assert not world.deleted
    world.settle(for_s=60.0, until=lambda: len(world.told) == 2)
    assert [one.ending for one in world.told] == [True, False]


def test_a_word_that_nobody_can_write_holds_the_deletion_up_for_five_seconds() -> None:
    world = gang(labels={"subHealthyStrategy": "graceExit"}, kind=Mute)
    world.card(1, Level.SUB_HEALTH)
    world.look()
    world.settle(for_s=4.0)
    assert not world.deleted
    world.settle(for_s=4.0)
    assert len(world.deleted) == 2
    assert {item.grace_s for item in world.deleted} == {None}
