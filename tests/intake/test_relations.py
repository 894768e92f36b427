"""Relation rules: which network faults, together with what, separate a card or a node of a job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.intake import relations
from mindie_ha.intake.correlated import correlated
from mindie_ha.intake.relations import RelationRules, Rule, Seen
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.pods import Pod, PodPhase

NOW_S = 100_000.0
LIVES = dict.fromkeys(("R2", "R3", "R4"), 300.0)
SEPARATE = Rule("T1", frozenset({"R2", "R3"}), Level.SEPARATE)
SUB_HEALTH = Rule("T1", frozenset({"R2", "R3"}), Level.SUB_HEALTH)
OTHER = Rule("T2", frozenset({"R4"}), Level.SEPARATE)
SHIPPED = relations.shipped()
SWITCH = "[0x08520003,na,L2,na]"


def seen(code: str, node: str = "node100", device: str = "npu1", *, ago_s: float = 10.0) -> Seen:
    return Seen(node, device, code, NOW_S - ago_s)


T1, T2 = seen("T1", "node200", "npu0"), seen("T2", "node200", "npu0")
R2, R3, R4 = seen("R2"), seen("R3", "node101", "npu2"), seen("R4")
R3_SWITCH = seen("R3", "node103", "")


@pytest.mark.parametrize(
    ("rules", "told", "expected"),
    [
        pytest.param(
            (SEPARATE,),
            (T1, R2, R3, R3_SWITCH),
            {
                ("node100", "npu1"): "SeparateNPU",
                ("node101", "npu2"): "SeparateNPU",
                ("node103", ""): "SeparateNPU",
            },
            id="V83",
        ),
        pytest.param((SEPARATE,), (T1, R2, R4), {}, id="V84-one-is-missing"),
        pytest.param((SEPARATE,), (R2, R3), {}, id="V84-no-trigger"),
        pytest.param(
            (SUB_HEALTH, OTHER),
            (T1, T2, R2, R3, R4),
            {("node100", "npu1"): "SeparateNPU", ("node101", "npu2"): "SubHealthFault"},
            id="V85",
        ),
        pytest.param(
            (SEPARATE,),
            (T1, seen("R2", ago_s=310.0), seen("R2", "n9", ago_s=310.1), R3),
            {("node100", "npu1"): "SeparateNPU", ("node101", "npu2"): "SeparateNPU"},
            id="only-what-still-waited",
        ),
        pytest.param(
            (SEPARATE,), (seen("T1", ago_s=99.0), R2, R3), 2, id="the-trigger-came-first-and-stayed"
        ),
    ],
)
def test_rules(
    rules: tuple[Rule, ...], told: tuple[Seen, ...], expected: dict[tuple[str, str], str] | int
) -> None:
    found, _ = relations.matches(told, RelationRules(rules, LIVES), now_s=NOW_S)
    levels = {(match.node, match.device): str(match.level) for match in found}
    assert (len(levels) if isinstance(expected, int) else levels) == expected


@pytest.mark.parametrize(
    ("fault_s", "trigger_s", "match"),
    [
        pytest.param(NOW_S - 500, NOW_S, True, id="V86-500-s"),
        pytest.param(NOW_S - 2000, NOW_S, False, id="V86-2000-s"),
        pytest.param(NOW_S, NOW_S - 1, False, id="V86-trigger-before-fault"),
    ],
)
def test_a_trigger_accompanies_a_fault_that_waits(fault_s: float, trigger_s: float, match: bool) -> None:
    assert relations.accompanied(fault_s, [trigger_s], within_s=1000.0) is match


@pytest.mark.parametrize(
    ("told", "a3", "expected"),
    [
        pytest.param(
            (seen(SWITCH.upper(), device="", ago_s=301),), False, [("", "SubHealthFault")], id="switch"
        ),
        pytest.param((seen("81078603", ago_s=301),), False, [], id="card-is-forgotten"),
        pytest.param((seen("81078603", ago_s=301),), True, [], id="card-on-a3-alone"),
        pytest.param(
            (seen("81078603", ago_s=301), seen("8C1F8608", ago_s=200)),
            True,
            [("", "SeparateNPU")],
            id="a3-with-cqe",
        ),
        pytest.param(
            (seen("81078603", ago_s=200), seen("8C1F8608", ago_s=100)), True, [], id="a3-cqe-must-wait"
        ),
        pytest.param(
            (seen("81078603", ago_s=200), seen("8C1F8608", ago_s=100)),
            False,
            [("npu1", "SeparateNPU")],
            id="a2-at-once",
        ),
    ],
)
def test_a_link_fault_whose_time_is_over(
    told: tuple[Seen, ...], a3: bool, expected: list[tuple[str, str]]
) -> None:
    found, _ = relations.matches(told, SHIPPED, now_s=NOW_S, a3=a3)
    assert [(match.device, str(match.level)) for match in found] == expected


def test_time_alone_is_told() -> None:
    assert relations.matches([seen("81078603")], SHIPPED, now_s=NOW_S) == ((), NOW_S + 290.0)


def test_the_shipped_rules_are_those_of_clusterd() -> None:
    assert [(rule.trigger, str(rule.level)) for rule in SHIPPED.rules] == [
        ("8C1F8609", "SubHealthFault"),
        ("8C1F860B", "SeparateNPU"),
        ("8C1F860B", "SeparateNPU"),
        ("8C1F8608", "SeparateNPU"),
        ("4C1F8608", "SeparateNPU"),
    ]
    assert SHIPPED.lifetimes_s == {"81078603": 300.0, SWITCH.upper(): 300.0}
    assert SHIPPED.findings == ()


@pytest.mark.parametrize(
    "element",
    [
        '{"TriggerFault": "", "RelationFaults": ["A"], "FaultStrategy": "Separate"}',
        '{"TriggerFault": "T", "RelationFaults": [], "FaultStrategy": "Separate"}',
        '{"TriggerFault": "T", "RelationFaults": [1], "FaultStrategy": "Separate"}',
        '{"TriggerFault": "T", "RelationFaults": ["A"], "FaultStrategy": "Explode"}',
        "7",
    ],
)
def test_a_bad_element_is_left_out_and_named(element: str) -> None:
    good = '{"TriggerFault": "T", "RelationFaults": ["A"], "FaultStrategy": "Separate"}'
    found = relations.parse(f"[{element}, {good}]", '[{"FaultCode": "A", "TimeOutInterval": -1}]', where="f")
    assert (len(found.rules), len(found.findings)) == (1, 2)


@pytest.mark.parametrize("text", ["{}", "nonsense", "", "[" * 5000])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        relations.parse(text, "[]", where="f")


def card(code: str, family: Family, *, device: str = "Ascend910-0", ago_s: float = 10.0) -> Fault:
    fact = CodeFact(code, Level.NOT_HANDLE, family, first_seen_s=NOW_S - ago_s)
    return Fault(FaultSource.DEVICE, Cause.CHIP_FAULT_LISTED, node="n0", device=device, details=(fact,))


HELD = Pod(
    key=ObjectKey("ns", "p-0"),
    uid=PodUID("u"),
    owner_uid="j",
    phase=PodPhase.RUNNING,
    node="n0",
    devices=("Ascend910-0",),
    created_at_s=NOW_S - 1000,
)
BOTH = (card("8C1F860B", Family.CHIP, ago_s=5.0), card("81078603", Family.NETWORK))


@pytest.mark.parametrize(
    ("pod", "faults", "hits"),
    [
        pytest.param(HELD, BOTH, ["8C1F860B", "81078603"], id="both"),
        pytest.param(HELD, BOTH[1:], [], id="the-link-alone"),
        pytest.param(replace(HELD, created_at_s=NOW_S - 1), BOTH, [], id="a-pod-that-came-after"),
        pytest.param(replace(HELD, devices=("Ascend910-7",)), BOTH, [], id="another-card"),
        pytest.param(replace(HELD, node="n1"), BOTH, [], id="elsewhere"),
        pytest.param(replace(HELD, phase=PodPhase.FAILED), BOTH, [], id="ended"),
    ],
)
def test_whom_they_hit(pod: Pod, faults: tuple[Fault, ...], hits: list[str]) -> None:
    found, _ = correlated([pod], faults, rules=SHIPPED, annotations={}, now_s=NOW_S)
    assert [code for fault in found for code in fault.codes] == hits
    assert {fault.cause for fault in found} <= {Cause.CORRELATED}


def test_nothing_seen_means_nothing() -> None:
    assert correlated([HELD], [], rules=SHIPPED, annotations={}, now_s=NOW_S) == ([], None)
