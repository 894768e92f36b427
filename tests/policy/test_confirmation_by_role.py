"""The end of an MS recovery: by role, by the failover clock, and by neither where nothing is known."""

from __future__ import annotations

import pytest

from mindie_ha.model.recoveries import Phase
from mindie_ha.model.roles import Activity
from mindie_ha.model.settings import Settings
from tests.policy.pairs import pair
from tests.policy.worlds import START_S, World

A, S, U = Activity.ACTIVE, Activity.STANDBY, Activity.UNKNOWN
NAME = "ms-coordinator"
FIRST, PEER = f"{NAME}-0", f"{NAME}-1"


def settling(first: Activity, peer: Activity) -> World:
    """The node under the first Coordinator was lost; its replacement runs, unready as a standby is."""
    world = pair()
    world.activity = {FIRST: S, PEER: A}
    world.probes = False
    for pod in world.pods_of(NAME):
        world.change(pod, has_readiness_probe=True)
    world.lose_node(world.pods_of(NAME)[0].node)
    world.activity = {FIRST: first, PEER: peer}
    world.settle(until=lambda: world.phase_of(NAME) is Phase.SETTLE, for_s=120)
    for pod in world.pods_of(NAME):
        world.change(pod, has_readiness_probe=True, ready=False)
    return world


def outcome(world: World) -> tuple[str, tuple[str, ...]]:
    """How the newest recovery ended, and by which rungs."""
    closed = world.job(NAME).ledger.closed[-1]
    return closed.outcome.value, closed.rungs


@pytest.mark.parametrize(
    ("first", "peer"),
    [pytest.param(S, A, id="beside the active one"), pytest.param(A, S, id="as the active one")],
)
def test_a_replacement_is_confirmed_by_its_role_though_not_ready(first: Activity, peer: Activity) -> None:
    world = settling(first, peer)
    world.settle(until=lambda: world.closed(NAME), for_s=60)
    assert outcome(world) == ("recovered", ("pod",))


def test_certainly_nobody_active_for_failover_s_turns_to_the_job() -> None:
    world = settling(S, S)
    began_s = world.now_s
    world.settle(until=lambda: world.job(NAME).ledger.recovery.rung == "job", for_s=120)  # type: ignore[union-attr]
    assert 44.0 <= world.now_s - began_s <= 47.0
    world.activity = {FIRST: A, PEER: S}
    world.settle(until=lambda: world.closed(NAME), for_s=120)
    assert outcome(world) == ("recovered", ("pod", "job"))


def test_a_word_that_is_missing_starts_the_clock_anew() -> None:
    world = settling(S, S)
    world.settle(for_s=40)
    world.activity[PEER] = U
    world.settle(for_s=10)
    world.activity[PEER] = S
    world.settle(for_s=40)
    assert world.job(NAME).ledger.recovery.rung == "pod"  # type: ignore[union-attr]
    world.activity[PEER] = A
    world.settle(until=lambda: world.closed(NAME), for_s=60)
    assert outcome(world) == ("recovered", ("pod",))


def test_unknown_never_turns_to_the_job_and_closes_unverified() -> None:
    world = settling(U, U)
    uid = world.pods_of(NAME)[1].uid
    world.settle(until=lambda: world.closed(NAME), for_s=1000)
    assert (outcome(world), world.pods_of(NAME)[1].uid) == (("recovered-unverified", ("pod",)), uid)


def test_a_pod_that_says_it_is_not_well_is_waited_for() -> None:
    world = settling(S, A)
    world.healthy = False
    world.settle(for_s=200)
    assert world.phase_of(NAME) is Phase.SETTLE
    world.healthy = True
    world.settle(until=lambda: world.closed(NAME), for_s=60)
    assert outcome(world)[0] == "recovered"


def test_on_the_job_rung_nobody_active_waits_for_the_start_up() -> None:
    world = pair(label=None)
    world.activity = {FIRST: S, PEER: S}
    world.lose_node(world.pods_of(NAME)[0].node)
    world.settle(until=lambda: world.phase_of(NAME) is Phase.SETTLE, for_s=120)
    world.settle(for_s=300)
    recovery = world.job(NAME).ledger.recovery
    assert recovery is not None
    assert (recovery.phase, recovery.condition, recovery.attempts) == (Phase.SETTLE, "NoActive", {"job": 1})


def test_nobody_active_is_told_when_it_has_lasted_though_nothing_else_happens() -> None:
    world = pair(settings=Settings.model_validate({"roles": {"failover_s": 600.0}}))
    world.activity = {FIRST: S, PEER: S}  # since the world began
    due_s = START_S + 600.0
    assert world.look().wake_at_s == due_s
    assert "NoActive" not in {notice.reason for notice in world.notices}
    world.now_s = due_s
    world.look()
    assert "NoActive" in {notice.reason for notice in world.notices}
