"""One node: when our taint stands, and when it goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ledgers import Isolation, NodeLedger
from mindie_ha.model.nodes import TAINT_ISOLATED, DeviceReport, ListedDevices, Node, Taint
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.policy.isolations import plan_node

NOW_S = 1000.0
WANTED = frozenset({"recovery:ns/p0#1"})
CARD = "Ascend910-3"
OURS = (Taint(TAINT_ISOLATED, "NoSchedule"),)


def isolation(**fields: object) -> Isolation:
    values = {
        "id": f"ChipUnhealthy:{CARD}",
        "device": CARD,
        "reason": "ChipUnhealthy",
        "wanted_by": tuple(WANTED),
        "until": "listed",
        "since_s": NOW_S - 2.0,
        "undo": "",
        "taint_seen": True,
        **fields,
    }
    return Isolation.model_validate(values)


def lost(**fields: object) -> Isolation:
    return isolation(**{"id": "NodeNotReady:-", "device": "", "until": "healed", **fields})


def node(
    *isolations: Isolation,
    tainted: bool = True,
    ready: bool = True,
    exists: bool = True,
    uid: str = "node",
    bad: frozenset[str] = frozenset({CARD}),
    listed: frozenset[str] | None = frozenset(),
) -> NodeView:
    return NodeView(
        node=Node("n0", uid=uid, ready=ready, exists=exists, taints=OURS if tainted else ()),
        report=DeviceReport("n0", unhealthy=bad),
        listed=None if listed is None else ListedDevices("n0", listed),
        ledger=NodeLedger(node="n0", node_uid="node", isolations=isolations),
    )


@pytest.mark.parametrize(
    ("view", "wanted", "tainted", "changed"),
    [
        pytest.param(node(isolation()), WANTED, True, False, id="stands"),
        pytest.param(
            node(isolation(taint_seen=False), tainted=False), WANTED, True, True, id="set-after-a-crash"
        ),
        pytest.param(node(isolation(), listed=frozenset({CARD})), WANTED, False, True, id="listed"),
        pytest.param(node(isolation()), frozenset(), False, True, id="nobody-wants-it"),
        pytest.param(
            node(isolation(wanted_by=("person:ann",))), frozenset(), True, False, id="a-person-wants-it"
        ),
        pytest.param(node(isolation(), listed=None), WANTED, True, False, id="no-list-within-its-lag"),
        pytest.param(
            node(isolation(since_s=NOW_S - 5.0), listed=None), WANTED, False, True, id="no-list-lag-over"
        ),
        pytest.param(node(lost(), ready=False), WANTED, True, False, id="not-ready"),
        pytest.param(
            node(lost(healed_since_s=NOW_S - 299.0)), WANTED, True, False, id="healed-not-long-enough"
        ),
        pytest.param(node(lost(healed_since_s=NOW_S - 300.0)), WANTED, False, True, id="healed"),
        pytest.param(node(isolation(), tainted=False), WANTED, False, True, id="removed-by-a-person"),
        pytest.param(
            node(isolation(overruled_at_s=5.0), tainted=False), WANTED, False, False, id="stays-removed"
        ),
        pytest.param(node(isolation(), tainted=False, uid="reborn"), WANTED, True, True, id="node-reborn"),
        pytest.param(node(isolation(), tainted=False, exists=False), WANTED, False, False, id="node-gone"),
        pytest.param(node(), WANTED, True, False, id="a-taint-that-is-not-ours-stays"),
        pytest.param(node(tainted=False), WANTED, False, False, id="nothing"),
        pytest.param(
            node(isolation(), lost(), listed=frozenset({CARD}), ready=False),
            WANTED,
            True,
            True,
            id="one-of-two-ends",
        ),
    ],
)
def test_the_taint_stands_exactly_while_an_isolation_is_in_force(
    view: NodeView, wanted: frozenset[str], tainted: bool, changed: bool
) -> None:
    found = plan_node(view, wanted=wanted, settings=Settings(), now_s=NOW_S)
    assert (found.tainted, found.changed) == (tainted, changed)


def test_a_taint_that_a_person_removed_is_told_once() -> None:
    first = plan_node(node(isolation(), tainted=False), wanted=WANTED, settings=Settings(), now_s=NOW_S)
    assert [notice.reason for notice in first.notices] == ["IsolationOverruled"]
    again = plan_node(
        node(*first.ledger.isolations, tainted=False), wanted=WANTED, settings=Settings(), now_s=NOW_S + 1
    )
    assert (again.notices, again.changed) == ((), False)


def test_a_flapping_node_starts_its_healing_anew() -> None:
    found = plan_node(
        node(lost(healed_since_s=NOW_S - 100.0), ready=False), wanted=WANTED, settings=Settings(), now_s=NOW_S
    )
    assert found.ledger.isolations[0].healed_since_s is None
    assert found.tainted


def test_it_says_when_to_look_again() -> None:
    found = plan_node(node(isolation(), listed=None), wanted=WANTED, settings=Settings(), now_s=NOW_S)
    assert found.wake_at_s == NOW_S + 3.0


def test_our_taint_without_a_record_is_told_with_its_undo_and_not_touched() -> None:
    decision = plan_node(node(tainted=True), wanted=WANTED, settings=Settings(), now_s=NOW_S)
    assert not decision.changed
    assert [notice.reason for notice in decision.notices] == ["TaintWithoutRecord"]
    assert "kubectl taint node n0" in decision.notices[0].message
    assert not plan_node(node(tainted=False), wanted=WANTED, settings=Settings(), now_s=NOW_S).notices


@pytest.mark.parametrize(
    ("troubles", "healing"),
    [
        pytest.param((), True, id="gone"),
        pytest.param(
            (Fault(FaultSource.NODE_INFO, Cause.NODE_HARDWARE, node="n0"),), False, id="still-there"
        ),
        pytest.param(
            (Fault(FaultSource.NODE_INFO, Cause.NODE_HARDWARE, node="n0", acts=False),),
            True,
            id="only-recorded",
        ),
        pytest.param(
            (Fault(FaultSource.SWITCH, Cause.SWITCH_UNHEALTHY, node="n0"),), True, id="another-cause"
        ),
    ],
)
def test_a_node_isolated_for_its_board_heals_with_its_board(
    troubles: tuple[Fault, ...], healing: bool
) -> None:
    entry = lost(id="NodeHardware:-", reason="NodeHardware")
    view = replace(node(entry), troubles=troubles)
    (kept,) = plan_node(view, wanted=WANTED, settings=Settings(), now_s=NOW_S).ledger.isolations
    assert (kept.healed_since_s is not None) is healing
