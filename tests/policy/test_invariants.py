"""Whatever happens: deletions are recorded, budgets do not grow, and quiet follows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindie_ha.model.pods import PodPhase
from tests.policy.pairs import pair, spares_the_last
from tests.policy.worlds import World, service

NAMES = ("p0", "d0", "ms-controller", "ms-coordinator")
EVENTS = st.tuples(
    st.sampled_from(
        ("card", "heal", "lose", "ready", "fail", "remove", "crash", "switch", "wait", "overrule")
    ),
    st.sampled_from(NAMES),
    st.integers(0, 20),
)

MS_EVENTS = st.tuples(
    st.sampled_from(("lost", "lost", "lost", "ready", "fail", "remove", "crash", "switch", "wait")),
    st.sampled_from(NAMES[2:]),
    st.integers(0, 20),
)


def lose_long_ago(world: World, event: tuple[str, str, int]) -> None:
    """The node under a pod is NotReady for as long as it takes to count."""
    _, name, number = event
    placed = [pod for pod in world.pods_of(name) if pod.node]
    if placed:
        machine = world.machines[placed[number % len(placed)].node]
        since_s = world.now_s - world.settings.faults.node_not_ready_s
        machine.node = replace(machine.node, ready=False, not_ready_since_s=since_s)


def happen(world: World, event: tuple[str, str, int]) -> None:
    """Something happens to a pod of a workload, its node or its cards."""
    kind, name, number = event
    pods = world.pods_of(name)
    pod = pods[number % len(pods)] if pods else None
    machine = world.machines[f"n{number % len(world.machines)}"]
    match kind:
        case "card" if pod and pod.devices:
            world.break_card(pod, number % len(pod.devices))
        case "heal":
            machine.bad.clear()
        case "lose":
            world.lose_node(machine.node.name)
        case "ready":
            world.heal_node(machine.node.name)
        case "fail" if pod and pod.phase is PodPhase.RUNNING:
            world.fail(pod)
        case "remove" if pod:
            del world.pods[pod.uid]
        case "switch":
            world.schedules = not world.schedules
        case "overrule":
            machine.node = replace(machine.node, taints=())
        case "wait":
            world.now_s += float(number)
        case _:
            world.look(cut=True)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS, max_size=12), st.booleans())
def test_no_sequence_of_events_breaks_a_promise(events: list[tuple[str, str, int]], retries: bool) -> None:
    """`World.look` checks each plan; here: it comes to rest, and a quiet world is left alone."""
    prove(service(), events, retries=retries)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(MS_EVENTS, max_size=12), st.booleans())
def test_nobody_takes_the_last_of_active_and_standby(
    events: list[tuple[str, str, int]], retries: bool
) -> None:
    world = pair()
    world.judges.append(lambda plan: spares_the_last(world, plan))
    prove(world, events, retries=retries)


def prove(world: World, events: list[tuple[str, str, int]], *, retries: bool) -> None:
    """Let `events` happen; then all is well, and stays quiet."""
    if retries:
        for job in world.jobs.values():
            job.workload = replace(job.workload, labels={**job.workload.labels, "fault-retry-times": "3"})
    for event in events:
        (lose_long_ago if event[0] == "lost" else happen)(world, event)
        if event[0] != "lost" or event[2] % 2:  # else the next one happens at the same moment
            world.settle(for_s=2.0)
    world.schedules = True
    for name, machine in world.machines.items():
        machine.bad.clear()
        world.heal_node(name)
    world.settle(for_s=900.0, until=lambda: all(job.ledger.recovery is None for job in world.jobs.values()))
    assert all(job.ledger.recovery is None for job in world.jobs.values())
    world.settle(for_s=2.0)
    world.now_s += world.settings.faults.release_after_s
    world.settle(for_s=35.0)
    assert not any(machine.node.taints for machine in world.machines.values())
    world.writes = 0
    world.settle(for_s=5.0)
    assert world.writes == 0
    for job in world.jobs.values():
        assert job.ledger.software_retries_spent <= 3
        if retries and job.ledger.parked is None and job.cards:
            members = {pod.uid for pod in world.pods_of(job.workload.key.name)}
            assert {member.uid for member in job.ledger.members} == members
