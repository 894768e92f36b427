"""Back-off, retries and attempts: the same for each kind of workload and each ladder."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Role
from tests.policy.worlds import World

QUICK = Settings.model_validate(
    {"phases": {"settle_s": 5.0, "startup_s": 20.0}, "budgets": {"max_attempts": 5, "backoff_max_s": 40.0}}
)


@dataclass(frozen=True)
class Kind:
    """A workload under test: its role, how many pods, and whether its label asks for the pod rung."""

    role: Role
    replicas: int = 2
    pod: bool = False

    def world(self, **labels: str) -> World:
        """A service in which it runs as `it`, beside an instance so that there is a table."""
        world = World(settings=QUICK, nodes=8)
        world.add("other")
        more = {"pod-rescheduling": "on"} if self.pod else {}
        named = {name.replace("_", "-"): value for name, value in labels.items()}
        world.add("it", role=self.role, replicas=self.replicas, labels={**more, **named})
        world.start()
        return world


KINDS = [
    pytest.param(Kind(Role.SERVER), id="server"),
    pytest.param(Kind(Role.CONTROLLER, 1), id="controller-alone"),
    pytest.param(Kind(Role.CONTROLLER, pod=True), id="controller-pair"),
    pytest.param(Kind(Role.COORDINATOR, 1), id="coordinator-alone"),
    pytest.param(Kind(Role.COORDINATOR, pod=True), id="coordinator-pair"),
    pytest.param(Kind(Role.TRAINING), id="training"),
]
every_kind = pytest.mark.parametrize("kind", KINDS)


def recovered(world: World, closed: int) -> None:
    world.settle(until=lambda: len(world.job("it").ledger.closed) >= closed or world.job("it").ledger.parked)  # type: ignore[arg-type,return-value]


@every_kind
@pytest.mark.parametrize("label", ["0", None, "-1", "many"])
def test_without_retries_a_failed_program_is_reported_only(kind: Kind, label: str | None) -> None:
    world = kind.world(**({} if label is None else {"fault_retry_times": label}))
    world.fail(world.pods_of("it")[0])
    world.settle(for_s=60.0)
    assert world.deleted == []
    assert any(notice.reason == "SoftwareFaultNotPaid" for notice in world.notices)


@every_kind
def test_retries_are_paid_by_failed_programs_and_by_nothing_else(kind: Kind) -> None:
    world = kind.world(fault_retry_times="2")
    world.fail(world.pods_of("it")[0])
    recovered(world, 1)
    assert world.job("it").ledger.software_retries_spent == 1
    node = world.pods_of("it")[0].node
    world.lose_node(node)
    world.now_s += 15.0
    recovered(world, 2)
    assert world.job("it").ledger.software_retries_spent == 1
    world.fail(world.pods_of("it")[0])
    recovered(world, 3)
    assert world.job("it").ledger.software_retries_spent == 2
    world.fail(world.pods_of("it")[0])
    recovered(world, 4)
    park = world.job("it").ledger.parked
    assert park is not None
    assert park.reason == "BudgetSpent"


@every_kind
def test_what_was_paid_stays_paid_after_a_stable_stretch_and_attempts_do_not(kind: Kind) -> None:
    world = kind.world(fault_retry_times="2")
    world.fail(world.pods_of("it")[0])
    recovered(world, 1)
    world.now_s += QUICK.budgets.stable_s
    world.fail(world.pods_of("it")[0])
    recovered(world, 2)
    ledger = world.job("it").ledger
    assert (ledger.software_retries_spent, len(ledger.attempts)) == (2, 1)


@every_kind
def test_attempts_are_spaced_by_a_doubling_back_off_and_end_in_a_park(kind: Kind) -> None:
    world = kind.world()
    world.probes = True
    pod = world.pods_of("it")[0]
    world.lose_node(pod.node)
    world.now_s += 15.0
    stops: list[float] = []

    def never_well() -> bool:
        for each in world.pods_of("it"):
            world.change(each, ready=False)
        recovery = world.job("it").ledger.recovery
        found = [one.start_s for one in recovery.history if one.phase == "stop"] if recovery else []
        if found and found[-1] not in stops:
            stops.append(found[-1])
        return world.job("it").ledger.parked is not None

    world.settle(until=never_well, for_s=1200.0)
    park = world.job("it").ledger.parked
    assert park is not None
    assert park.reason == "LadderSpent"
    at_s = [one.at_s for one in world.job("it").ledger.attempts]
    assert len(at_s) == QUICK.budgets.max_attempts
    waited = [stop - before for before, stop in zip(at_s, stops[1:], strict=False)]
    for pause_s, wait_s in zip((10.0, 20.0, 40.0, 40.0), waited, strict=True):
        assert wait_s >= 0.9 * pause_s
    assert waited[-1] < 0.9 * 40.0 + 40.0  # and no longer than back-off or start-up limit ask for


@every_kind
def test_a_restart_of_ours_gives_nothing_back(kind: Kind) -> None:
    world = kind.world(fault_retry_times="3")
    world.fail(world.pods_of("it")[0])
    recovered(world, 1)
    job = world.job("it")
    again = type(job.ledger).model_validate_json(job.ledger.model_dump_json())
    assert (again.attempts, again.software_retries_spent) == (job.ledger.attempts, 1)
    world.jobs[job.workload.key] = replace(job, ledger=again)
    world.fail(world.pods_of("it")[0])
    recovered(world, 2)
    assert len(world.job("it").ledger.attempts) == 2
