"""Recoveries that no fault asked for: a Controller that stays away, and one that forgot its servers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import PodUID
from mindie_ha.model.ledgers import Rearm, WorkloadLedger
from mindie_ha.model.recoveries import ClosedRecovery, Intent, IntentKind, Outcome
from mindie_ha.model.roles import Activity, Streams
from mindie_ha.model.settings import PhaseSettings, RoleSettings, Settings, StateLost
from mindie_ha.policy import records
from tests.policy.pairs import pair, spares_the_last
from tests.policy.worlds import START_S, World

CONTROLLER, COORDINATOR = "ms-controller", "ms-coordinator"
WAIT_S = 120.0


def settings(lost: StateLost = StateLost.PARK) -> Settings:
    """Short waits, so that seconds of the world can be walked one by one."""
    roles = RoleSettings(unsubscribed_s=WAIT_S, state_lost_s=WAIT_S, controller_state_lost=lost)
    return Settings(roles=roles, phases=PhaseSettings(settle_s=5, unverified_after_s=30))


def ledger(world: World, name: str = CONTROLLER) -> WorkloadLedger:
    """The memory of a workload."""
    return world.job(name).ledger


# --- a Controller that gave up -----------------------------------------------------------------------------


def away(*, label: str | None = "on", last: int | None = 0) -> World:
    """Nobody is subscribed since the start; the `last`-th Controller was the last that had been."""
    world = pair(label=label, settings=settings(), nodes=10)
    world.judges.append(lambda plan: spares_the_last(world, plan))
    uid = world.pods_of(CONTROLLER)[last].uid if last is not None else PodUID("gone")
    job = world.job(CONTROLLER)
    job.ledger = records.changed(job.ledger, subscribed_uid=uid)
    world.streams = Streams(listening_since_s=world.now_s)
    return world


def uids(world: World, name: str = CONTROLLER) -> list[str]:
    """UIDs of a workload's pods, by name."""
    return [pod.uid for pod in world.pods_of(name)]


def test_the_last_subscriber_is_restarted_when_it_stays_away_for_so_long() -> None:
    world = away(last=1)
    before = uids(world)
    world.settle(for_s=WAIT_S - 5)
    assert not world.deleted
    world.settle(until=lambda: world.closed(CONTROLLER), for_s=120)
    closed = ledger(world).closed[-1]
    assert (closed.intent.kind, closed.intent.cause) == (IntentKind.CONDITION, "ControllerUnsubscribed")
    assert (closed.rungs, closed.outcome) == (("pod",), "recovered-unverified")
    assert [old == new for old, new in zip(before, uids(world), strict=True)] == [True, False]
    assert len(ledger(world).attempts) == 1


def test_a_lone_controller_is_restarted_as_a_job() -> None:
    world = away(label=None)
    world.settle(until=lambda: world.closed(CONTROLLER), for_s=300)
    assert ledger(world).closed[-1].rungs == ("job",)


def test_where_the_last_subscriber_is_gone_the_oldest_is_taken_and_the_next_waits_as_long() -> None:
    world = away(last=None)
    first, second = world.pods_of(CONTROLLER)
    world.change(second, started_at_s=(first.started_at_s or 0) - 10)
    world.settle(until=lambda: world.closed(CONTROLLER), for_s=300)
    assert uids(world)[0] == first.uid
    assert uids(world)[1] != second.uid
    count = len(world.deleted)
    world.settle(for_s=WAIT_S - 10)
    assert len(world.deleted) == count


@pytest.mark.parametrize(
    "streams",
    [
        pytest.param(Streams(frozenset({"10.1.9.9"})), id="somebody is subscribed, from wherever"),
        pytest.param(Streams(listening_since_s=START_S + 10_000), id="we began to listen only now"),
        pytest.param(Streams(left_s=START_S + 10_000), id="it left only now"),
    ],
)
def test_others_are_left_alone(streams: Streams) -> None:
    world = away()
    world.streams = streams
    world.settle(for_s=WAIT_S + 30)
    assert not world.deleted


def test_a_controller_that_never_subscribed_is_left_alone() -> None:
    world = away()
    job = world.job(CONTROLLER)
    job.ledger = records.changed(job.ledger, subscribed_uid="")
    world.settle(for_s=WAIT_S + 30)
    assert not world.deleted


