"""Training jobs, whatever happens: whom a recovery may take, and what has to be written first.

Random histories of faults, deaths of ours, lost mailboxes and full clusters, in the pure world; each plan is
judged before it acts. The leader is never replaced without all others; nobody outside the recorded targets is
deleted; targets grow with an attempt; what survivors and processes are told is in the ledger before.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindie_ha.model.decisions import AskRejoin, DeletePod, Plan, TellExit
from mindie_ha.model.levels import Level
from mindie_ha.model.pods import PodPhase
from mindie_ha.policy.leaders import is_leader
from mindie_ha.policy.manners import MARK_EXIT
from tests.policy.gangs import JOB, ON, Gang, gang

RANKS = 4
SHAPES = {
    "plain": {},
    "super-pods": {"sp-block": "16"},
    "racks": {"ra-block": "16"},
    "levels": {"huawei.com/affinity-config": "level1=2,level2=4"},
}
EVENTS = st.tuples(
    st.sampled_from(
        (
            "card",
            "card",
            "lose",
            "board",
            "sick",
            "fail",
            "remove",
            "heal",
            "full",
            "room",
            "mailbox",
            "crash",
            "wait",
        )
    ),
    st.integers(0, RANKS - 1),
)


class Judge:
    """Looks at each plan before it acts."""

    def __init__(self, world: Gang) -> None:
        self.world = world
        self.first: dict[str, str] = {}  # UID -> why it became a target
        world.judges.append(self.judge)

    def judge(self, plan: Plan) -> None:
        """All promises at once."""
        (decision,) = plan.decisions
        recovery, before = decision.ledger.recovery, self.world.job(JOB).ledger.recovery
        deletions = [item for item in decision.actions if isinstance(item, DeletePod)]
        if recovery is None:
            assert not deletions
            return
        targets = {target.uid for target in recovery.targets}
        assert {item.uid for item in deletions} <= targets
        self.leader_goes_with_all(recovery.rung, targets, deletions)
        known = {target.uid for target in before.targets} if before is not None else set()
        if before is not None and before.epoch == recovery.epoch and targets - known:
            grown = before.phase in ("isolate", "backoff") or before.attempts != recovery.attempts
            assert grown or recovery.phase == "stop", "targets grew without an attempt"
        for action in decision.actions:
            if isinstance(action, AskRejoin):
                assert recovery.rejoin == action.retry_time
                assert self.world.reset is not None
                assert action.retry_time > self.world.reset.retry_time
            if isinstance(action, TellExit) and action.ending:
                assert any(one.mark == MARK_EXIT for one in recovery.obligations)

    def leader_goes_with_all(self, rung: str, targets: set[str], deletions: list[DeletePod]) -> None:
        """Whoever deletes the leader has everybody who stands beside it among the targets."""
        pods = {pod.uid: pod for pod in self.world.pods_of(JOB)}
        taken = [pods[item.uid] for item in deletions if item.uid in pods]
        if any(is_leader(pod) for pod in taken):
            assert rung == "job"
            assert {uid for uid, pod in pods.items() if pod.alive} <= targets


def happen(world: Gang, event: tuple[str, int]) -> None:
    """Something happens to a rank, its server or to everybody."""
    kind, number = event
    pods = world.pods_of(JOB)
    pod = pods[number % len(pods)] if pods else None
    placed = pod if pod is not None and pod.node else None
    match kind:
        case "card" if placed:
            world.break_card(placed, number)
        case "lose" if placed:
            since_s = world.now_s - world.settings.faults.node_not_ready_s
            machine = world.machines[placed.node]
            machine.node = replace(machine.node, ready=False, not_ready_since_s=since_s)
        case "board" if placed:
            world.board(placed.node, listed=True)
        case "sick" if placed and placed.devices:
            world.card(pods.index(placed), Level.SUB_HEALTH)
        case "fail" if pod and pod.phase is PodPhase.RUNNING:
            world.fail(pod)
        case "remove" if pod:
            del world.pods[pod.uid]
        case "heal":
            heal(world)
        case _:
            surround(world, kind)


def surround(world: Gang, kind: str) -> None:
    """What happens beside the job."""
    match kind:
        case "full" | "room":
            world.schedules = kind == "room"
        case "mailbox":
            world.reset = None if world.reset is not None else world.mailbox
        case "wait":
            world.settle(for_s=5.0)
        case _:
            world.look(cut=True)


def heal(world: Gang) -> None:
    """Every machine is well."""
    world.troubles.clear()
    for name, machine in world.machines.items():
        machine.bad.clear()
        machine.faults.clear()
        world.heal_node(name)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    events=st.lists(EVENTS, max_size=10), labelled=st.booleans(), strategy=st.sampled_from(["", "graceExit"])
)
def test_no_history_breaks_a_promise_to_a_training_job(
    shape: str, events: list[tuple[str, int]], labelled: bool, strategy: str
) -> None:
    labels = {**(ON if labelled else {}), "fault-retry-times": "3"}
    if strategy:
        labels["subHealthyStrategy"] = strategy
        events = [("sick", len(events) % RANKS), *events]  # chance alone seldom comes by it
    world = gang(labels=labels, annotations=SHAPES[shape], replicas=RANKS, nodes=RANKS + 3)
    Judge(world)
    for event in events:
        happen(world, event)
        world.settle(for_s=2.0)
    heal(world)
    world.schedules = True
    world.reset = world.reset or world.mailbox
    ledger = world.job(JOB).ledger
    world.settle(for_s=1500.0, until=lambda: world.job(JOB).ledger.recovery is None)
    ledger = world.job(JOB).ledger
    assert ledger.recovery is None
    assert ledger.software_retries_spent <= 3
    if ledger.parked is None:
        world.settle(for_s=5.0)
        assert sorted(pod.rank or 0 for pod in world.pods_of(JOB)) == list(range(RANKS))
        assert world.reset is not None
        assert not world.reset.graceful_exit
