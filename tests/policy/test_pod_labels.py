"""The label of the active pod: one at most, whatever fails half way; no write when all is well."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.model.decisions import LabelPod, Plan
from mindie_ha.model.roles import Activity
from mindie_ha.model.settings import RoleSettings, Settings
from mindie_ha.policy.planner import plan
from mindie_ha.policy.pod_labels import LABEL_STATE
from tests.policy.pairs import pair
from tests.policy.worlds import World

A, S, U = Activity.ACTIVE, Activity.STANDBY, Activity.UNKNOWN
NAME = "ms-coordinator"
NAMES = (f"{NAME}-0", f"{NAME}-1")


def labelled(*activities: Activity, on: bool = True, dry_run: bool = False) -> World:
    """Two Coordinators that are this, with labels by setting."""
    world = pair(settings=Settings(roles=RoleSettings(label_pods=on), dry_run=dry_run))
    be(world, *activities)
    return world


def be(world: World, *activities: Activity) -> None:
    """The Coordinators are this now."""
    world.activity = dict(zip(NAMES, activities, strict=True))


def labels(world: World) -> list[str]:
    """What the Coordinators carry, by name."""
    return [pod.labels.get(LABEL_STATE, "") for pod in world.pods_of(NAME)]


def orders(result: Plan) -> list[LabelPod]:
    """The label changes of a plan."""
    return [action for item in result.decisions for action in item.actions if isinstance(action, LabelPod)]


def test_the_active_and_the_standby_are_labelled_and_then_nothing_is_written() -> None:
    world = labelled(A, S)
    world.look()
    assert labels(world) == ["active", "standby"]
    assert not orders(world.look())


def test_after_a_takeover_it_is_stripped_before_it_is_given() -> None:
    world = labelled(A, S)
    world.look()
    be(world, S, A)
    assert [one.value for one in orders(world.look())] == ["standby"]
    assert labels(world) == ["standby", "standby"]
    world.look()
    assert labels(world) == ["standby", "active"]
    assert not orders(world.look())


def test_a_strip_that_fails_withholds_the_grant() -> None:
    world = labelled(A, S)
    world.look()
    be(world, U, A)
    for _ in range(3):
        assert [one.value for one in orders(world.look(cut=True))] == [None]
    world.look()
    world.look()
    assert labels(world) == ["", "active"]


def test_a_pod_that_is_dying_on_a_lost_node_is_stripped_too() -> None:
    world = labelled(A, S)
    world.look()
    first = world.pods_of(NAME)[0]
    world.change(first, terminating_since_s=world.now_s)
    be(world, U, A)
    world.look()
    world.look()
    assert labels(world) == ["", "active"]


@pytest.mark.parametrize("now", [(U, U), (U, S)], ids=["nothing is known", "the peer stands by"])
def test_while_nobody_knows_who_has_it_keeps_it(now: tuple[Activity, Activity]) -> None:
    world = labelled(A, S)
    world.look()
    be(world, *now)
    assert not orders(world.look())
    assert labels(world) == ["active", "standby"]


def test_of_two_that_claim_it_who_has_it_keeps_it() -> None:
    world = labelled(A, A)
    assert not orders(world.look())
    be(world, S, A)
    world.look()
    be(world, A, A)
    world.look()
    assert labels(world) == ["standby", "active"]


@pytest.mark.parametrize("switches", [{"on": False}, {"dry_run": True}], ids=["off", "dry run"])
def test_off_by_default_and_in_a_dry_run(switches: dict[str, bool]) -> None:
    world = labelled(A, S, **switches)
    assert not orders(plan(world.view(), world.settings, world.now_s))


@given(st.lists(st.tuples(st.sampled_from((A, S, U)), st.sampled_from((A, S, U)), st.booleans()), max_size=8))
def test_never_two_and_in_the_end_the_active_one(days: list[tuple[Activity, Activity, bool]]) -> None:
    world = labelled(U, U)
    for first, second, cut in [*days, (S, A, False)]:
        be(world, first, second)
        for action in orders(world.look(cut=True)):
            if not cut:
                world.labelled(action.uid, action.name, action.value)
            assert labels(world).count("active") <= 1
    for _ in range(2):
        world.look()
    assert labels(world) == ["standby", "active"]
    assert not orders(world.look())