def test_one_that_comes_back_before_the_deletion_is_left_alone() -> None:
    world = away()
    world.settle(for_s=WAIT_S - 2)
    world.streams = replace(world.streams, ips=frozenset({world.pods_of(CONTROLLER)[0].ip}))
    world.settle(for_s=60)
    assert not world.deleted


# --- a Controller that lost its state ----------------------------------------------------------------------


def rebuilt(lost: StateLost = StateLost.PARK) -> World:
    """The Controller's job was rebuilt, and the Coordinators are not Ready."""
    world = pair(label=None, settings=settings(lost), nodes=10)
    silence(world)
    recovery = ClosedRecovery(
        epoch=1,
        intent=Intent(kind=IntentKind.FAULT, cause=Cause.NODE_NOT_READY, at_s=world.now_s, summary="a node"),
        outcome=Outcome.RECOVERED,
        rungs=("job",),
        opened_at_s=world.now_s - 60,
        closed_at_s=world.now_s,
    )
    job = world.job(CONTROLLER)
    job.ledger = records.changed(job.ledger, epoch=1, closed=(recovery,))
    return world


def silence(world: World, *, ready: bool = False) -> None:
    """The Coordinators pass their probes, or not."""
    for pod in world.pods_of(COORDINATOR):
        world.change(pod, ready=ready)


def test_a_rebuilt_controller_without_a_serving_coordinator_parks() -> None:
    world = rebuilt()
    world.settle(for_s=WAIT_S - 20)
    assert ledger(world).parked is None
    world.settle(until=lambda: ledger(world).parked is not None, for_s=120)
    parked = ledger(world).parked
    assert parked is not None
    assert parked.reason == "ControllerStateLost"
    assert not world.deleted


def test_by_setting_the_servers_are_restarted_once_before_it_parks() -> None:
    world = rebuilt(StateLost.RESTART_SERVERS)
    before = {name: uids(world, name) for name in ("p0", "d0", COORDINATOR)}
    world.settle(until=lambda: world.closed("p0") and world.closed("d0"), for_s=400)
    for name in ("p0", "d0"):
        closed = ledger(world, name).closed
        assert [(one.intent.kind, one.intent.cause) for one in closed] == [
            ("condition", "ControllerStateLost")
        ]
        assert not set(uids(world, name)) & set(before[name])
    assert uids(world, COORDINATOR) == before[COORDINATOR]
    assert ledger(world).parked is None
    world.settle(until=lambda: ledger(world).parked is not None, for_s=300)
    assert len(ledger(world, "p0").closed) == 1


def test_once_a_coordinator_served_a_later_silence_is_another_matter() -> None:
    world = rebuilt()
    silence(world, ready=True)
    world.settle(for_s=5)
    assert ledger(world).proven_epoch == ledger(world).epoch
    writes = world.writes
    silence(world)
    world.settle(for_s=WAIT_S + 30)
    assert ledger(world).parked is None
    assert world.writes == writes


def test_without_a_decode_nothing_is_concluded() -> None:
    world = rebuilt()
    world.schedules = False
    world.lose_node(world.pods_of("d0")[0].node)
    world.settle(for_s=WAIT_S + 60)
    assert ledger(world).parked is None


def test_coordinators_of_whom_nothing_is_known_count_as_serving() -> None:
    world = rebuilt()
    for pod in world.pods_of(COORDINATOR):
        world.change(pod, has_readiness_probe=False)
    world.activity = {pod.key.name: Activity.UNKNOWN for pod in world.pods_of(COORDINATOR)}
    world.settle(for_s=WAIT_S + 60)
    assert ledger(world).parked is None


def test_a_person_who_re_arms_it_gets_the_whole_time_again() -> None:
    world = rebuilt()
    world.settle(until=lambda: ledger(world).parked is not None, for_s=300)
    job = world.job(CONTROLLER)
    rearm = Rearm(person="person:ann", reason="ControllerStateLost", at_s=world.now_s)
    job.ledger = records.changed(job.ledger, parked=None, rearmed=rearm)
    world.settle(for_s=WAIT_S - 10)
    assert ledger(world).parked is None
    world.settle(for_s=20)
    assert ledger(world).parked is not None
