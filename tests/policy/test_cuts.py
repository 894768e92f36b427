"""Cut at every step: the rest is the same, whatever had been written and not yet done."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mindie_ha.model.settings import Settings
from tests.policy.pairs import pair, spares_the_last
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


def failover(*, cut_at: int | None, pins: dict[str, frozenset[str]], both: bool) -> tuple[World, set[str]]:
    """The node under the first Coordinator is lost, or under both; the look `cut_at` dies after writing."""
    world = pair(settings=SETTINGS)
    world.pins = pins
    for pod in world.pods_of("ms-coordinator"):
        del world.pods[pod.uid]
    world.settle(for_s=10.0)
    world.deleted.clear()
    world.judges.append(lambda plan: spares_the_last(world, plan))
    old = world.pods_of("ms-coordinator")
    for pod in old if both else old[:1]:
        world.lose_node(pod.node)
    world.now_s += 15.0
    looks = 0
    while not world.closed("ms-coordinator") and looks < 800:
        for _ in range(4):
            world.look(cut=looks == cut_at)
            looks += 1
        world.turn()
        world.now_s += 1.0
    return world, {item.uid for item in world.deleted if item.key.name.startswith("ms-coordinator")}


FAILOVERS = [
    pytest.param("", "", False, ("pod",), id="pod"),
    pytest.param("n3 n4", "n4 n5", False, ("pod", "job"), id="pod-then-job"),
    pytest.param("", "", True, ("job",), id="both-at-once"),
]


@pytest.mark.parametrize(("first", "second", "both", "rungs"), FAILOVERS)
def test_a_cut_during_the_pod_rung_changes_nothing_of_the_rest(
    first: str, second: str, both: bool, rungs: tuple[str, ...]
) -> None:
    names = {"ms-coordinator-0": first, "ms-coordinator-1": second}
    pins = {name: frozenset(nodes.split()) for name, nodes in names.items() if nodes}
    whole, _ = failover(cut_at=None, pins=pins, both=both)
    expected = [(one.rung, one.phase) for one in whole.job("ms-coordinator").ledger.closed[-1].history]
    for cut_at in range(80):
        world, deleted = failover(cut_at=cut_at, pins=pins, both=both)
        ledger = world.job("ms-coordinator").ledger
        assert ledger.closed[-1].rungs == rungs, cut_at
        assert [(one.rung, one.phase) for one in ledger.closed[-1].history] == expected, cut_at
        assert len(ledger.attempts) == len(rungs)
        assert len(deleted) == {("pod",): 1, ("pod", "job"): 3, ("job",): 2}[rungs]
