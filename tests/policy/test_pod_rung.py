"""The pod rung: whom it replaces, whom it spares, and when the job rung follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.nodes import Node, Taint
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.recoveries import ClosedRecovery, Outcome, Phase
from mindie_ha.model.settings import MsLadder, RoleSettings, Settings
from mindie_ha.model.workloads import Role
from tests.policy.pairs import pair
from tests.policy.worlds import World

MS = ("ms-controller", "ms-coordinator")
QUICK = Settings.model_validate({"phases": {"settle_s": 5.0}})


def last(world: World, name: str) -> ClosedRecovery:
    return world.job(name).ledger.closed[-1]


def lose(world: World, pod: Pod) -> None:
    """The pod's node is lost, and long enough for that to count."""
    world.lose_node(pod.node)
    world.now_s += world.settings.faults.node_not_ready_s


def deleted(world: World) -> set[str]:
    return {item.uid for item in world.deleted}


def pinned(first: str, second: str, *, nodes: int = 6) -> World:
    """A pair whose Coordinators may be on these nodes only, on the way to be placed anew."""
    world = pair(settings=QUICK, nodes=nodes)
    world.pins = {
        "ms-coordinator-0": frozenset(first.split()),
        "ms-coordinator-1": frozenset(second.split()),
    }
    for pod in world.pods_of("ms-coordinator"):
        del world.pods[pod.uid]
    world.settle(for_s=10.0)
    world.deleted.clear()
    return world


@pytest.mark.parametrize("name", MS)
def test_only_the_pod_on_the_lost_node_is_replaced(name: str) -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of(name)
    others = {pod.uid for pod in world.pods.values() if pod.node != failed.node}
    lose(world, failed)
    world.settle(until=lambda: world.closed(name))
    new, still = world.pods_of(name)
    assert still.uid == peer.uid
    assert new.node not in (failed.node, peer.node)
    assert failed.uid in deleted(world)
    assert not others & {item.uid for item in world.deleted if item.key.name.startswith("ms-")}
    assert (last(world, name).outcome, last(world, name).rungs) == (Outcome.RECOVERED, ("pod",))


def test_a_failed_standby_does_not_disturb_the_active_one() -> None:
    world = pair(settings=QUICK)
    active, standby = world.pods_of("ms-coordinator")
    world.job("ms-coordinator").workload = replace(
        world.job("ms-coordinator").workload,
        labels={**world.job("ms-coordinator").workload.labels, "fault-retry-times": "1"},
    )
    world.change(standby, ready=False, phase=PodPhase.FAILED, exit_code=1)
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.SETTLE)
    world.change(world.pods_of("ms-coordinator")[1], ready=False)  # a standby fails its probe for good
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert deleted(world) == {standby.uid}
    assert world.pods_of("ms-coordinator")[0].uid == active.uid


@pytest.mark.parametrize("label", [None, "off", "true", "On ", "1"])
def test_without_the_label_all_pods_of_the_job_are_replaced(label: str | None) -> None:
    world = pair(label=label, settings=QUICK)
    both = {pod.uid for pod in world.pods_of("ms-controller")}
    lose(world, world.pods_of("ms-controller")[0])
    world.settle(until=lambda: world.closed("ms-controller"))
    assert both <= deleted(world)
    assert last(world, "ms-controller").rungs == ("job",)


@pytest.mark.parametrize(
    ("label", "told"), [(None, False), ("on", False), ("off", False), ("true", True), ("On ", True)]
)
def test_values_that_only_look_like_the_switch_are_told(label: str | None, told: bool) -> None:
    world = pair(label=label)
    world.look()
    assert any(notice.reason == "UnknownPodRescheduling" for notice in world.notices) is told


@pytest.mark.parametrize(
    ("label", "rungs"), [(None, ("pod",)), ("off", ("job",)), ("true", ("job",)), ("on", ("pod",))]
)
def test_by_setting_two_replicas_without_the_label_count_as_active_and_standby(
    label: str | None, rungs: tuple[str, ...]
) -> None:
    world = pair(label=label, settings=Settings(roles=RoleSettings(ms_default_ladder=MsLadder.POD)))
    world.lose_node(world.pods_of("ms-controller")[0].node)
    world.settle(until=lambda: world.closed("ms-controller"))
    assert last(world, "ms-controller").rungs == rungs


