"""Cut at every step: the rest is the same, whatever had been written and not yet done."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mindie_ha.model.settings import Settings
from tests.policy.worlds import World, service

SETTINGS = Settings.model_validate({"phases": {"settle_s": 5.0}})


def chip(world: World) -> None:
    world.break_card(world.pods_of("p0")[0])


def node(world: World) -> None:
    world.lose_node(world.pods_of("p0")[0].node)
    world.now_s += 15.0


def member(world: World) -> None:
    pod = world.pods_of("p0")[0]
    del world.pods[pod.uid]
    world.turn()


def both(world: World) -> None:
    for name in ("p0", "d0"):
        world.break_card(world.pods_of(name)[0])


def run(trouble: Callable[[World], None], *, cut_at: int | None) -> tuple[World, int]:
    """Let the world recover; the look number `cut_at` dies after writing."""
    world = service(settings=SETTINGS)
    trouble(world)
    looks = 0
    for _ in range(200):
        for _ in range(4):
            world.look(cut=looks == cut_at)
            looks += 1
        world.turn()
        world.now_s += 1.0
        open_ones = [job for job in world.jobs.values() if job.ledger.recovery is not None]
        if world.job("p0").ledger.closed and not open_ones:
            break
    return world, looks


TROUBLES = [chip, node, member, both]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
def test_a_cut_between_writing_and_acting_changes_nothing_of_the_rest(
    trouble: Callable[[World], None],
) -> None:
    whole, _ = run(trouble, cut_at=None)
    expected = [record.phase for record in whole.job("p0").ledger.closed[-1].history]
    for cut_at in range(20):
        world, _ = run(trouble, cut_at=cut_at)
        ledger = world.job("p0").ledger
        assert [record.phase for record in ledger.closed[-1].history] == expected, cut_at
        assert ledger.closed[-1].outcome is whole.job("p0").ledger.closed[-1].outcome
        assert len(ledger.attempts) == 1
        assert {item.uid for item in world.deleted} == {item.uid for item in whole.deleted}
        assert world.groups()[2:] == [[pod.ip for pod in world.pods_of(name)] for name in ("d0", "p0")]
        assert not any(machine.node.taints for machine in world.machines.values() if machine.node.ready)
