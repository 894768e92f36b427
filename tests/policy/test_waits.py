"""What a workload waits for is said in words, for every phase and every condition there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.pauses import Pause, PauseLedger, Pauses
from mindie_ha.model.recoveries import Phase
from mindie_ha.policy import holds, rearming, records, waits
from mindie_ha.policy.planner import plan
from mindie_ha.policy.rungs import gates
from mindie_ha.policy.rungs.phases import TRANSITIONS
from mindie_ha.ranktable.waits import CONFIGURATIONS

from .worlds import START_S, World, service


def test_every_phase_and_condition_has_its_words() -> None:
    assert set(waits.LEAVES) == set(TRANSITIONS)
    conditions = {rule.condition for rule in TRANSITIONS.values()} - {""}
    assert conditions | gates.HELD | {gates.BACKING_OFF} <= set(waits.ENDS)


def wait_of(world: World, name: str = "p") -> waits.Wait | None:
    """What the workload waits for, by the planner's word now."""
    view = next(one for one in world.view().workloads if one.workload.key.name == name)
    decisions = {one.workload: one for one in plan(world.view(), world.settings, world.now_s).decisions}
    return waits.judge(view, decisions[view.workload.key], now_s=world.now_s)


@pytest.fixture
def world() -> World:
    """A service that serves."""
    world = World()
    world.add("p")
    world.add("d")
    world.start()
    return world


def test_who_is_well_waits_for_nothing(world: World) -> None:
    assert wait_of(world) is None


def test_a_phase_names_its_owner_its_exit_and_what_follows_its_deadline(world: World) -> None:
    world.break_card(world.pods_of("p")[0])
    world.settle(until=lambda: world.phase_of("p") is Phase.SETTLE)
    found = wait_of(world)
    assert found is not None
    assert (found.what, found.ends) == (
        "job/settle: the workload itself",
        "the pods are well for long enough",
    )
    assert found.until_s is not None
    assert found.until_s > world.now_s
    assert found.then == "it closes if all stayed well"
    assert found.until_s < world.now_s + 60, "the end of settling, not the deadline of the phase"


def test_a_condition_names_what_ends_it(world: World) -> None:
    world.recreates = False
    world.break_card(world.pods_of("p")[0])
    world.settle(for_s=60.0)
    found = wait_of(world)
    assert found is not None
    assert found.what.startswith("WaitingForAdmission: ")
    assert found.ends == "the owner (Ascend Operator) makes the pods"


def test_a_pause_says_who_ends_it_and_when(world: World) -> None:
    pause = Pause(
        scope="cluster", text="work", person="person:ann", since_s=START_S, ends_at_s=START_S + 9000
    )
    world.pauses = Pauses(PauseLedger(pauses=(pause,)))
    world.break_card(world.pods_of("p")[0])
    world.settle(for_s=5.0)
    found = wait_of(world)
    assert found is not None
    assert found.what.startswith(f"{holds.HELD_BY_PAUSE}: paused (cluster by ann: work)")
    assert "mindie-ha resume" in found.ends
    assert found.until_s == pause.ends_at_s


@pytest.mark.parametrize(
    ("reason", "failed", "words"),
    [
        pytest.param("LadderSpent", False, "`mindie-ha reset mindie/p`", id="reset-helps"),
        pytest.param(
            "BudgetSpent",
            False,
            "raise its label fault-retry-times first, then `mindie-ha reset mindie/p`",
            id="label-first",
        ),
        pytest.param("BudgetSpent", True, "delete AscendJob mindie/p and apply it anew", id="failed-since"),
        pytest.param("OwnerGaveUp", True, "delete AscendJob mindie/p and apply it anew", id="owner"),
    ],
)
def test_a_park_names_what_helps_and_nothing_else(
    world: World, reason: str, failed: bool, words: str
) -> None:
    workload = replace(world.job("p").workload, failed=failed)
    said = rearming.remedy(workload, reason=reason)
    assert said.startswith(words)
    assert ("reset" in said) == ("reset" in words)


def test_a_park_waits_for_a_person_and_names_the_command(world: World) -> None:
    job = world.job("p")
    job.ledger = records.parked(job.ledger, reason="LadderSpent", message="10 attempts", now_s=world.now_s)
    found = wait_of(world)
    assert found is not None
    assert found.what == "a person: LadderSpent: 10 attempts"
    assert "`mindie-ha reset mindie/p`" in found.ends
    assert found.until_s is None


def test_an_operator_that_just_began_is_not_said_to_be_missing() -> None:
    world = service()
    world.break_card(world.pods_of("p0")[0])
    world.tabulates = False
    job = world.job("p0")
    assert job.rings is not None
    job.rings = replace(job.rings, text='{"status":"initializing"}')
    world.settle(until=lambda: world.phase_of("p0") is Phase.TABLE)
    for pod in world.pods_of("p0"):
        devices = '{"devices":[{"device_id":"0","device_ip":"29.0.0.1"}]}'
        world.change(pod, annotations={CONFIGURATIONS[0]: devices})
    said = []
    for _ in range(8):
        found = plan(world.view(), world.settings, world.now_s).decisions
        said += [one.sentence for one in found if one.workload == job.workload.key]
        world.now_s += 1.0
    assert said[0].endswith("the instance table is not complete: the operator is to write it")
    assert "the Ascend Operator is not running" in said[-1]
