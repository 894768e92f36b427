"""How pods are deleted, and when it widens or ends: vectors M1-M22 of the rescheduling contract §6.4.

P of the contract, sessions of one second without a place, are seconds here. Where our rule is another one the
name says which, and `docs/decisions/018` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mindie_ha.model.levels import Level
from mindie_ha.model.pods import PodPhase
from mindie_ha.model.recoveries import Phase
from tests.policy.gangs import JOB, ON, Gang, gang

GRACE = {"fault-scheduling": "grace"}
Happens = Callable[[Gang], object]


def card(world: Gang) -> None:
    world.break_card(world.pod(1))


def sick(world: Gang) -> None:
    world.card(1, Level.SUB_HEALTH)


def sick_and_broken(world: Gang) -> None:
    sick(world)
    card(world)


def lost(world: Gang) -> None:
    world.lose_node(world.node(1))
    world.now_s += 15.0


METHODS = [
    pytest.param({}, card, {"0": 0, "1": 0}, 0, id="M1-force"),
    pytest.param(GRACE, card, {"0": None, "1": None}, 0, id="M3-the-pods-own-grace"),
    pytest.param(GRACE, lost, {"0": None, "1": 0}, 0, id="M4-at-once-where-no-kubelet-answers"),
    pytest.param(
        {**GRACE, "subHealthyStrategy": "forceExit"},
        sick,
        {"0": 0, "1": 0},
        0,
        id="M8-force-exit-beats-grace",
    ),
    pytest.param(
        {"subHealthyStrategy": "graceExit"}, sick, {"0": None, "1": None}, 1, id="M9-told-and-with-grace"
    ),
    pytest.param(
        {"subHealthyStrategy": "graceExit"}, sick_and_broken, {"0": 0, "1": 0}, 0, id="M10-hardware-too"
    ),
]


@pytest.mark.parametrize(("labels", "happens", "graces", "told"), METHODS)
def test_method(labels: dict[str, str], happens: Happens, graces: dict[str, int | None], told: int) -> None:
    world = gang(labels=labels)
    uids = {pod.uid for pod in world.pods_of(JOB)}
    happens(world)
    world.settle(for_s=5.0, until=lambda: len(world.deleted) >= 2)
    assert {item.key.name.removeprefix(f"{JOB}-"): item.grace_s for item in world.deleted} == graces
    assert {item.uid for item in world.deleted} == uids
    assert [one.ending for one in world.told] == [True] * told


def test_m9_the_word_is_taken_back_when_the_successors_have_their_place() -> None:
    world = gang(labels={"subHealthyStrategy": "graceExit"})
    sick(world)
    world.look()
    world.settle(for_s=90.0, until=lambda: len(world.told) == 2)
    assert [one.ending for one in world.told] == [True, False]
    assert all(pod.node for pod in world.pods_of(JOB))


@pytest.mark.parametrize("count", [201, 1000])
def test_m2_every_pod_of_a_large_job_is_deleted_exactly_once(count: int) -> None:
    """The reference sends batches of 200; we send each pod once and pace requests at the API client."""
    world = gang(replicas=count, nodes=1, start=False)
    world.turn()
    machine = world.machines["n0"]
    for index, pod in enumerate(world.pods_of(JOB)):
        name = f"n{index}"
        node = replace(machine.node, name=name, uid=name)
        world.machines[name] = replace(machine, node=node, bad=set(), listed=set(), faults=[])
        world.put(pod, name, [f"Ascend910-{i}" for i in range(8)])
    world.turn()
    world.look()
    for pod in world.pods_of(JOB):
        world.board(pod.node, listed=True)
    for _ in range(4):
        world.look()
    assert len(world.deleted) == len({item.uid for item in world.deleted}) == count


def stuck(after_s: float) -> Gang:
    """A pod that does not end by itself, so long after its deletion was asked for."""
    world = gang(labels=GRACE)
    card(world)
    world.ends = False
    world.look()
    world.settle(for_s=2.0)
    asked = len(world.deleted)
    assert asked == 2
    phase_s = world.now_s
    recovery = world.job(JOB).ledger.recovery
    assert recovery is not None
    assert recovery.phase is Phase.GONE
    world.now_s = recovery.phase_since_s + after_s
    assert phase_s <= world.now_s
    world.look()
    return world


def test_m5_m6_grace_is_waited_for_900_seconds_and_then_forced() -> None:
    assert [item.grace_s for item in stuck(899.0).deleted] == [None, None]
    assert [item.grace_s for item in stuck(901.0).deleted] == [None, None, 0, 0]


def test_m7_a_record_is_never_dropped_for_its_age() -> None:
    """The reference drops it after 1201 s and starts anew; ours goes on and keeps its attempts."""
    world = stuck(1201.0)
    ledger = world.job(JOB).ledger
    assert ledger.recovery is not None
    assert ledger.epoch == 1
    assert [item.grace_s for item in world.deleted][-2:] == [0, 0]


def homeless(*, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Gang:
    """Rank 1 is replaced and finds no node."""
    world = gang(labels=labels, annotations=annotations, replicas=3)
    card(world)
    world.schedules = False
    world.wait(2.0)
    return world


def test_m11_after_twelve_seconds_without_a_place_everything_is_replaced() -> None:
    world = homeless(labels=ON)
    world.wait(8.0)
    assert world.old == {"1"}
    world.wait(5.0)
    assert world.old == {"0", "1", "2"}


def test_m12_a_place_in_the_eleventh_second_is_in_time() -> None:
    world = homeless(labels=ON)
    world.wait(8.0)
    world.schedules = True
    world.settle(for_s=60.0, until=lambda: world.closed(JOB))
    assert world.closed(JOB)
    assert world.old == {"1"}


def test_m13_a_job_that_is_limited_to_its_pods_never_widens() -> None:
    world = homeless(annotations={"huawei.com/recover_policy_path": "pod"})
    world.wait(120.0)
    assert world.old == {"1"}
    assert world.job(JOB).ledger.recovery is not None


@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        pytest.param(ON, ["1", "1"], id="M14-pod-level-at-once"),
        pytest.param({}, ["0", "1", "2"] * 2, id="M15-job-level-is-answered-too"),
    ],
)
def test_a_replacement_that_fails(labels: dict[str, str], taken: list[str]) -> None:
    """M15: the reference does nothing until its record expires."""
    world = gang(labels={**labels, "fault-retry-times": "3"}, replicas=3)
    card(world)
    world.look()
    first = len(taken) // 2
    world.settle(
        for_s=30.0, until=lambda: len(world.deleted) == first and all(p.ip for p in world.pods_of(JOB))
    )
    world.fail(world.pod(1))
    world.settle(for_s=30.0, until=lambda: len(world.deleted) == len(taken))
    assert sorted(item.key.name.removeprefix(f"{JOB}-") for item in world.deleted) == sorted(taken)
    assert world.job(JOB).ledger.software_retries_spent == 1


def test_m16_while_an_old_pod_is_there_the_deletion_is_not_complete() -> None:
    world = gang()
    world.change(world.pod(0), finalizers=("mindie.io/hold",))
    card(world)
    world.look()
    world.wait(20.0)
    assert world.phase_of(JOB) is Phase.GONE


def test_m17_m18_recovered_is_when_every_rank_runs_and_not_when_enough_have_a_node() -> None:
    """The reference is content with a node for `minAvailable` pods, of which M18 has one of two."""
    world = gang()
    world.starts = False
    card(world)
    world.look()
    world.wait(30.0)
    assert all(pod.node for pod in world.pods_of(JOB))
    assert world.phase_of(JOB) is Phase.SETTLE
    world.starts = True
    world.settle(for_s=20.0, until=lambda: world.closed(JOB))
    assert world.closed(JOB)
    assert all(pod.phase is PodPhase.RUNNING for pod in world.pods_of(JOB))


def test_m19_without_the_label_there_is_nothing_to_widen() -> None:
    world = homeless()
    assert world.old == {"0", "1", "2"}
    world.wait(30.0)
    assert len(world.deleted) == 3


def test_m20_with_it_the_clock_runs_from_when_the_old_pod_was_gone() -> None:
    world = homeless(labels=ON)
    recovery = world.job(JOB).ledger.recovery
    assert recovery is not None
    gone_s = next(one.end_s for one in recovery.history if one.phase is Phase.GONE)
    assert gone_s is not None
    assert recovery.deadline_s == pytest.approx(gone_s + 12.0)


@pytest.mark.parametrize("scheduled", [True, False], ids=["M21-backup-has-a-node", "M22-backup-waits"])
def test_nothing_is_deleted_for_a_hot_switch(scheduled: bool) -> None:
    """Hot switching is not served yet: a backup pod is nobody's rank, and the sick one runs on."""
    world = gang(labels={"subHealthyStrategy": "hotSwitch"})
    sick(world)
    source = world.pod(1)
    backup = replace(
        source,
        key=replace(source.key, name=f"{JOB}-1-hot-0001"),
        uid=source.uid.replace("0000-4000", "1111-4000"),  # type: ignore[arg-type]
        node="n5" if scheduled else "",
        devices=(),
        labels={"podType": "backup"},
    )
    world.pods[backup.uid] = backup
    world.wait(20.0)
    assert not world.deleted
    assert world.cause() is None


def test_a_job_with_one_rank_twice_is_not_back() -> None:
    world = gang()
    card(world)
    world.settle(for_s=60.0, until=lambda: world.phase_of(JOB) is Phase.SETTLE)
    last = world.pods_of(JOB)[-1]
    first = next(pod for pod in world.pods_of(JOB) if pod.rank == 0)
    world.change(last, rank=0, labels=first.labels)
    world.settle(for_s=120.0)
    assert not world.closed(JOB)
    world.change(last, rank=last.rank, labels=last.labels)
    world.settle(for_s=60.0)
    assert world.closed(JOB)
