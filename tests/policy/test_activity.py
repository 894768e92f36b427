"""Who is active, as a table: what was heard of two pods, and the word on each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.roles import Activity, PodRole, Streams, Told
from mindie_ha.model.workloads import Role
from mindie_ha.policy import activity
from mindie_ha.policy.activity import Sources

A, S, U = Activity.ACTIVE, Activity.STANDBY, Activity.UNKNOWN
FIRST, SECOND = PodUID("uid-0"), PodUID("uid-1")
NOW_S = 1000.0


def pod(number: int, **fields: object) -> Pod:
    """A pod of two that runs on a node of its own."""
    made = Pod(
        key=ObjectKey("mindie", f"ms-{number}"),
        uid=PodUID(f"uid-{number}"),
        owner_uid="job",
        phase=PodPhase.RUNNING,
        node=f"n{number}",
        ip=f"10.1.0.{number}",
        has_readiness_probe=True,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def words(role: Role, pods: tuple[Pod, ...], **sources: object) -> list[Activity]:
    """The activity of each pod."""
    given: dict[str, object] = {
        "nodes": {f"n{number}": Node(name=f"n{number}", uid=f"n-{number}") for number in range(2)},
        "told": {},
        "streams": Streams(),
        "subscribed_before": False,
        "patience_s": 45.0,
        "now_s": NOW_S,
        **sources,
    }
    found = activity.judge(role, pods, Sources(**given))  # type: ignore[arg-type]
    return [found[one.uid].activity for one in pods]


@pytest.mark.parametrize(
    ("told", "ready", "expected"),
    [
        pytest.param({FIRST: Told(A, "200"), SECOND: Told(S, "503")}, (True, False), [A, S], id="as told"),
        pytest.param(
            {FIRST: Told(U, "idle"), SECOND: Told(U, "idle")}, (True, False), [U, U], id="no P or D"
        ),
        pytest.param({}, (True, False), [A, U], id="nobody asked: Ready is the active one"),
        pytest.param({}, (False, False), [U, U], id="nobody asked, nobody Ready"),
        pytest.param({FIRST: Told(S, "503")}, (True, False), [S, U], id="its own word beats Ready"),
        pytest.param(
            {FIRST: Told(U, "TLS", reached=False)}, (True, False), [A, U], id="not reached: Ready counts"
        ),
    ],
)
def test_coordinators(told: object, ready: tuple[bool, bool], expected: list[Activity]) -> None:
    pods = tuple(pod(number, ready=ready[number]) for number in range(2))
    assert words(Role.COORDINATOR, pods, told=told) == expected


def test_ready_without_a_probe_says_nothing() -> None:
    pods = (pod(0, ready=True, has_readiness_probe=False), pod(1, ready=True, has_readiness_probe=False))
    assert words(Role.COORDINATOR, pods) == [U, U]


@pytest.mark.parametrize(
    ("ips", "before", "listening_s", "expected"),
    [
        pytest.param({"10.1.0.0"}, False, 0.0, [A, S], id="who holds the stream"),
        pytest.param({"10.1.0.0", "10.1.0.1"}, True, 0.0, [A, A], id="both, while one is leaving"),
        pytest.param({"10.9.9.9"}, True, 0.0, [U, U], id="a stream from elsewhere"),
        pytest.param(set(), False, 0.0, [U, U], id="nobody ever subscribed"),
        pytest.param(set(), True, 0.0, [S, S], id="nobody, and somebody did before"),
        pytest.param(set(), True, NOW_S - 10, [U, U], id="nobody yet after our own start"),
    ],
)
def test_controllers(ips: set[str], before: bool, listening_s: float, expected: list[Activity]) -> None:
    streams = Streams(frozenset(ips), listening_since_s=listening_s)
    found = words(Role.CONTROLLER, (pod(0), pod(1)), streams=streams, subscribed_before=before)
    assert found == expected


def test_a_stream_from_a_lost_node_makes_nobody_active_and_its_peer_a_standby() -> None:
    nodes = {"n0": Node(name="n0", uid="a", ready=False), "n1": Node(name="n1", uid="b")}
    streams = Streams(frozenset({"10.1.0.0"}))
    assert words(Role.CONTROLLER, (pod(0), pod(1)), streams=streams, nodes=nodes) == [U, S]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"phase": PodPhase.PENDING}, id="pending"),
        pytest.param({"terminating_since_s": 1.0}, id="terminating"),
        pytest.param({"node": "gone"}, id="its node is gone"),
    ],
)
def test_a_pod_that_does_not_run_where_it_can_be_heard_is_unknown(fields: dict[str, object]) -> None:
    told = {FIRST: Told(A, "200")}
    assert words(Role.COORDINATOR, (pod(0, ready=True, **fields),), told=told) == [U]


@pytest.mark.parametrize(
    ("states", "since_s"),
    [
        pytest.param([S, S], 20.0, id="all standby, since the later of both"),
        pytest.param([S, U], None, id="one is not known"),
        pytest.param([A, S], None, id="one is active"),
        pytest.param([], None, id="nothing is known"),
    ],
)
def test_nobody_is_active_only_where_every_pod_says_so(states: list[Activity], since_s: float | None) -> None:
    pods = (pod(0), pod(1))
    roles = {
        one.uid: PodRole(state, "", at_s)
        for one, state, at_s in zip(pods, states, (10.0, 20.0), strict=False)
    }
    assert activity.nobody_since_s(pods, roles) == since_s


def test_other_roles_have_no_activity() -> None:
    assert activity.judge(Role.SERVER, (pod(0),), Sources({}, {}, Streams(), False, 45.0, NOW_S)) == {}
