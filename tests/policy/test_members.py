"""Rungs of training jobs that keep some pods: who is replaced, and that who is kept is told."""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.model.decisions import TellExit
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Phase
from mindie_ha.model.reset_configs import RankReset, ResetConfig
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Role
from mindie_ha.policy.effects import GRACE_EXIT, LABEL_STRATEGY
from mindie_ha.policy.leaders import REPLICA_TYPE
from mindie_ha.policy.planner import plan
from tests.policy.worlds import NAMESPACE, World

JOB = "train"
QUICK = Settings.model_validate({"phases": {"settle_s": 5.0}})


def training(*, replicas: int = 4, annotations: dict[str, str] | None = None, **labels: str) -> World:
    """A job of workers that keeps the pods that are well."""
    world = World(settings=QUICK, nodes=8)
    job = world.add(JOB, role=Role.TRAINING, replicas=replicas, labels={"pod-rescheduling": "on", **labels})
    job.workload = replace(job.workload, annotations=annotations or {})
    job.reset = ResetConfig(ObjectKey(NAMESPACE, f"reset-config-{JOB}"))
    world.turn()
    for pod in world.pods_of(JOB):
        world.change(pod, labels={REPLICA_TYPE: "worker"})
    world.start()
    return world


def worker(world: World, number: int) -> Pod:
    return world.pods_of(JOB)[number]


def deleted(world: World) -> set[str]:
    return {one.uid for one in world.deleted}


def test_survivors_are_told_again_when_a_replacement_fails_too() -> None:
    world = training()
    kept = {worker(world, number).uid for number in (0, 1, 2)}
    job = world.job(JOB)
    world.break_card(worker(world, 3))
    world.settle(until=lambda: world.phase_of(JOB) is Phase.SETTLE)
    assert job.reset is not None
    assert job.reset.retry_time == 1
    world.break_card(worker(world, 3))
    world.settle(until=lambda: world.closed(JOB))
    assert job.reset.retry_time == 2
    assert not kept & deleted(world)


def test_survivors_are_told_again_when_a_replacement_vanishes() -> None:
    world = training()
    job = world.job(JOB)
    world.break_card(worker(world, 3))
    world.settle(until=lambda: world.phase_of(JOB) is Phase.SETTLE)
    del world.pods[worker(world, 3).uid]
    world.settle(until=lambda: world.closed(JOB))
    assert job.reset is not None
    assert job.reset.retry_time == 2


def test_a_replacement_that_is_well_is_not_replaced_for_the_sake_of_another() -> None:
    world = training()
    world.break_card(worker(world, 2))
    world.break_card(worker(world, 3))
    world.settle(until=lambda: world.phase_of(JOB) is Phase.SETTLE)
    well = worker(world, 2).uid
    world.break_card(worker(world, 3))
    world.settle(until=lambda: world.closed(JOB))
    assert well not in deleted(world)


def test_a_block_is_not_kept_apart_while_nobody_can_be_told() -> None:
    world = training(annotations={"huawei.com/affinity-config": "level1=2"})
    job = world.job(JOB)
    assert job.reset is not None
    job.reset = replace(job.reset, ranks=(RankReset(0, "failed", "reset"),))
    world.break_card(worker(world, 3))
    world.look()
    assert job.ledger.recovery is not None
    assert job.ledger.recovery.rung == "job"


def told_to_leave() -> World:
    """A card of the last worker is sub-healthy, the processes were told to leave, nothing is deleted yet."""
    world = training(**{LABEL_STRATEGY: GRACE_EXIT})
    job, pod = world.job(JOB), worker(world, 3)
    sub_health = Fault(
        source=FaultSource.DEVICE,
        cause=Cause.CHIP_FAULT_LISTED,
        node=pod.node,
        device=pod.devices[0],
        codes=("80E01801",),
        first_seen_s=world.now_s,
        details=(CodeFact("80E01801", Level.SUB_HEALTH, Family.CHIP),),
    )
    world.machines[pod.node].faults.append(sub_health)
    assert job.reset is not None
    while not job.reset.graceful_exit:
        world.look()
    assert world.phase_of(JOB) is Phase.STOP
    return world


def test_the_word_to_leave_is_taken_back_when_the_fault_goes_before_a_deletion() -> None:
    world = told_to_leave()
    job, pod = world.job(JOB), worker(world, 3)
    assert job.reset is not None
    job.reset = replace(job.reset, ranks=(RankReset(3, "unrecovered", "reset"),))  # now nobody can be kept
    world.look()
    world.machines[pod.node].faults.clear()
    job.reset = replace(job.reset, ranks=())
    world.settle(for_s=30.0)
    assert world.closed(JOB)
    assert not job.reset.graceful_exit
    assert not world.deleted


def test_the_word_to_leave_is_taken_back_when_the_job_is_no_longer_ours() -> None:
    world = told_to_leave()
    job = world.job(JOB)
    job.workload = replace(job.workload, labels={**job.workload.labels, "fault-scheduling": "off"})
    assert job.reset is not None
    (decision,) = plan(world.view(), world.settings, world.now_s).decisions
    assert [type(action) for action in decision.actions] == [TellExit]
    job.reset = replace(job.reset, graceful_exit=False)
    (decision,) = plan(world.view(), world.settings, world.now_s).decisions
    assert (decision.rule, decision.actions) == ("not-ours", ())
