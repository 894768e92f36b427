"""What is published, kept, held back and left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.recoveries import Intent, IntentKind, Phase, Recovery
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import RingsConfig, Role
from mindie_ha.policy.drafts import is_stopped
from mindie_ha.policy.planner import plan
from mindie_ha.policy.rungs.gates import BACKING_OFF, HELD_BY_BRAKE
from tests.policy.worlds import NAMESPACE, World, service


def decide(world: World):  # type: ignore[no-untyped-def]
    table = plan(world.view(), world.settings, world.now_s).table
    assert table is not None
    return table


def reasons(world: World) -> set[str]:
    return {notice.reason for notice in decide(world).notices}


def test_groups_hold_coordinator_controller_and_the_instances_by_id() -> None:
    world = service()
    addresses = [
        [pod.ip for pod in world.pods_of(name)] for name in ("ms-coordinator", "ms-controller", "d0", "p0")
    ]
    assert world.groups() == addresses
    assert world.table.ids == {"d0": 2, "p0": 3}


def test_p_and_d_lost_together_keep_the_last_table_and_hold_the_new_p() -> None:
    world = service()
    last = world.table
    world.untabulated.add("d0")
    for name in ("p0", "d0"):
        world.break_card(world.pods_of(name)[0])
    world.settle(for_s=10.0)
    assert [name for name, _ in decide(world).held] == ["p0"]
    assert "NoServersLeft" in reasons(world)
    assert world.table.text == last.text
    world.untabulated.clear()
    world.settle(until=lambda: world.closed("p0") and world.closed("d0"))
    assert world.groups()[2:] == [[pod.ip for pod in world.pods_of(name)] for name in ("d0", "p0")]
    assert world.table.ids == last.ids


def test_a_lone_half_is_shown_after_the_hold() -> None:
    world = World(settings=Settings.model_validate({"table": {"peer_hold_s": 20.0}}))
    world.add("p0", pd_role=PdRole.PREFILL)
    world.add("d0", pd_role=PdRole.DECODE, replicas=2, cards=8)
    world.job("d0").rings = None
    world.add("ms-controller", role=Role.CONTROLLER, replicas=1)
    world.add("ms-coordinator", role=Role.COORDINATOR, replicas=1)
    world.settle(for_s=15.0)
    assert world.table.generation == 0
    world.settle(for_s=15.0)
    assert world.groups()[2:] == [[pod.ip for pod in world.pods_of("p0")]]


def test_the_last_instance_keeps_its_table_until_it_is_back() -> None:
    world = World()
    world.add("s0", pd_role=PdRole.HYBRID)
    world.add("ms-controller", role=Role.CONTROLLER, replicas=1)
    world.add("ms-coordinator", role=Role.COORDINATOR, replicas=1)
    world.start()
    before = world.table
    world.break_card(world.pods_of("s0")[0])
    world.starts = False
    world.settle(for_s=10.0)
    assert (world.table.generation, world.table.text) == (before.generation, before.text)
    assert "NoServersLeft" in reasons(world)
    world.starts = True
    world.settle(until=lambda: world.closed("s0"))
    assert world.table.generation == before.generation + 1
    assert world.groups()[2] == [pod.ip for pod in world.pods_of("s0")]


def test_both_deploy_labels_leave_only_that_instance_out() -> None:
    """133."""
    world = service()
    job = world.job("p0")
    assert job.rings is not None
    job.rings = replace(job.rings, labels={"grt-group/deploy-server": "1", "grt-server/deploy-server": "1"})
    world.settle(for_s=2.0)
    assert world.groups()[2:] == [[pod.ip for pod in world.pods_of("d0")]]
    assert "InstanceLeftOut" in reasons(world)


def test_a_broken_instance_table_leaves_only_that_instance_out() -> None:
    world = service()
    job = world.job("p0")
    assert job.rings is not None
    world.tabulates = False
    job.rings = replace(job.rings, text='{"status":"completed","server_list":[null]}')
    world.settle(for_s=2.0)
    assert world.groups()[2:] == [[pod.ip for pod in world.pods_of("d0")]]
    assert [name for name, _ in decide(world).left_out] == ["p0"]


def test_019_a_table_that_stays_incomplete_is_told_once_with_its_cause() -> None:
    world = service()
    world.untabulated.add("p1")
    world.add("p1", pd_role=PdRole.PREFILL)
    world.settle(for_s=30.0)
    assert "TableIncomplete" not in reasons(world)
    world.settle(for_s=60.0)
    told = [notice for notice in decide(world).notices if notice.reason == "TableIncomplete"]
    assert len(told) == 1
    assert "p1" in told[0].message
    assert len(world.groups()) == 4  # the others do not wait
    world.untabulated.clear()
    world.settle(for_s=10.0)
    assert "TableIncomplete" not in reasons(world)


def test_an_instance_without_a_deploy_label_is_published_and_remarked_on() -> None:
    world = service()
    rings = world.job("p0").rings
    assert rings is not None
    world.job("p0").rings = replace(rings, labels={"jobID": "svc"})
    world.settle(for_s=5.0)
    assert "NoDeployLabel" in reasons(world)
    assert len(world.groups()) == 4


def test_a_duplicate_address_leaves_the_newcomer_out() -> None:
    world = service()
    world.add("p1", pd_role=PdRole.PREFILL)
    world.settle(for_s=5.0)
    address = world.pods_of("p0")[0].ip
    newcomer = world.pods_of("p1")[0]
    world.change(newcomer, ip=address)
    world.settle(for_s=2.0)
    assert [name for name, _ in decide(world).left_out] == ["p1"]
    assert len(world.groups()) == 4


def test_an_equal_table_is_not_published_again() -> None:
    world = service()
    assert not decide(world).publish
    assert decide(world).ledger == world.table


def test_empty_ms_groups_are_believed_after_a_while() -> None:
    world = World()
    world.add("s0", pd_role=PdRole.HYBRID)
    world.settle(for_s=9.0)
    assert world.table.generation == 0
    world.settle(for_s=5.0)
    assert world.groups()[:2] == [[], []]


def test_a_shared_config_map_is_not_written() -> None:
    world = service()
    view = world.view()
    assert view.table is not None
    assert decide(world).config_map == ObjectKey(NAMESPACE, "global-ranktable")
    shared = replace(view, table=replace(view.table, shared_with=("service:other/svc",)))
    table = plan(shared, world.settings, world.now_s).table
    assert table is not None
    assert table.config_map is None
    assert [notice.reason for notice in table.notices] == ["SharedTable"]


def test_an_orphaned_table_is_named_and_not_used() -> None:
    world = service()
    orphan = RingsConfig(ObjectKey(NAMESPACE, "rings-config-gone"), "{}")
    table = plan(replace(world.view(), orphan_rings=(orphan,)), world.settings, world.now_s).table
    assert table is not None
    assert [notice.reason for notice in table.notices] == ["OrphanTable"]
    assert not table.publish


def test_an_unreadable_table_ledger_publishes_nothing() -> None:
    world = service()
    view = world.view()
    assert view.table is not None
    broken = replace(view, table=replace(view.table, ledger_error="digest"))
    world.break_card(world.pods_of("p0")[0])
    table = plan(broken, world.settings, world.now_s).table
    assert table is not None
    assert not table.publish
    assert [notice.reason for notice in table.notices] == ["LedgerUnreadable"]


def test_nobody_subscribed_does_not_stop_a_recovery() -> None:
    world = service()
    world.subscribers = 0
    world.break_card(world.pods_of("p0")[0])
    world.settle(until=lambda: world.closed("p0"))
    assert "NoSubscriber" in {notice.reason for notice in world.notices}
    assert world.closed("p0")


def test_a_table_that_does_not_come_names_its_probable_cause() -> None:
    world = service()
    world.untabulated.add("p0")
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=5.0)
    job = world.job("p0")
    job.rings = RingsConfig(ObjectKey(NAMESPACE, "rings-config-p0"), '{"status":"initializing"}', {})
    world.settle(for_s=70.0)
    assert job.ledger.recovery is not None
    assert job.ledger.recovery.condition == "WaitingForTable"
    assert any("pod p0-0 has no device annotation" in one.sentence for one in world.decisions)


@pytest.mark.parametrize(
    ("changes", "stopped"),
    [
        pytest.param({"phase": Phase.ISOLATE}, False, id="isolating-for-the-first-time"),
        pytest.param({"phase": Phase.ISOLATE, "attempts": {"job": 2}}, True, id="isolating-again"),
        pytest.param({"phase": Phase.BACKOFF, "condition": HELD_BY_BRAKE}, False, id="held-by-the-brake"),
        pytest.param(
            {"phase": Phase.BACKOFF, "condition": HELD_BY_BRAKE, "attempts": {"job": 2}}, True,
            id="held-after-a-first-deletion",
        ),
        pytest.param({"phase": Phase.BACKOFF, "condition": BACKING_OFF}, True, id="withdrawn-with-grace"),
        pytest.param({"phase": Phase.STOP}, True, id="stopping"),
        pytest.param({"phase": Phase.TABLE}, True, id="its-table-is-not-complete"),
        pytest.param({"phase": Phase.SETTLE}, False, id="serving-again"),
    ],
)  # fmt: skip
def test_an_instance_leaves_the_table_when_its_pods_are_being_taken_away(
    changes: dict[str, object], stopped: bool
) -> None:
    intent = Intent(kind=IntentKind.FAULT, cause=Cause.NODE_NOT_READY, at_s=1.0, summary="n0 is NotReady")
    recovery = Recovery(
        epoch=1, intent=intent, rung="job", phase=Phase.ISOLATE, phase_since_s=1.0, opened_at_s=1.0,
        attempts={"job": 1},
    )  # fmt: skip
    assert is_stopped(recovery.model_copy(update=changes)) is stopped
