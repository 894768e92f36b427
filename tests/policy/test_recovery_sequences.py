"""Recoveries beyond the regular one: what opens them, what disturbs them, what ends them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.pods import PodPhase
from mindie_ha.model.recoveries import Outcome, Phase
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import FleetView
from mindie_ha.policy.planner import plan
from tests.policy.worlds import World, service


def exits(world: World, name: str) -> list[tuple[str, str]]:
    return [(item.phase.value, item.exit) for item in world.job(name).ledger.closed[-1].history]


def uids(world: World, name: str) -> set[str]:
    return {pod.uid for pod in world.pods_of(name)}


def reasons(world: World) -> set[str]:
    return {notice.reason for notice in world.notices}


def test_a_lost_node_is_isolated_and_its_pods_replaced_elsewhere() -> None:
    world = service()
    node = world.pods_of("p0")[0].node
    world.lose_node(node)
    world.settle(for_s=14.0)
    assert world.deleted == []
    world.settle(until=lambda: world.closed("p0"))
    assert all(pod.node != node for pod in world.pods_of("p0"))
    assert world.machines[node].ledger is not None
    assert world.job("p0").ledger.closed[-1].intent.cause is Cause.NODE_NOT_READY


def test_a_node_that_flaps_restarts_nobody() -> None:
    """073."""
    world = service()
    node = world.pods_of("p0")[0].node
    for _ in range(5):
        world.lose_node(node)
        world.settle(for_s=8.0)
        world.heal_node(node)
        world.settle(for_s=20.0)
    assert world.deleted == []
    assert world.writes == 0


def test_a_gone_node_acts_at_once() -> None:
    world = service()
    node = world.pods_of("p0")[0].node
    world.machines[node].node = replace(world.machines[node].node, exists=False)
    world.look()
    assert {item.uid for item in world.deleted} >= uids(world, "p0")


def test_a_failed_program_costs_one_retry() -> None:
    world = service()
    job = world.job("d0")
    job.workload = replace(job.workload, labels={**job.workload.labels, "fault-retry-times": "3"})
    old = uids(world, "d0")
    world.fail(world.pods_of("d0")[0])
    world.settle(until=lambda: world.closed("d0"))
    assert {item.uid for item in world.deleted} == old
    assert job.ledger.software_retries_spent == 1
    assert job.ledger.closed[-1].outcome is Outcome.RECOVERED


@pytest.mark.parametrize("label", [None, "0", "abc", "-1"], ids=["absent", "zero", "no-number", "negative"])
def test_a_failed_program_without_retries_is_reported_only(label: str | None) -> None:
    """D5, G3, G9."""
    world = service()
    if label is not None:
        job = world.job("d0")
        job.workload = replace(job.workload, labels={**job.workload.labels, "fault-retry-times": label})
    world.fail(world.pods_of("d0")[0])
    world.settle(for_s=5.0)
    assert world.deleted == []
    assert world.job("d0").ledger.parked is None
    assert "SoftwareFaultNotPaid" in reasons(world)


def test_spent_retries_park() -> None:
    """077."""
    world = service(settings=Settings.model_validate({"budgets": {"stable_s": 1.0}}))
    job = world.job("d0")
    job.workload = replace(job.workload, labels={**job.workload.labels, "fault-retry-times": "2"})
    for _ in range(3):
        world.fail(world.pods_of("d0")[0])
        world.look()
        world.settle(until=lambda: job.ledger.recovery is None, for_s=300.0)
        world.settle(for_s=2.0)
    assert job.ledger.software_retries_spent == 2
    assert job.ledger.parked is not None
    assert job.ledger.parked.reason == "BudgetSpent"
    assert len(world.deleted) == 4


def test_a_program_that_dies_on_a_broken_card_costs_nothing() -> None:
    """G7."""
    world = service()
    world.break_card(world.pods_of("p0")[0])
    world.fail(world.pods_of("p0")[1])
    world.settle(until=lambda: world.closed("p0"))
    assert world.job("p0").ledger.software_retries_spent == 0


def test_a_pod_removed_by_hand_rebuilds_its_instance_and_no_other() -> None:
    """067, 087."""
    world = service()
    first, second = world.pods_of("p0")
    others = uids(world, "d0")
    del world.pods[first.uid]
    world.turn()
    world.settle(until=lambda: world.closed("p0"))
    assert second.uid not in world.pods
    assert uids(world, "d0") == others
    assert world.job("p0").ledger.closed[-1].intent.cause is Cause.MEMBER_REPLACED


def test_a_whole_instance_replaced_by_hand_is_counted_anew() -> None:
    world = service()
    for pod in world.pods_of("p0"):
        del world.pods[pod.uid]
    world.turn()
    world.settle(for_s=5.0)
    assert world.deleted == []
    assert {member.uid for member in world.job("p0").ledger.members} == uids(world, "p0")


def test_the_crash_of_a_sibling_is_absorbed() -> None:
    world = service()
    world.recreates = False
    world.accepts = False
    first, second = world.pods_of("p0")
    world.break_card(first)
    world.look()
    world.look()
    world.fail(second)
    world.settle(for_s=3.0)
    assert world.job("p0").ledger.epoch == 1
    assert sum(world.job("p0").ledger.recovery.attempts.values()) == 1  # type: ignore[union-attr]


def test_a_replacement_on_a_bad_card_is_deleted_again_as_one_attempt() -> None:
    world = service()
    device = world.break_card(world.pods_of("p0")[0])
    node = world.pods_of("p0")[0].node
    world.lists = world.schedules = False
    world.settle(until=lambda: world.phase_of("p0") is Phase.PLACE, for_s=10.0)
    first, second = world.pods_of("p0")
    world.put(first, node, [device])
    world.put(second, "n4", ["Ascend910-0"])
    world.look()
    assert world.phase_of("p0") is Phase.BACKOFF
    world.lists = world.schedules = True
    world.settle(until=lambda: world.closed("p0"))
    closed = world.job("p0").ledger.closed[-1]
    assert len(world.job("p0").ledger.attempts) == 2
    assert {target.uid for target in closed.targets} >= {first.uid, second.uid}
    assert not any(device in pod.devices and pod.node == node for pod in world.pods_of("p0"))


def test_a_replacement_on_an_isolated_node_is_deleted_again() -> None:
    world = service()
    node = world.pods_of("p0")[0].node
    world.break_card(world.pods_of("p0")[0])
    world.lists = world.schedules = False
    world.settle(until=lambda: world.phase_of("p0") is Phase.PLACE, for_s=10.0)
    for index, pod in enumerate(world.pods_of("p0")):
        world.put(pod, node, [f"Ascend910-{6 + index}"])
    world.look()
    assert world.phase_of("p0") is Phase.BACKOFF


def test_a_recovery_does_not_close_while_the_card_is_kept_free_by_our_taint_alone() -> None:
    world = service()
    node = world.pods_of("p0")[0].node
    world.break_card(world.pods_of("p0")[0])
    world.lists = False
    world.settle(for_s=60.0)
    recovery = world.job("p0").ledger.recovery
    assert recovery is not None
    assert recovery.condition == "WaitingForList"
    assert world.machines[node].node.taints
    world.lists = True
    world.settle(until=lambda: world.closed("p0"), for_s=5.0)
    assert world.closed("p0")
    assert world.machines[node].node.taints == ()


def test_without_a_list_the_taint_stands_for_its_lag() -> None:
    world = service()
    for machine in world.machines.values():
        machine.listed = None
    node = world.pods_of("p0")[0].node
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=4.0)
    assert world.machines[node].node.taints
    world.settle(until=lambda: world.closed("p0"))
    assert world.machines[node].node.taints == ()


def test_a_terminally_failed_owner_parks_and_names_limit_and_config_map() -> None:
    world = service()
    job = world.job("p0")
    world.break_card(world.pods_of("p0")[0])
    world.look()
    job.workload = replace(job.workload, failed=True, failed_message="pod failed")
    world.settle(for_s=10.0)
    assert job.ledger.parked is not None
    assert job.ledger.parked.reason == "OwnerGaveUp"
    assert "fault-retry-times" in job.ledger.parked.message
    assert "volcano-system/vcjob-fault-npu-cm" in job.ledger.parked.message
    assert job.ledger.closed[-1].outcome is Outcome.PARKED


def test_the_brake_holds_lost_nodes_and_nothing_else() -> None:
    world = service()
    world.fleet = FleetView(nodes=6, ready=2, lost_recently=4, braked_since_s=world.now_s)
    world.lose_node(world.pods_of("p0")[0].node)
    world.settle(for_s=30.0)
    assert world.deleted == []
    assert {decision.outcome for decision in world.decisions} >= {Outcome.HELD}
    world.break_card(world.pods_of("d0")[0])
    world.settle(for_s=5.0)
    assert {item.uid for item in world.deleted} >= {target.uid for target in targets(world, "d0")}
    world.fleet = FleetView(nodes=6, ready=5, lost_recently=1)
    world.settle(for_s=5.0)
    assert world.phase_of("p0") is not None


def targets(world: World, name: str):  # type: ignore[no-untyped-def]
    recovery = world.job(name).ledger.recovery
    assert recovery is not None
    return recovery.targets


def test_attempts_are_spaced_and_end_in_a_park() -> None:
    settings = Settings.model_validate({"budgets": {"max_attempts": 4}, "phases": {"startup_s": 31.0}})
    world = service(settings=settings)
    world.probes = False
    world.break_card(world.pods_of("p0")[0])
    times: list[float] = []
    for _ in range(400):
        before = len(world.deleted)
        world.settle(for_s=1.0)
        if len(world.deleted) > before:
            times.append(world.now_s)
        for pod in world.pods_of("p0"):
            if pod.phase is PodPhase.RUNNING and pod.uid not in {item.uid for item in world.deleted}:
                world.change(pod, has_readiness_probe=True, ready=False)
    ledger = world.job("p0").ledger
    assert ledger.parked is not None
    assert ledger.parked.reason == "LadderSpent"
    assert len(times) == 4


def test_a_second_fault_soon_after_waits_for_the_back_off() -> None:
    world = service(settings=Settings.model_validate({"budgets": {"backoff_first_s": 120.0}}))
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.closed("p0"))
    count = len(world.deleted)
    world.break_card(world.pods_of("p0")[0])
    world.look()
    world.look()
    assert world.phase_of("p0") is Phase.BACKOFF
    assert len(world.deleted) == count
    assert world.groups()[2:] == [[pod.ip for pod in world.pods_of("d0")]]
    world.settle(until=lambda: world.closed("p0") and len(world.deleted) > count)
    assert world.job("p0").ledger.epoch == 2


def test_a_stable_stretch_makes_the_next_attempt_immediate() -> None:
    world = service()
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.closed("p0"))
    world.now_s += 600.0
    world.break_card(world.pods_of("p0")[0])
    world.look()
    world.look()
    assert world.phase_of("p0") is Phase.STOP
    assert len(world.job("p0").ledger.attempts) == 1


def test_refused_deletions_are_repeated_at_a_measured_pace() -> None:
    world = service()
    world.accepts = False
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=60.0)
    assert world.phase_of("p0") is Phase.STOP
    assert world.job("p0").ledger.recovery.condition == "DeletionNotAccepted"  # type: ignore[union-attr]
    assert 2 * 4 <= len(world.deleted) <= 2 * 12


def test_a_pod_held_by_a_finalizer_is_named() -> None:
    settings = Settings.model_validate({"budgets": {"max_attempts": 1}, "phases": {"gone_s": 10.0}})
    world = service(settings=settings)
    pod = world.pods_of("p0")[0]
    world.change(pod, finalizers=("example.com/hold",))
    world.break_card(pod)
    world.settle(for_s=60.0)
    assert any("example.com/hold" in decision.sentence for decision in world.decisions)
    assert world.job("p0").ledger.parked is not None


def test_grace_lets_consumers_drop_the_instance_first() -> None:
    world = service()
    job = world.job("p0")
    job.workload = replace(job.workload, labels={"fault-scheduling": "grace"})
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=6.0)
    assert world.deleted == []
    assert len(world.groups()) == 3
    world.settle(for_s=4.0)
    assert {item.grace_s for item in world.deleted} == {None}


def test_no_capacity_waits_without_deleting_again() -> None:
    """083."""
    world = service(nodes=2)
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=900.0)
    recovery = world.job("p0").ledger.recovery
    assert recovery is not None
    assert recovery.condition == "WaitingForCapacity"
    assert len(world.deleted) == 2
    world.machines[next(iter(world.machines))].bad.clear()
    world.settle(until=lambda: world.closed("p0"))
    assert world.closed("p0")


def test_a_replacement_that_vanishes_while_settling_sends_all_back() -> None:
    world = service()
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.phase_of("p0") is Phase.SETTLE)
    first, second = world.pods_of("p0")
    del world.pods[first.uid]
    world.settle(until=lambda: world.closed("p0"))
    assert second.uid not in world.pods
    assert len(world.job("p0").ledger.attempts) == 2


def test_a_fault_that_heals_before_the_first_deletion_ends_without_one() -> None:
    world = service()
    world.fleet = FleetView(nodes=6, ready=5, lost_recently=1)
    job = world.job("p0")
    job.podgroup = replace(job.podgroup, annotations={})  # not seen as ours: the scheduler acts first
    world.settings = Settings.model_validate({"ownership": {"owner": "volcano"}})
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=5.0)
    assert world.phase_of("p0") is Phase.BACKOFF
    for machine in world.machines.values():
        machine.bad.clear()
    world.settle(for_s=5.0)
    assert world.closed("p0")
    assert world.deleted == []


def test_an_unprobed_server_is_recovered_unverified_after_running_long_enough() -> None:
    world = service()
    world.probes = False
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=300.0)
    assert world.phase_of("p0") is Phase.SETTLE
    world.settle(until=lambda: world.closed("p0"))
    assert world.job("p0").ledger.closed[-1].outcome is Outcome.RECOVERED_UNVERIFIED


def test_an_unreadable_ledger_is_only_observed() -> None:
    world = service()
    world.break_card(world.pods_of("p0")[0])
    view = world.view()
    broken = tuple(replace(item, ledger_error="digest does not fit") for item in view.workloads)
    result = plan(replace(view, workloads=broken), world.settings, world.now_s)
    for decision, item in zip(result.decisions, broken, strict=True):
        assert decision.actions == ()
        assert decision.ledger == item.ledger
        assert decision.rule == "ledger-unreadable"


def test_a_replacement_that_stumbles_while_it_starts_does_not_park_the_workload() -> None:
    world = service()
    job = world.job("p0")
    job.workload = replace(job.workload, restart_policy="Always")
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.phase_of("p0") is Phase.SETTLE)
    world.change(world.pods_of("p0")[0], restarts=1, exit_code=1)
    world.settle(until=lambda: world.closed("p0"))
    assert job.ledger.parked is None
    assert job.ledger.closed[-1].outcome is Outcome.RECOVERED
    assert "SoftwareFaultNotPaid" in reasons(world)


def test_a_lost_node_ends_the_grace_of_its_pods() -> None:
    """M4."""
    world = service()
    job = world.job("p0")
    job.workload = replace(job.workload, labels={"fault-scheduling": "grace"})
    node = world.pods_of("p0")[0].node
    world.break_card(world.pods_of("p0")[0])
    world.ends = False
    world.settle(until=lambda: bool(world.deleted))
    world.lose_node(node)
    world.settle(for_s=20.0)
    assert {item.grace_s for item in world.deleted} == {None, 0}
    assert {item.uid for item in world.deleted if item.grace_s == 0} == {item.uid for item in world.deleted}


def test_a_replacement_that_fails_for_good_without_retries_parks() -> None:
    world = service()
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.phase_of("p0") is Phase.SETTLE)
    world.fail(world.pods_of("p0")[0])
    world.settle(for_s=3.0)
    park = world.job("p0").ledger.parked
    assert park is not None
    assert park.reason == "BudgetSpent"


def test_a_card_that_fails_where_the_targets_were_costs_no_second_attempt() -> None:
    world = World()
    world.add("p0", replicas=2, cards=8)
    world.start()
    first, second = world.pods_of("p0")
    assert first.node != second.node
    world.lists = False  # the scheduler would put the new pods on the bad cards
    world.recreates = False
    world.break_card(first)
    world.settle(until=lambda: world.phase_of("p0") is Phase.RECREATE)
    world.break_card(second)
    world.settle(for_s=2.0)
    world.recreates = True
    world.settle(for_s=20.0)
    world.lists = True
    world.settle(until=lambda: world.closed("p0"))
    closed = world.job("p0").ledger.closed[-1]
    assert {target.uid for target in closed.targets} == {first.uid, second.uid}
    assert [record.phase for record in closed.history].count(Phase.STOP) == 1
