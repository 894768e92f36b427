"""Who is well: probes, and Coordinators of which only the active one passes its probe."""

from __future__ import annotations

import pytest

from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.recoveries import Outcome, Phase
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Role
from mindie_ha.policy.wellness import unwell
from tests.policy.worlds import World, service


def pod(name: str, *, ready: bool = True, probed: bool = True, phase: PodPhase = PodPhase.RUNNING) -> Pod:
    key = ObjectKey("mindie", name)
    return Pod(key, PodUID(name), "owner", phase=phase, ready=ready, has_readiness_probe=probed)


ACTIVE, STANDBY = pod("active"), pod("standby", ready=False)
PENDING = pod("pending", ready=False, phase=PodPhase.PENDING)
UNPROBED = pod("unprobed", ready=False, probed=False)


@pytest.mark.parametrize(
    ("role", "pods", "waited_for"),
    [
        pytest.param(Role.SERVER, (ACTIVE, STANDBY), ["standby"], id="each-server-pod-counts"),
        pytest.param(Role.SERVER, (UNPROBED,), [], id="without-a-probe-running-is-enough"),
        pytest.param(Role.CONTROLLER, (ACTIVE, STANDBY), ["standby"], id="a-standby-controller-is-ready-too"),
        pytest.param(Role.COORDINATOR, (ACTIVE, STANDBY), [], id="one-active-coordinator-is-enough"),
        pytest.param(Role.COORDINATOR, (STANDBY, STANDBY), ["standby"] * 2, id="no-coordinator-is-active"),
        pytest.param(Role.COORDINATOR, (ACTIVE, PENDING), ["pending"], id="the-standby-has-to-run"),
        pytest.param(Role.COORDINATOR, (), [], id="nobody"),
    ],
)
def test_who_is_waited_for(role: Role, pods: tuple[Pod, ...], waited_for: list[str]) -> None:
    assert [each.key.name for each in unwell(role, pods)] == waited_for


def test_a_standby_coordinator_does_not_keep_a_recovery_open() -> None:
    world = World()
    world.add("p0")
    world.add("ms-coordinator", role=Role.COORDINATOR, replicas=2)
    world.settle(for_s=30.0)
    failed = world.pods_of("ms-coordinator")[0]
    world.lose_node(failed.node)
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.SETTLE, for_s=60.0)
    world.change(world.pods_of("ms-coordinator")[1], ready=False)
    world.settle(until=lambda: world.closed("ms-coordinator"), for_s=60.0)
    assert [one.outcome for one in world.job("ms-coordinator").ledger.closed] == [Outcome.RECOVERED]


def test_without_a_probe_a_restart_begins_the_watch_anew() -> None:
    settings = Settings.model_validate({"phases": {"unverified_after_s": 100.0}})
    world = service(settings=settings)
    world.probes = False
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.phase_of("p0") is Phase.SETTLE)
    world.settle(for_s=90.0)
    world.change(world.pods_of("p0")[0], last_restart_at_s=world.now_s)
    world.settle(for_s=90.0)
    assert not world.closed("p0")
    world.settle(for_s=20.0)
    assert [one.outcome for one in world.job("p0").ledger.closed] == [Outcome.RECOVERED_UNVERIFIED]