def test_one_replica_has_no_pod_rung() -> None:
    world = pair(settings=QUICK)
    job = world.job("ms-controller")
    world.change(world.pods_of("ms-controller")[1], owner_uid="another")
    job.workload = replace(job.workload, replicas=1)
    lose(world, world.pods_of("ms-controller")[0])
    world.settle(until=lambda: world.closed("ms-controller"))
    assert last(world, "ms-controller").rungs == ("job",)


def test_both_replicas_hit_at_once_start_the_job_rung_directly_and_say_so() -> None:
    world = pair(settings=QUICK)
    for pod in world.pods_of("ms-coordinator"):
        world.lose_node(pod.node)
    world.now_s += 15.0
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("job",)
    assert [one.rung for one in world.job("ms-coordinator").ledger.attempts] == ["job"]
    [told] = {one.message for one in world.notices if one.key.startswith("opened:job-ms-coordinator")}
    assert "pod rung is passed over" in told


def test_the_peer_hit_before_anything_was_deleted_makes_it_the_job_rung_at_once() -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    lose(world, failed)
    world.look(cut=True)
    assert world.phase_of("ms-coordinator") is Phase.ISOLATE
    lose(world, peer)
    began_s = world.now_s
    world.settle(until=lambda: len(world.deleted) >= 2, for_s=5.0)
    assert deleted(world) >= {failed.uid, peer.uid}
    assert world.now_s - began_s < 5.0
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("job",)
    assert "no peer that runs would be left" in last(world, "ms-coordinator").history[0].exit


def test_the_peer_hit_during_the_pod_rung_starts_the_job_rung() -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    lose(world, failed)
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.SETTLE)
    lose(world, peer)
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod", "job")
    assert peer.uid in deleted(world)


def test_a_replacement_hit_is_replaced_by_the_same_rung() -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    lose(world, failed)
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.SETTLE)
    lose(world, world.pods_of("ms-coordinator")[0])
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod",)
    assert peer.uid in {pod.uid for pod in world.pods_of("ms-coordinator")}


def test_of_three_replicas_a_second_one_hit_is_added_and_who_is_well_is_spared() -> None:
    world = World(settings=QUICK)
    world.add("p0")
    world.add("ms-coordinator", replicas=3, role=Role.COORDINATOR, labels={"pod-rescheduling": "on"})
    world.start()
    first, second, third = world.pods_of("ms-coordinator")
    lose(world, first)
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.SETTLE)
    again, *_ = world.pods_of("ms-coordinator")
    lose(world, second)
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod",)
    assert {again.uid, third.uid} < {pod.uid for pod in world.pods_of("ms-coordinator")}


# --- when the job rung follows -----------------------------------------------------------------------------


def test_no_place_beside_the_peer_turns_to_the_job_at_the_deadline_after_gone() -> None:
    world = pinned("n3 n4", "n4 n5")
    failed, peer = world.pods_of("ms-coordinator")
    assert (failed.node, peer.node) == ("n3", "n4")
    lose(world, failed)
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.PLACE)
    recovery = world.job("ms-coordinator").ledger.recovery
    assert recovery is not None
    gone_s = next(one.end_s for one in recovery.history if one.phase is Phase.GONE)
    assert gone_s is not None
    world.settle(until=lambda: peer.uid in deleted(world), for_s=60.0)
    assert world.now_s - gone_s == pytest.approx(12.0, abs=1.01)
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod", "job")
    assert [pod.node for pod in world.pods_of("ms-coordinator")] == ["n4", "n5"]


def test_where_the_job_would_find_no_place_either_the_peer_goes_on_serving() -> None:
    world = pinned("n3 n4", "n3 n4")
    failed, peer = world.pods_of("ms-coordinator")
    lose(world, failed)
    world.settle(for_s=200.0)
    recovery = world.job("ms-coordinator").ledger.recovery
    assert recovery is not None
    assert (recovery.rung, recovery.phase) == ("pod", Phase.PLACE)
    assert recovery.condition == "WaitingForCapacity"
    assert peer.uid not in deleted(world)
    world.writes = 0
    world.settle(for_s=60.0)
    assert world.writes == 0
    world.heal_node(failed.node)
    world.now_s += world.settings.faults.release_after_s
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod",)
    assert peer.uid in {pod.uid for pod in world.pods_of("ms-coordinator")}


