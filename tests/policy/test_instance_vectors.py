"""Vectors I1-I7: instances of an InferServiceSet, judged by our planner in guard.

The infer-operator acts first; here it is switched off, so what our planner does after `guard_s` is its own
rule. Where that is better than the reference, the test is named so and docs/decisions/017 says why.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.cluster.config_maps import LedgerEntry
from mindie_ha.cluster.successions import remembered
from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Outcome
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Maker
from tests.policy.worlds import World

NAME = "chat-0-decode-0"
GUARD_S = 15.0
MARK = "huawei.com/pod-status"
INSTANCE_SET = Maker("mindcluster.huawei.com/v1", "InstanceSet", "chat-0-decode", "set-1")


def world(
    *, replicas: int = 2, bound: bool = True, mode: str = "external-force", **labels: str | None
) -> World:
    """One running instance of two pods, and a sibling that nothing happens to."""
    found = World(settings=Settings.model_validate({"phases": {"settle_s": 5.0}}))
    wanted = {key.replace("_", "-"): value for key, value in labels.items() if value is not None}
    for name in (NAME, "chat-0-decode-1"):
        job = found.add(name, replicas=replicas, labels={"fault-scheduling": mode, **wanted})
        job.workload = replace(
            job.workload,
            kind="StatefulSet",
            restart_policy="Always",
            job_id="",
            service="chat-0",
            maker=INSTANCE_SET,
            bound=bound,
            table_config_map="",
        )
        job.rings = None
    found.start()
    return found


def mark(one: World, status: str, *, index: int = 0) -> Pod:
    pod = one.pods_of(NAME)[index]
    return one.change(pod, annotations={MARK: f"Unhealthy-{status}"})


def kubelet_ends(one: World, *pods: Pod) -> None:
    for pod in pods:
        del one.pods[pod.uid]


def first_deletion_s(one: World) -> float:
    began_s = one.now_s
    one.settle(until=lambda: bool(one.deleted), for_s=60.0)
    assert one.deleted, "nothing was deleted"
    return one.now_s - began_s


@pytest.mark.parametrize("mode", ["external-force", "external-grace"])
def test_i1_a_marked_pod_rebuilds_the_whole_instance_after_the_guard_time_and_no_other(mode: str) -> None:
    one = world(mode=mode)
    before, others = one.pods_of(NAME), one.pods_of("chat-0-decode-1")
    mark(one, "CardUnhealthy")
    assert first_deletion_s(one) >= GUARD_S
    one.settle(until=lambda: one.closed(NAME))
    closed = one.job(NAME).ledger.closed[-1]
    assert (closed.outcome, closed.rungs) == (Outcome.RECOVERED, ("job",))
    assert {each.uid for each in one.deleted} == {pod.uid for pod in before}
    assert one.pods_of("chat-0-decode-1") == others


def test_i1_better_a_mark_for_a_lost_node_is_only_shown_since_patience_and_brake_judge_nodes() -> None:
    one = world()
    mark(one, "NodeUnhealthy")
    one.settle(for_s=60.0)
    assert one.deleted == []
    assert one.job(NAME).ledger.recovery is None


@pytest.mark.parametrize("retries", [None, "-1", "many"], ids=["absent", "negative", "invalid"])
def test_i2_a_failed_program_without_valid_retries_is_ignored(retries: str | None) -> None:
    one = world(fault_retry_times=retries)
    mark(one, "pod-failed")
    one.settle(for_s=60.0)
    assert one.deleted == []
    assert one.job(NAME).ledger.parked is None


def test_i3_a_second_marked_pod_is_merged_into_the_recovery_of_the_first() -> None:
    one = world()
    mark(one, "CardUnhealthy")
    one.settle(for_s=5.0)
    mark(one, "CardUnhealthy", index=1)
    one.settle(until=lambda: one.closed(NAME))
    assert len(one.job(NAME).ledger.closed) == 1
    assert len(one.deleted) == 2


@pytest.mark.parametrize(
    "gang",
    [
        pytest.param("true", id="I4-gang"),
        pytest.param(None, id="I5-better-without-gang-too-since-ranks-live-together"),
    ],
)
def test_i4_a_deleted_pod_rebuilds_its_instance(gang: str | None) -> None:
    one = world(**{"infer.huawei.com/gang_schedule": gang})
    gone, left = one.pods_of(NAME)
    kubelet_ends(one, gone)
    assert first_deletion_s(one) >= GUARD_S
    assert left.uid in {each.uid for each in one.deleted}, "beside it the owner's new pod starts anew"
    one.settle(until=lambda: one.closed(NAME))
    assert one.job(NAME).ledger.closed[-1].intent.cause is Cause.MEMBER_REPLACED


def test_i5_a_deleted_pod_of_those_that_stand_alone_is_nobodys_fault() -> None:
    one = world(bound=False)
    kubelet_ends(one, one.pods_of(NAME)[0])
    one.settle(for_s=60.0)
    assert one.deleted == []
    assert one.job(NAME).ledger.closed == ()


def test_i5_a_deleted_pod_of_an_instance_of_one_is_recorded_and_watched() -> None:
    one = world(replicas=1)
    kubelet_ends(one, *one.pods_of(NAME))
    one.settle(until=lambda: one.closed(NAME))
    assert one.deleted == []
    assert one.job(NAME).ledger.closed[-1].outcome is Outcome.RECOVERED


@pytest.mark.parametrize(("retries", "deletes"), [("0", False), ("1", True)])
def test_i6_a_failed_program_is_answered_as_long_as_retries_are_left(retries: str, deletes: bool) -> None:
    one = world(fault_retry_times=retries)
    mark(one, "pod-failed")
    one.settle(for_s=120.0)
    assert bool(one.deleted) is deletes
    assert one.job(NAME).ledger.software_retries_spent == int(deletes)
    if deletes:
        one.deleted.clear()
        mark(one, "pod-failed")
        one.settle(for_s=60.0)
        parked = one.job(NAME).ledger.parked
        assert one.deleted == []
        assert parked is not None
        assert parked.reason == "BudgetSpent"


def test_i7_better_a_node_that_is_back_at_once_kills_no_pods() -> None:
    one = world()
    node = one.pods_of(NAME)[0].node
    one.lose_node(node)
    one.settle(for_s=one.settings.faults.node_not_ready_s / 2)
    one.heal_node(node)
    one.settle(for_s=60.0)
    assert one.deleted == []


def test_i7_pods_of_a_lost_node_are_deleted_at_once_when_our_turn_comes() -> None:
    one = world()
    pod = one.pods_of(NAME)[0]
    one.lose_node(pod.node)
    assert first_deletion_s(one) >= GUARD_S
    assert {each.grace_s for each in one.deleted if each.uid == pod.uid} == {0}


# --- the operator acts: the object is another one, the memory passes on --------------------------------


def rebuild(one: World, *, rebuilt: bool = True) -> None:
    """What the infer-operator does: another object of the name, the old pods go with the old one."""
    job = one.job(NAME)
    kubelet_ends(one, *one.pods_of(NAME))
    job.workload = replace(job.workload, uid=f"{job.workload.uid}'")
    entry = LedgerEntry(ObjectKey("mindie", "l"), "workload", job.ledger, "", "set-1", "1", {})
    job.ledger, _ = remembered(entry, job.workload, rebuilt=rebuilt)


def test_a_rebuild_by_the_operator_is_recorded_and_watched_to_its_end() -> None:
    one = world()
    one.break_card(one.pods_of(NAME)[0])
    one.settle(for_s=3.0)
    assert one.job(NAME).ledger.recovery is not None
    rebuild(one)
    one.settle(until=lambda: one.closed(NAME))
    closed = one.job(NAME).ledger.closed[-1]
    assert (closed.intent.cause, closed.outcome, closed.rungs) == (
        Cause.CHIP_UNHEALTHY,
        Outcome.RECOVERED,
        ("job",),
    )
    assert one.deleted == []


@pytest.mark.parametrize("rebuilt", [True, False], ids=["seen-to-go", "came-back-later"])
def test_a_rebuild_that_we_had_no_fault_for_is_recorded_only_where_the_old_object_was_seen_to_go(
    rebuilt: bool,
) -> None:
    one = world()
    rebuild(one, rebuilt=rebuilt)
    one.settle(for_s=60.0)
    assert [each.intent.cause for each in one.job(NAME).ledger.closed] == [Cause.MEMBER_REPLACED] * rebuilt
    assert one.deleted == []


def test_budgets_outlive_a_rebuild_but_not_another_instance_set() -> None:
    one = world(fault_retry_times="3")
    ledger = one.job(NAME).ledger.model_copy(update={"software_retries_spent": 2})
    entry = LedgerEntry(ObjectKey("mindie", "l"), "workload", ledger, "", "set-1", "1", {})
    workload = replace(one.job(NAME).workload, uid="other")
    assert remembered(entry, workload, rebuilt=False)[0].software_retries_spent == 2
    anew = replace(workload, maker=replace(INSTANCE_SET, uid="set-2"))
    assert remembered(entry, anew, rebuilt=True)[0].software_retries_spent == 0
