"""Whole recoveries of one instance, as sequences of phases."""

from __future__ import annotations

from mindie_ha.model.recoveries import Outcome, Phase
from tests.policy.worlds import World, service

REGULAR = ["isolate", "stop", "gone", "recreate", "place", "table", "announce", "settle"]


def phases(world: World, name: str) -> list[str]:
    return [record.phase.value for record in world.job(name).ledger.closed[-1].history]


def test_a_healthy_service_is_written_once_and_then_left_alone() -> None:
    world = service()
    world.settle(for_s=5.0)
    assert world.writes == 0
    assert world.deleted == []
    assert len(world.generations) == 1
    assert all(decision.actions == () for decision in world.decisions)


def test_a_faulty_card_replaces_exactly_its_instance() -> None:
    world = service()
    old = world.pods_of("p0")
    others = {pod.uid for pod in world.pods.values()} - {pod.uid for pod in old}
    device = world.break_card(old[0])
    world.lists = False
    world.settle(until=lambda: world.phase_of("p0") is Phase.SETTLE, for_s=20.0)
    world.lists = True
    world.settle(until=lambda: world.closed("p0"))
    assert {item.uid for item in world.deleted} == {pod.uid for pod in old}
    assert others <= set(world.pods)
    assert phases(world, "p0") == REGULAR
    assert world.job("p0").ledger.closed[-1].outcome is Outcome.RECOVERED
    assert all(
        (pod.node, device) != (old[0].node, card) for pod in world.pods_of("p0") for card in pod.devices
    )


def test_a_faulty_card_gives_three_tables_with_the_same_ids() -> None:
    world = service()
    ids = dict(world.table.ids)
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.closed("p0"))
    assert [ledger.generation for ledger in world.generations] == [1, 2, 3]
    assert len({ledger.digest for ledger in world.generations}) == 3
    assert all(ledger.ids == ids for ledger in world.generations)
