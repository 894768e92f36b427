"""Failures that the field has seen, by their number: MS, Terminating, Pending, fallback, budgets.

`docs/cases.md` says for every number which tests stand for it; here are those that the planner alone decides.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.pods import PodPhase
from mindie_ha.model.recoveries import Outcome, Phase
from mindie_ha.model.settings import Settings
from tests.policy.pairs import pair, spares_the_last
from tests.policy.worlds import World, service

QUICK = Settings.model_validate({"phases": {"settle_s": 5.0}})


def labelled(world: World, name: str, **labels: str) -> None:
    """Give a job labels; `_` stands for `-`."""
    job = world.job(name)
    more = {key.replace("_", "-"): value for key, value in labels.items()}
    job.workload = replace(job.workload, labels={**job.workload.labels, **more})


def lose(world: World, node: str) -> None:
    world.lose_node(node)
    world.now_s += world.settings.faults.node_not_ready_s


def deleted(world: World) -> set[str]:
    return {item.key.name for item in world.deleted}


@pytest.mark.parametrize("name", ["ms-controller", "ms-coordinator"])
def test_case_057_a_lost_node_fails_over_a_pod_without_cards(name: str) -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of(name)
    assert not failed.devices
    lose(world, failed.node)
    world.settle(until=lambda: world.closed(name))
    assert world.job(name).ledger.closed[-1].rungs == ("pod",)
    assert world.pods_of(name)[1].uid == peer.uid


def test_case_063_old_pods_that_still_run_are_no_recovery() -> None:
    world = service(settings=QUICK)
    old = {pod.uid for pod in world.pods_of("p0")}
    world.accepts = False  # nothing is deleted yet, all old pods run and are ready
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=120.0)
    assert not world.closed("p0")
    world.accepts = True
    world.settle(until=lambda: world.closed("p0"))
    assert not old & {pod.uid for pod in world.pods_of("p0")}
    assert all(pod.ready for pod in world.pods_of("p0"))


def test_case_065_each_pod_of_a_recovery_is_acted_on_itself() -> None:
    world = World(settings=QUICK)
    world.add("p0", replicas=3)
    world.start()
    pods = world.pods_of("p0")
    world.break_card(pods[0])
    world.settle(until=lambda: world.closed("p0"))
    assert [(item.key.name, item.uid) for item in world.deleted] == [(pod.key.name, pod.uid) for pod in pods]


def test_case_067_all_pods_of_one_decode_instance_and_none_of_another() -> None:
    world = service(settings=QUICK)
    others = {pod.uid for name in ("p0", "ms-controller", "ms-coordinator") for pod in world.pods_of(name)}
    labelled(world, "d0", fault_retry_times="3")
    world.fail(world.pods_of("d0")[1])
    world.settle(until=lambda: world.closed("d0"))
    assert deleted(world) == {"d0-0", "d0-1"}
    world.deleted.clear()
    del world.pods[world.pods_of("d0")[0].uid]  # by hand, with force
    world.settle(until=lambda: len(world.job("d0").ledger.closed) == 2)
    assert "d0-1" in deleted(world)
    assert others <= set(world.pods)


@pytest.mark.parametrize(
    ("mode", "forced_after_s"),
    [
        pytest.param("force", 0.0, id="force"),
        pytest.param("grace", 0.0, id="grace-on-a-lost-node"),
    ],
)
def test_case_069_terminating_on_an_unreachable_node_is_forced(mode: str, forced_after_s: float) -> None:
    world = service(settings=QUICK)
    labelled(world, "p0", fault_scheduling=mode)
    pod = world.pods_of("p0")[0]
    world.change(pod, terminating_since_s=world.now_s - 1800.0, grace_s=30)
    lose(world, pod.node)
    began_s = world.now_s
    world.settle(until=lambda: any(item.uid == pod.uid and item.grace_s == 0 for item in world.deleted))
    assert world.now_s - began_s <= forced_after_s + 10.0  # `grace` lets consumers drop the instance first
    world.settle(until=lambda: world.closed("p0"))


@pytest.mark.parametrize(
    ("mode", "grace_s", "forced_after_s"),
    [
        pytest.param("grace", 30, 900.0, id="grace"),
        pytest.param("external-grace", 30, 30.0, id="external-grace"),
        pytest.param("external-force", 30, 0.0, id="external-force"),
        pytest.param("force", 30, 0.0, id="force"),
    ],
)
def test_case_071_grace_becomes_force_in_its_time(mode: str, grace_s: int, forced_after_s: float) -> None:
    world = service(settings=QUICK)
    labelled(world, "p0", fault_scheduling=mode)
    for pod in world.pods_of("p0"):
        world.change(pod, termination_grace_s=grace_s)
    world.ends = False  # nobody ends what is asked kindly
    others = {pod.uid for pod in world.pods.values() if pod.owner_uid != world.job("p0").workload.uid}
    world.break_card(world.pods_of("p0")[0])
    began_s = world.now_s
    world.settle(until=lambda: any(item.grace_s == 0 for item in world.deleted), for_s=1200.0)
    assert forced_after_s <= world.now_s - began_s <= forced_after_s + 12.0
    assert others <= set(world.pods)


def test_case_075_a_crash_loop_is_a_failure_of_the_program_and_is_paid() -> None:
    world = pair(settings=QUICK)
    labelled(world, "ms-coordinator", fault_retry_times="1")
    failed, peer = world.pods_of("ms-coordinator")
    world.change(failed, ready=False, waiting_reason="CrashLoopBackOff", restarts=7, exit_code=1)
    world.settle(until=lambda: world.closed("ms-coordinator"))
    ledger = world.job("ms-coordinator").ledger
    assert (ledger.closed[-1].intent.cause, ledger.software_retries_spent) == ("CrashLoop", 1)
    assert deleted(world) == {failed.key.name}
    world.change(peer, ready=False, waiting_reason="CrashLoopBackOff", restarts=7, exit_code=1)
    world.settle(until=lambda: world.job("ms-coordinator").ledger.parked is not None, for_s=30.0)
    assert world.job("ms-coordinator").ledger.parked.reason == "BudgetSpent"  # type: ignore[union-attr]


def test_case_077_all_pods_failed_are_retried_as_often_as_the_label_says() -> None:
    world = service(settings=QUICK)
    labelled(world, "p0", fault_retry_times="3")
    for round_ in range(1, 4):
        for pod in world.pods_of("p0"):
            world.fail(pod)
        world.settle(until=lambda: len(world.job("p0").ledger.closed) == round_)  # noqa: B023 - called at once
        assert world.job("p0").ledger.software_retries_spent == round_
    for pod in world.pods_of("p0"):
        world.fail(pod)
    world.settle(until=lambda: world.job("p0").ledger.parked is not None, for_s=30.0)
    assert world.job("p0").ledger.parked.reason == "BudgetSpent"  # type: ignore[union-attr]
    assert any(notice.reason == "BudgetSpent" for notice in world.notices)


def test_case_079_one_failure_seen_from_two_sides_is_one_recovery() -> None:
    world = service(settings=QUICK)
    labelled(world, "p0", fault_retry_times="3")
    pod = world.pods_of("p0")[0]
    world.fail(pod)
    world.look()
    world.break_card(pod)
    world.settle(until=lambda: world.closed("p0"))
    world.settle(for_s=60.0)
    ledger = world.job("p0").ledger
    assert (ledger.epoch, len(ledger.attempts)) == (1, 1)
    assert len(world.deleted) == len({item.uid for item in world.deleted})


def test_case_083_an_hour_without_a_node_is_one_wait_and_no_loop() -> None:
    world = pair(settings=QUICK, nodes=6)
    failed, peer = world.pods_of("ms-coordinator")
    for name, machine in world.machines.items():
        if name not in (failed.node, peer.node):
            machine.node = replace(machine.node, unschedulable=True)
    lose(world, failed.node)
    world.settle(for_s=60.0)
    waits = "condition:job-ms-coordinator#"
    world.writes = 0
    world.now_s += 3600.0
    world.settle(for_s=60.0)
    assert world.writes == 0
    assert [item.uid for item in world.deleted if item.key.name.startswith("ms-coordinator")] == [failed.uid]
    told = {one.key for one in world.notices if one.key.startswith(waits)}
    assert told == {f"{waits}1:WaitingForCapacity"}
    world.machines["n0"].node = replace(world.machines["n0"].node, unschedulable=False)
    world.settle(until=lambda: world.closed("ms-coordinator"), for_s=60.0)


def test_case_091_an_instance_below_its_number_is_rebuilt_and_keeps_it() -> None:
    world = World(settings=QUICK, nodes=6)
    world.add("p0", replicas=4)
    world.start()
    labelled(world, "p0", fault_retry_times="3")
    pods = world.pods_of("p0")
    world.change(pods[3], phase=PodPhase.PENDING, node="", ready=False, devices=(), ip="")
    world.schedules = False
    world.fail(pods[0])
    world.settle(until=lambda: len(world.deleted) >= 4, for_s=60.0)
    world.schedules = True
    world.settle(until=lambda: world.closed("p0"))
    assert len(world.pods_of("p0")) == 4


@pytest.mark.parametrize(("label", "rungs"), [("on", ("pod", "job")), ("off", ("job",))])
def test_case_097_pod_level_falls_back_to_job_level_once_and_is_recorded(
    label: str, rungs: tuple[str, ...]
) -> None:
    world = pair(settings=QUICK, label=label)
    world.judges.append(lambda plan: spares_the_last(world, plan))
    labelled(world, "ms-coordinator", process_recover_enable="on")  # changes nothing for MS
    failed, _ = world.pods_of("ms-coordinator")
    world.recreates = label != "on"
    lose(world, failed.node)
    world.settle(for_s=40.0)
    world.recreates = True
    world.settle(until=lambda: world.closed("ms-coordinator"))
    closed = world.job("ms-coordinator").ledger.closed[-1]
    assert (closed.rungs, closed.outcome) == (rungs, Outcome.RECOVERED)
    assert len(world.job("ms-coordinator").ledger.attempts) == len(rungs)
    assert sum(one.phase is Phase.STOP for one in closed.history) == len(rungs)


def test_case_137_both_pods_of_an_instance_on_one_lost_node_are_one_restart() -> None:
    world = service(settings=QUICK)
    first, second = world.pods_of("p0")
    assert first.node == second.node
    lose(world, first.node)
    world.settle(until=lambda: world.closed("p0"))
    ledger = world.job("p0").ledger
    assert (ledger.epoch, len(ledger.attempts)) == (1, 1)
    assert {first.key.name, second.key.name} <= deleted(world)


def test_case_095_nine_minutes_of_loading_are_no_failure() -> None:
    world = service(settings=QUICK)
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.phase_of("p0") is Phase.SETTLE)
    world.deleted.clear()
    loading = [world.change(pod, ready=False) for pod in world.pods_of("p0")]
    world.settle(for_s=540.0)
    assert (world.phase_of("p0"), world.deleted) == (Phase.SETTLE, [])
    for pod in loading:
        world.change(pod, ready=True)
    world.settle(until=lambda: world.closed("p0"))
    assert not world.deleted
