"""The MS groups of the table while their pods fail and return, in any order and at any pace.

Whenever the planner has come to rest the group holds exactly the pods that can be reached: none that dies,
failed or has no address, and none is missing longer than it has to be. The entry of a pod that stays never
changes. (The instances are well throughout: without any of them the last table is kept as it is.)
"""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from mindie_ha.model.pods import PodPhase
from mindie_ha.model.settings import Settings
from tests.policy.pairs import pair, spares_the_last
from tests.policy.worlds import World

QUICK = Settings.model_validate({"phases": {"settle_s": 5.0}, "budgets": {"max_attempts": 50}})
GROUPS = {"ms-coordinator": 0, "ms-controller": 1}
EVENTS = ("lose", "heal", "fail", "delete", "hang", "let-go")
SLOW = ("recreates", "schedules", "starts")
NO_EXPLANATION = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)  # tracing takes minutes
OF_MS = frozenset(f"n{number}" for number in range(4, 10))


def apart() -> World:
    """A pair whose MS pods are on nodes of their own, and may be on no other."""
    world = pair(settings=QUICK, nodes=10)
    world.pins = {pod.key.name: OF_MS for name in GROUPS for pod in world.pods_of(name)}
    for name in GROUPS:
        for pod in world.pods_of(name):
            del world.pods[pod.uid]
    world.settle(for_s=8.0)
    world.notices.clear()
    return world


def entries(world: World, name: str) -> dict[str, object]:
    """What the published table says of one role, by address."""
    group = json.loads(world.table.text)["server_group_list"][GROUPS[name]]
    return {item["server_ip"]: item for item in group["server_list"]}


def reachable(world: World, name: str) -> list[str]:
    """The addresses that may be in it, in the order of the ranks."""
    pods = [pod for pod in world.pods_of(name) if pod.alive and pod.ip and pod.phase is not PodPhase.FAILED]
    return [pod.ip for pod in sorted(pods, key=lambda pod: pod.rank or 0)]


def happen(world: World, event: str, name: str, index: int) -> None:
    pods = world.pods_of(name)
    if index >= len(pods):
        return
    pod = pods[index]
    match event:
        case "lose" if pod.node:
            world.lose_node(pod.node)
            world.now_s += world.settings.faults.node_not_ready_s
        case "heal" if pod.node:
            world.heal_node(pod.node)
        case "fail" if pod.alive:
            world.change(pod, phase=PodPhase.FAILED, exit_code=1, ready=False)
        case "delete" if pod.alive:
            world.change(pod, terminating_since_s=world.now_s, grace_s=30)
        case "hang":
            world.change(pod, finalizers=("example.com/never",))
        case "let-go":
            world.change(pod, finalizers=())


def judge(world: World, known: dict[str, object]) -> None:
    """The groups as they are now, and that no pod's entry changed in its life."""
    wanted = {name: reachable(world, name) for name in GROUPS}
    if not all(wanted.values()):
        return  # the last table stays a while, so that no group is emptied by a hiccup
    for name in GROUPS:
        assert list(entries(world, name)) == wanted[name]
        for ip, entry in entries(world, name).items():
            assert known.setdefault(ip, entry) == entry


step = st.tuples(
    st.sampled_from(EVENTS), st.sampled_from(tuple(GROUPS)), st.integers(0, 1), st.sampled_from((0, 1, 5, 20))
)


@example(days=[("lose", "ms-coordinator", 0, 0), ("fail", "ms-coordinator", 1, 1)], slow=["recreates"])
@settings(max_examples=15, phases=NO_EXPLANATION, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(days=st.lists(step, min_size=1, max_size=6), slow=st.lists(st.sampled_from(SLOW), max_size=2))
def test_the_groups_of_ms_always_hold_exactly_those_that_can_be_reached(
    days: list[tuple[str, str, int, int]], slow: list[str]
) -> None:
    world = apart()
    world.judges.append(lambda plan: spares_the_last(world, plan))
    known: dict[str, object] = {}

    def judged() -> bool:
        world.settle(for_s=0.5)  # looks until it is quiet, then the others take a turn
        for _ in range(6):
            world.look()
        judge(world, known)
        return False

    judge(world, known)
    for event, name, index, wait_s in days:
        for switch in slow:
            setattr(world, switch, False)
        happen(world, event, name, index)
        for _ in range(wait_s):
            judged()
        for switch in slow:
            setattr(world, switch, True)
    for _ in range(10):
        judged()


@pytest.mark.parametrize("name", list(GROUPS))
def test_each_phase_of_the_pod_rung_has_its_table(name: str) -> None:
    """Without the failed pod from its end to the address of its successor; the peer's entry stays."""
    world = apart()
    failed, peer = world.pods_of(name)
    before = entries(world, name)[peer.ip]
    world.lose_node(failed.node)
    world.now_s += 15.0
    shown: dict[str, int] = {}

    def look() -> bool:
        for _ in range(6):
            world.look()
        recovery = world.job(name).ledger.recovery
        if recovery is not None:
            shown[recovery.phase] = len(entries(world, name))
        assert entries(world, name)[peer.ip] == before
        return world.closed(name)

    switches = ("accepts", *SLOW)
    for switch in switches:
        setattr(world, switch, False)
    for switch, phase in zip(switches, ("stop", "recreate", "place", "table"), strict=True):
        world.settle(until=lambda: look() or world.phase_of(name) == phase, for_s=10.0)  # noqa: B023
        setattr(world, switch, True)
    world.settle(until=look)
    assert shown == {"stop": 2, "recreate": 1, "place": 1, "table": 1, "settle": 2}
    assert list(entries(world, name)) == reachable(world, name)
