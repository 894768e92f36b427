"""May the job be restarted, and what does it cost: vectors G1-G14 of the rescheduling contract §6.2.

The gate of the reference is asked once per session; ours is the order of the planner's rules. Where they
differ the id says how, and `docs/decisions/018` says why.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.settings import Settings
from mindie_ha.policy import budgets
from tests.policy.gangs import JOB, Gang, gang

Happens = Callable[[Gang], object]


def card(world: Gang) -> None:
    world.break_card(world.pod(1))


def exit_1(world: Gang) -> None:
    world.fail(world.pod(1))


def both(world: Gang) -> None:
    world.break_card(world.pod(0))
    exit_1(world)


def spent(world: Gang) -> None:
    job = world.job(JOB)
    job.ledger = job.ledger.model_copy(update={"software_retries_spent": 3})
    exit_1(world)


def spent_and_card(world: Gang) -> None:
    job = world.job(JOB)
    job.ledger = job.ledger.model_copy(update={"software_retries_spent": 3})
    card(world)


def unrecorded(world: Gang) -> None:
    world.job(JOB).retry_times = None
    exit_1(world)


THREE = {"fault-retry-times": "3"}

GATES = [
    # labels, what happens, the cause of the recovery, what it paid, what is told
    pytest.param(THREE, lambda _: None, None, 0, "", id="G1-no-fault"),
    pytest.param({}, card, Cause.CHIP_UNHEALTHY, 0, "", id="G2-hardware"),
    pytest.param(THREE, spent_and_card, Cause.CHIP_UNHEALTHY, 3, "", id="G2-hardware-though-all-is-spent"),
    pytest.param({"fault-retry-times": "0"}, exit_1, None, 0, "SoftwareFaultNotPaid", id="G3-told"),
    pytest.param(THREE, unrecorded, Cause.POD_FAILED, 1, "", id="G4-our-own-ledger-is-the-record"),
    pytest.param(THREE, spent, None, 3, "BudgetSpent", id="G5-spent-parks"),
    pytest.param(THREE, exit_1, Cause.POD_FAILED, 1, "", id="G6"),
    pytest.param(THREE, both, Cause.CHIP_UNHEALTHY, 0, "", id="G7-hardware-pays-for-both"),
    pytest.param({"fault-scheduling": "off"}, card, None, 0, "", id="G10-off"),
    pytest.param({"fault-scheduling": "foo"}, card, None, 0, "UnknownFaultScheduling", id="G11-told"),
    pytest.param(
        {"fault-scheduling": "external-force"}, card, Cause.CHIP_UNHEALTHY, 0, "", id="G12-ours-to-delete"
    ),
]


@pytest.mark.parametrize(("labels", "happens", "cause", "paid", "told"), GATES)
def test_gate(labels: dict[str, str], happens: Happens, cause: Cause | None, paid: int, told: str) -> None:
    world = gang(labels=labels)
    happens(world)
    world.look()
    assert world.cause() is cause
    assert world.job(JOB).ledger.software_retries_spent == paid
    assert told == "" or told in {notice.reason for notice in world.notices}
    world.wait(3.0)
    assert bool(world.deleted) is (cause is not None)


@pytest.mark.parametrize("what", [card, exit_1], ids=["card", "exit"])
@pytest.mark.parametrize("value", ["mindie", "fence", ""])
def test_g8_a_job_of_a_platform_is_left_alone(value: str, what: Happens) -> None:
    world = gang(labels=THREE, annotations={"ProcessRecoverStrategy": value})
    what(world)
    world.wait(60.0)
    assert world.cause() is None
    assert not world.deleted
    assert "WaitingForPlatform" in {notice.reason for notice in world.notices}


@pytest.mark.parametrize(
    ("value", "times"),
    [("3", 3), ("0", 0), ("abc", 0), (None, 0), ("-1", 0)],
    ids=["G9-3", "G9-0", "G9-abc", "G9-absent", "negative"],
)
def test_retry_times(value: str | None, times: int) -> None:
    world = gang(labels={} if value is None else {"fault-retry-times": value}, start=False)
    assert budgets.retries_allowed(world.job(JOB).workload) == times


def test_g13_the_newest_of_many_recoveries_are_kept_and_all_are_counted() -> None:
    """The reference keeps ten; we keep five with every phase of theirs, and the number of all."""
    settings = Settings.model_validate({"phases": {"settle_s": 1.0}, "budgets": {"stable_s": 60.0}})
    world = gang(settings=settings)
    for number in range(1, 13):
        broken = world.machines[world.node(1)]
        card(world)
        world.look()
        world.settle(for_s=60.0, until=lambda: world.job(JOB).ledger.recovery is None)
        assert world.job(JOB).ledger.epoch == number
        broken.bad.clear()
        world.settle(for_s=2.0)
        world.now_s += 61.0
    ledger = world.job(JOB).ledger
    assert [one.epoch for one in ledger.closed] == [8, 9, 10, 11, 12]
    assert ledger.epoch == 12
    assert ledger.parked is None
