"""When a Decode counts as unlinked, and which bounds hold: on views, without a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.roles import Links
from mindie_ha.model.settings import CoupledSettings, PhaseSettings, RestartUnlinked, Settings
from mindie_ha.model.views import ScopeView
from mindie_ha.policy import coupled
from tests.policy.worlds import World

ON = CoupledSettings(restart_unlinked=RestartUnlinked.DECODE, after_s=60, recent_s=600)
ELSEWHERE = frozenset({"10.9.9.9"})


def rebuilt(*decodes: str) -> World:
    """A Prefill that was rebuilt, and Decodes."""
    world = World(nodes=10, settings=Settings(phases=PhaseSettings(settle_s=5)))
    world.add("p", pd_role=PdRole.PREFILL)
    for name in decodes:
        world.add(name, pd_role=PdRole.DECODE)
    world.start()
    world.break_card(world.pods_of("p")[0])
    world.settle(until=lambda: world.closed("p"))
    return world


def said(world: World, **peers: frozenset[str] | None) -> ScopeView:
    """The view, with what the Decodes say."""
    view = world.view()
    workloads = []
    for each in view.workloads:
        name = each.workload.key.name
        links = {pod.uid: Links(peers[name], 0.0) for pod in each.pods} if name in peers else {}
        workloads.append(replace(each, links=links))
    return replace(view, workloads=tuple(workloads))


def due(view: ScopeView, world: World, settings: CoupledSettings = ON, *, in_s: float = 61) -> list[str]:
    """Who would be restarted then."""
    found = coupled.judge(view, settings=settings, now_s=world.now_s + in_s)
    return [key.name for key in found.faults]


def test_an_unlinked_decode_is_due_when_its_time_is_over() -> None:
    world = rebuilt("d", "e")
    view = said(world, d=ELSEWHERE, e=frozenset(pod.ip for pod in world.pods_of("p")))
    waiting = coupled.judge(view, settings=ON, now_s=world.now_s)
    assert not waiting.faults
    assert waiting.wake_at_s is not None
    assert due(view, world) == ["d"]
    (fault,) = coupled.judge(view, settings=ON, now_s=world.now_s + 61).faults[ObjectKey("mindie", "d")]
    assert (fault.cause, fault.codes) == (Cause.PEER_UNLINKED, ("p#1",))
    assert coupled.to_ask(view, settings=ON, now_s=world.now_s) == {
        ObjectKey("mindie", "d"),
        ObjectKey("mindie", "e"),
    }


@pytest.mark.parametrize(
    ("settings", "in_s"),
    [
        pytest.param(CoupledSettings(), 61.0, id="off"),
        pytest.param(ON, 601.0, id="the rebuild is long ago"),
    ],
)
def test_nobody_is_asked_and_nobody_restarted(settings: CoupledSettings, in_s: float) -> None:
    world = rebuilt("d", "e")
    view = said(world, d=ELSEWHERE, e=ELSEWHERE)
    assert due(view, world, settings, in_s=in_s) == []
    assert not coupled.to_ask(view, settings=settings, now_s=world.now_s + in_s)


def test_what_is_not_known_restarts_nobody() -> None:
    world = rebuilt("d", "e")
    assert due(said(world), world) == [], "nobody answered"
    assert due(said(world, d=None, e=None), world) == [], "nothing that can be read"


def test_the_last_decode_that_serves_is_left_alone() -> None:
    world = rebuilt("d")
    assert due(said(world, d=ELSEWHERE), world) == [], "it serves with another Prefill"
    assert due(said(world, d=frozenset()), world) == ["d"], "without a link it serves nobody"


def test_one_at_a_time_and_no_more_than_the_budget() -> None:
    world = rebuilt("d", "e")
    view = said(world, d=frozenset(), e=frozenset())
    assert due(view, world) == ["d"]
    world.break_card(world.pods_of("e")[0])
    world.settle(until=lambda: world.phase_of("e") is not None, for_s=20)
    assert due(said(world, d=frozenset(), e=frozenset()), world) == [], "e is being rebuilt"


def test_a_decode_that_is_not_well_is_not_judged() -> None:
    world = rebuilt("d", "e")
    world.change(world.pods_of("d")[0], ready=False)
    assert due(said(world, d=ELSEWHERE), world) == []