def test_too_few_open_nodes_keep_the_peer() -> None:
    world = pinned("n3 n4", "n4 n5")
    failed, peer = world.pods_of("ms-coordinator")
    lose(world, failed)
    for name, machine in world.machines.items():
        if name not in (failed.node, peer.node):
            machine.node = replace(machine.node, unschedulable=True)
    world.settle(for_s=60.0)
    recovery = world.job("ms-coordinator").ledger.recovery
    assert recovery is not None
    assert peer.uid not in deleted(world)
    assert "1 nodes are open" in recovery.condition_message


def test_pods_that_are_not_created_anew_turn_to_the_job() -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    world.recreates = False
    lose(world, failed)
    world.settle(for_s=25.0)
    assert peer.uid not in deleted(world)
    world.settle(until=lambda: peer.uid in deleted(world), for_s=20.0)
    world.recreates = True
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod", "job")


def test_a_pod_without_an_address_turns_to_the_job() -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    world.starts = False
    lose(world, failed)
    world.settle(for_s=58.0)
    assert world.phase_of("ms-coordinator") is Phase.TABLE
    assert peer.uid not in deleted(world)
    world.settle(until=lambda: peer.uid in deleted(world), for_s=20.0)
    world.starts = True
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod", "job")


def test_a_replacement_that_never_gets_well_turns_to_the_job() -> None:
    settings = Settings.model_validate({"phases": {"settle_s": 5.0, "startup_s": 100.0}})
    world = pair(settings=settings)
    failed, peer = world.pods_of("ms-controller")
    lose(world, failed)
    world.settle(until=lambda: world.phase_of("ms-controller") is Phase.SETTLE)
    world.change(world.pods_of("ms-controller")[0], ready=False)
    world.settle(for_s=90.0)
    assert peer.uid not in deleted(world)
    world.settle(until=lambda: world.closed("ms-controller"))
    assert last(world, "ms-controller").rungs == ("pod", "job")


def test_a_pod_that_does_not_go_keeps_its_peer_and_is_named() -> None:
    """Nothing of a gang is placed while one of its pods terminates: the job rung could not be placed."""
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    world.change(failed, finalizers=("example.com/stuck",))
    lose(world, failed)
    world.settle(for_s=300.0)
    recovery = world.job("ms-coordinator").ledger.recovery
    assert recovery is not None
    assert (recovery.phase, recovery.condition) == (Phase.GONE, "WaitingForFinalizer")
    assert "example.com/stuck" in recovery.condition_message
    assert peer.uid not in deleted(world)
    world.writes = 0
    world.settle(for_s=130.0)
    assert world.writes == 0
    world.change(world.pods[failed.uid], finalizers=())
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod",)


def test_a_replacement_that_vanishes_late_has_the_whole_time_to_be_placed() -> None:
    world = pair(settings=Settings.model_validate({"phases": {"settle_s": 60.0}}))
    failed, peer = world.pods_of("ms-coordinator")
    lose(world, failed)
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.SETTLE)
    world.settle(for_s=30.0)
    world.schedules = False
    del world.pods[world.pods_of("ms-coordinator")[0].uid]
    world.settle(for_s=10.0)
    assert world.phase_of("ms-coordinator") is Phase.PLACE
    assert peer.uid not in deleted(world)
    world.schedules = True
    world.settle(until=lambda: world.closed("ms-coordinator"))
    assert last(world, "ms-coordinator").rungs == ("pod",)


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        pytest.param({}, True, id="ready"),
        pytest.param({"ready": False}, False, id="lost"),
        pytest.param({"exists": False}, False, id="gone"),
        pytest.param({"unschedulable": True}, False, id="cordoned"),
        pytest.param({"taints": (Taint("theirs", "NoSchedule"),)}, False, id="tainted"),
        pytest.param({"taints": (Taint("theirs", "PreferNoSchedule"),)}, True, id="only-disliked"),
    ],
)
def test_which_nodes_are_open(changes: dict[str, object], is_open: bool) -> None:
    assert replace(Node("n0"), **changes).open is is_open  # type: ignore[arg-type]


# --- the table ---------------------------------------------------------------------------------------------


def test_a_table_during_failover_lacks_the_pod_that_left_and_keeps_its_peer() -> None:
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    lose(world, failed)
    world.starts = False
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.TABLE)
    world.look()
    assert world.groups()[0] == [peer.ip]
    world.starts = True
    world.settle(until=lambda: world.closed("ms-coordinator"))
    new = world.pods_of("ms-coordinator")[0]
    assert world.groups()[0] == [new.ip, peer.ip]
