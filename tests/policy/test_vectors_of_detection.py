"""What counts as a fault: vectors D1-D28 of the rescheduling contract §6.1 against our planner.

The job is J of the contract: rank 0 and rank 1, eight cards each, on nodes of their own, `force`. An id names
the vector; where our rule is another one, the words behind it say which, and `docs/decisions/018` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.pods import PodPhase
from mindie_ha.model.workloads import Role
from tests.policy.gangs import JOB, Gang, gang

PAID = {"fault-retry-times": "3"}
HOT = {"subHealthyStrategy": "hotSwitch"}
Happens = Callable[[Gang], object]


def gone(world: Gang) -> None:
    machine = world.machines[world.node(1)]
    machine.node = replace(machine.node, exists=False, ready=False)


def vanished(world: Gang) -> None:
    del world.pods[world.pod(1).uid]


def sick(world: Gang) -> None:
    world.card(1, Level.SUB_HEALTH)


def sick_and_released(world: Gang) -> None:
    sick(world)
    pod = world.pod(1)
    world.change(pod, annotations={"needVolcanoOpe": "delete", "backupNewPodName": "train-1-hot-0001"})


DETECTED = [
    pytest.param(PAID, lambda w: w.change(w.pod(1), exit_code=0), None, id="D1-exit-0"),
    pytest.param(PAID, lambda w: w.change(w.pod(1), exit_code=127), Cause.POD_FAILED, id="D2-exit-127"),
    pytest.param(PAID, lambda w: w.change(w.pod(1), phase=PodPhase.FAILED), Cause.POD_FAILED, id="D3"),
    pytest.param({}, vanished, Cause.MEMBER_REPLACED, id="D4-a-member-that-vanished-is-answered"),
    pytest.param({}, lambda w: w.fail(w.pod(1)), None, id="D5-no-retries"),
    pytest.param(PAID, lambda w: w.fail(w.pod(1)), Cause.POD_FAILED, id="D6"),
    pytest.param({}, lambda w: w.break_card(w.pod(1), 3), Cause.CHIP_UNHEALTHY, id="D8-used-card"),
    pytest.param(
        {}, lambda w: w.card(1, Level.SEPARATE, family=Family.NETWORK, listed=True), None, id="D10-network"
    ),
    pytest.param({}, gone, Cause.NODE_GONE, id="D11-D12-gone-acts-at-once-caches-are-filled-first"),
    pytest.param({}, lambda w: w.board(w.node(1), listed=True), Cause.NODE_HARDWARE, id="D13-board"),
    pytest.param(
        {}, lambda w: w.board(w.node(1), family=Family.SWITCH, listed=True), Cause.SWITCH_UNHEALTHY, id="D14"
    ),
    pytest.param({}, lambda w: w.board(w.node(1), Level.PRE_SEPARATE), None, id="D15-D27-runs-on"),
    pytest.param({}, lambda w: w.mark(1, fault_type="Separate"), Cause.POD_MARKED, id="D16"),
    pytest.param({}, lambda w: w.mark(1, fault_type="software"), None, id="D17-software"),
    pytest.param({}, lambda w: w.card(1, Level.PRE_SEPARATE), None, id="D18-pre-separate"),
    pytest.param({"subHealthyStrategy": "ignore"}, sick, None, id="D19-ignore"),
    pytest.param(HOT, lambda _: None, None, id="D20-nothing-is-sick"),
    pytest.param(HOT, sick, None, id="D21-no-order-to-delete"),
    pytest.param(HOT, sick_and_released, None, id="D22-D23-hot-switch-is-recorded-and-told"),
    pytest.param({}, lambda w: w.card(1, Level.NOT_HANDLE), None, id="D26"),
]


@pytest.mark.parametrize(("labels", "happens", "cause"), DETECTED)
def test_what_opens_a_recovery(labels: dict[str, str], happens: Happens, cause: Cause | None) -> None:
    world = gang(labels=labels)
    happens(world)
    world.look()
    assert world.cause() is cause
    if cause is None:
        world.wait(30.0)
        assert not world.deleted


def test_d7_a_pod_without_a_node_is_not_hit_by_the_one_it_will_get() -> None:
    world = gang(start=False)
    world.schedules = False
    world.turn()
    world.machines["n0"].bad.add("Ascend910-0")
    world.lose_node("n1")
    world.now_s += 60.0
    world.look()
    assert world.cause() is None


def test_d9_a_card_that_no_pod_of_the_job_holds_is_none_of_its_business() -> None:
    world = gang(cards=3)  # both on one node, cards 0 to 5
    world.machines[world.node(1)].bad.add("Ascend910-7")
    world.look()
    assert world.cause() is None


def test_d13_a_board_hits_pods_without_cards_too() -> None:
    world = gang(role=Role.COORDINATOR, replicas=1)
    world.board(world.node(0), listed=True)
    world.look()
    assert world.cause() is Cause.NODE_HARDWARE


def test_d21_to_d23_that_hot_switching_is_not_served_is_told() -> None:
    world = gang(labels=HOT)
    sick_and_released(world)
    world.look()
    assert "HotSwitchNotServed" in {notice.reason for notice in world.notices}


def test_d24_pods_that_run_are_answered_whatever_the_podgroup_says() -> None:
    """The reference skips the job. A PodGroup is Pending for a moment while its pods run on; who waits for it
    loses that time, and pods that do not run yet have no fault anyway."""
    world = gang()
    job = world.job(JOB)
    job.podgroup = replace(job.podgroup, phase="Pending")
    world.break_card(world.pod(1))
    world.look()
    assert world.cause() is Cause.CHIP_UNHEALTHY


def test_d25_a_fault_on_a_replacement_is_answered_in_the_same_recovery() -> None:
    """The reference ignores it until its record expires, after up to 20 minutes."""
    world = gang(nodes=8)
    world.break_card(world.pod(1))
    world.settle(for_s=60.0, until=lambda: len(world.deleted) == 2 and all(p.ip for p in world.pods_of(JOB)))
    world.break_card(world.pod(0))
    world.settle(for_s=60.0, until=lambda: world.closed(JOB))
    (record,) = world.job(JOB).ledger.closed
    assert len(world.job(JOB).ledger.attempts) == 2
    assert len(world.deleted) == 4
    assert record.epoch == 1


def test_d28_pre_separate_disturbs_no_ms_pod() -> None:
    """The reference deletes the Coordinator, because no card of its node is in use."""
    world = gang(role=Role.COORDINATOR, replicas=1)
    world.board(world.node(0), Level.PRE_SEPARATE)
    world.wait(30.0)
    assert world.cause() is None
    assert not world.deleted
