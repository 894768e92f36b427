"""Guard, one look at a time: what counts as done by others, what is aimed at, and when our turn comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Outcome, Phase, Recovery
from mindie_ha.model.settings import Settings
from tests.policy.pairs import pair
from tests.policy.worlds import World, service

VOLCANO = Settings.model_validate({"ownership": {"owner": "volcano"}, "phases": {"settle_s": 5.0}})


def taken(world: World, *pods: Pod) -> None:
    """Somebody else deletes these at once."""
    for pod in pods:
        del world.pods[pod.uid]


def recovery_of(world: World, name: str) -> Recovery:
    recovery = world.job(name).ledger.recovery
    assert recovery is not None
    return recovery


def names(world: World, name: str) -> set[str]:
    return {pod.uid for pod in world.pods_of(name)}


@pytest.mark.parametrize("both", [True, False], ids=["all-pods", "one-pod-first"])
def test_what_was_deleted_before_we_knew_of_a_fault_is_recorded_and_watched(both: bool) -> None:
    world = service(settings=VOLCANO)
    first, second = world.pods_of("p0")
    taken(world, first)
    if both:
        taken(world, second)
    world.look()
    recovery = recovery_of(world, "p0")
    assert recovery.intent.cause is Cause.MEMBER_REPLACED
    assert {target.uid for target in recovery.targets} == {first.uid, second.uid}
    world.turn()
    world.look()
    if not both:
        assert recovery_of(world, "p0").phase is Phase.BACKOFF
        taken(world, second)
    world.settle(until=lambda: world.closed("p0"))
    assert world.deleted == []
    assert world.job("p0").ledger.closed[-1].outcome is Outcome.RECOVERED


def test_pods_that_the_owner_made_meanwhile_are_aimed_at_only_where_an_old_one_stays() -> None:
    world = service(settings=VOLCANO)
    first, second = world.pods_of("p0")
    taken(world, first)
    world.turn()  # the operator is quick: the successor is there before we look
    world.settle(for_s=14.0)
    assert world.deleted == []
    assert {target.uid for target in recovery_of(world, "p0").targets} == {first.uid, second.uid}
    successor = next(pod for pod in world.pods_of("p0") if pod.uid != second.uid)
    world.settle(until=lambda: world.closed("p0"))
    assert {item.uid for item in world.deleted} == {second.uid, successor.uid}


def test_each_deletion_that_is_seen_starts_the_guard_time_anew() -> None:
    world = service(settings=VOLCANO)
    first, _ = world.pods_of("p0")
    world.recreates = False
    world.break_card(first)
    world.settle(for_s=10.0)
    taken(world, first)
    world.settle(for_s=14.0)
    assert world.deleted == []
    world.settle(for_s=4.0)
    assert len(world.deleted) == 1


@pytest.mark.parametrize("mode", ["force", "grace"])
def test_a_target_that_others_let_end_gracefully_is_not_asked_for_again(mode: str) -> None:
    world = service(settings=VOLCANO)
    job = world.job("p0")
    job.workload = replace(job.workload, labels={"fault-scheduling": mode})
    world.ends = False
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=2.0)
    for pod in world.pods_of("p0"):
        world.change(pod, terminating_since_s=world.now_s, grace_s=20.0)
    world.settle(for_s=20.0)
    assert world.deleted == []
    assert world.phase_of("p0") is Phase.GONE
    world.ends = True
    world.settle(until=lambda: world.closed("p0"))
    assert world.deleted == []


@pytest.mark.parametrize("label", ["on", None])
def test_a_vanished_coordinator_is_the_pod_rung_and_its_peer_stays(label: str | None) -> None:
    world = pair(label=label, settings=VOLCANO)
    gone, peer = world.pods_of("ms-coordinator")
    taken(world, gone)
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert world.deleted == []
    assert peer.uid in names(world, "ms-coordinator")
    assert world.job("ms-coordinator").ledger.closed[-1].rungs == ("pod",)


def test_without_the_label_and_without_volcano_the_job_follows_at_our_turn() -> None:
    world = pair(label=None, settings=VOLCANO)
    both = names(world, "ms-coordinator")
    failed = world.pods_of("ms-coordinator")[0]
    world.lose_node(failed.node)
    world.now_s += world.settings.faults.node_not_ready_s
    world.settle(until=lambda: world.closed("ms-coordinator"))
    closed = world.job("ms-coordinator").ledger.closed[-1]
    assert closed.rungs == ("job",)
    assert both <= {item.uid for item in world.deleted}
    assert any("nobody deleted the failed pod" in record.exit for record in closed.history)
    assert len(world.job("ms-coordinator").ledger.attempts) == 1


def test_every_look_of_a_guarded_recovery_can_be_the_last_one() -> None:
    """Cut between writing and acting, at every look, the end is the same."""
    for cut_at in range(12):
        world = service(settings=VOLCANO)
        world.break_card(world.pods_of("p0")[0])
        for number in range(40):
            world.look(cut=number == cut_at)
            world.turn()
            world.now_s += 1.0
        world.settle(until=lambda world=world: world.closed("p0"))  # type: ignore[misc]
        assert world.job("p0").ledger.closed[-1].rungs == ("job",)
        assert len({item.uid for item in world.deleted}) == 2
