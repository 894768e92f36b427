"""Level tables, what clusters change in them, frequency and duration rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mindie_ha.intake import code_tables, fault_configs, recurrences, rules
from mindie_ha.intake.code_tables import ChipCodes, assembled, defaults
from mindie_ha.intake.fault_configs import KEY_CHIP, KEY_NODE, KEY_RULES, chip_config, node_config, shipped
from mindie_ha.intake.recurrences import Occurrence, Span
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Level

HOUR_S = 3600.0


def test_the_shipped_tables_have_the_counts_of_the_contract() -> None:
    tables = defaults()
    assert len(tables.chip.chip) == 802
    assert len(tables.switch.levels) == 30
    assert len(tables.node.levels) == 59


@pytest.mark.parametrize(
    ("codes", "network", "level"),
    [
        pytest.param(["A2301001"], False, Level.SEPARATE, id="V22-035-in-two-groups"),
        pytest.param(["FFFFFFFF"], False, Level.SEPARATE, id="V23-unknown"),
        pytest.param(["80E18401", "80E20207"], False, Level.SUB_HEALTH, id="V26-worse-of-two"),
        pytest.param(["200001002"], False, Level.NOT_HANDLE, id="V30-hang"),
        pytest.param(["80E18401", "FFFFFFFF"], False, Level.NOT_HANDLE, id="unknown-beside-known"),
        pytest.param([], False, Level.NORMAL, id="none"),
        pytest.param(["80e18402"], False, Level.SEPARATE, id="lower-case"),
    ],
)
def test_chip_codes_by_the_shipped_table(codes: list[str], network: bool, level: Level) -> None:
    assert defaults().chip.judge(codes, network=network) is level


def test_an_unknown_link_code_keeps_new_work_away() -> None:
    """V24."""
    assert ChipCodes().judge(["81078603"], network=True) is Level.PRE_SEPARATE


def test_a_restart_cannot_mend_a_link() -> None:
    """V25."""
    table = code_tables.parse_chip('{"RestartNPUCodes": ["81078603"]}', where="t")
    assert table.judge(["81078603"], network=True) is Level.NOT_HANDLE


def test_a_code_in_two_groups_is_reported_once() -> None:
    """035."""
    findings = defaults().chip.findings
    assert [text for text in findings if "A2301001" in text] == [
        "chip_codes.json: A2301001 stands twice; the worse level counts"
    ]
    assert len([text for text in findings if "B4060011" in text]) == 1


@pytest.mark.parametrize(
    ("parts", "code", "level"),
    [
        pytest.param((0x08520003, None, 0), "[0x08520003,na,cpu,na]", Level.SEPARATE, id="V33"),
        pytest.param((0x00F10509, 132333, 1), "[0x00f10509,132333,npu,na]", Level.SUB_HEALTH, id="V34"),
        pytest.param((0x00F10509, 132332, 2), "[0x00f10509,132332,L2,na]", Level.NOT_HANDLE, id="V35"),
        pytest.param((0x00F10509, 155912, None), "[0x00f10509,155912,na,na]", Level.UNKNOWN, id="V36"),
        pytest.param((0x00F103B6, 155909, None), "[0x00f103b6,155909,na,na]", Level.NOT_HANDLE, id="V37"),
        pytest.param((0x00F1FEF5, 155914, 1), "[0x00f1fef5,155914,npu,na]", Level.RESTART_REQUEST, id="V38"),
    ],
)
def test_switch_codes(parts: tuple[int, int | None, int | None], code: str, level: Level) -> None:
    assert assembled(*parts) == code
    assert defaults().switch.level(code) is level


def test_malformed_switch_codes_are_left_out() -> None:
    text = json.dumps({"SeparateFaultCodes": ["[0x08520003,na,cpu]", "x", "[0x1,na,na,na]"]})
    table = code_tables.parse_switch(text, where="t")
    assert list(table.levels) == ["[0x1,na,na,na]"]
    assert len(table.findings) == 2


def nodes(**groups: list[str]) -> str:
    return json.dumps({"FaultTypeCode": {f"{name}FaultCodes": codes for name, codes in groups.items()}})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            nodes(NotHandle=["00000001"], PreSeparate=["00000001"], Separate=["00000001"]), id="V47-three"
        ),
        pytest.param(nodes(NotHandle=["00000001", "00000001"]), id="V47-twice"),
        pytest.param(nodes(NotHandle=["0001"]), id="short"),
        pytest.param("{}", id="no-groups"),
        pytest.param("[", id="no-json"),
        pytest.param('{"FaultTypeCode": {"NotHandleFaultCodes": [1]}}', id="numbers"),
    ],
)
def test_a_bad_node_table_keeps_the_last_one(text: str) -> None:
    last = node_config({KEY_NODE: nodes(Separate=["00000009"])}, last=shipped())
    assert not last.refused
    kept = node_config({KEY_NODE: text}, last=last)
    assert kept.tables.node is last.tables.node
    assert "mindx-dl-node-fault-config" in str(kept.refused[0])


def test_a_users_table_replaces_the_shipped_one_and_its_absence_brings_it_back() -> None:
    own = chip_config({KEY_CHIP: '{"NotHandleFaultCodes": ["80E18402"]}'}, last=shipped())
    assert own.tables.chip.level("80E18402") is Level.NOT_HANDLE
    assert own.tables.chip.level("80E18404") is Level.UNKNOWN
    assert own.tables.switch == defaults().switch
    bad = chip_config({KEY_CHIP: "not json"}, last=own)
    assert bad.tables.chip is own.tables.chip
    assert [error.where for error in bad.refused] == ["kube-system/mindx-dl-fault-config[faultCode.json]"]
    assert chip_config({}, last=bad).tables == defaults()


def rule_file(**blocks: list[dict[str, Any]]) -> str:
    return json.dumps(blocks)


FREQUENT = {"EventId": ["A"], "TimeWindow": 60, "Times": 1, "FaultHandling": "ManuallySeparateNPU"}
LASTING = {"EventId": ["A"], "FaultTimeout": 0, "RecoverTimeout": 0, "FaultHandling": "PreSeparateNPU"}


@pytest.mark.parametrize(
    ("block", "item"),
    [
        pytest.param("FaultFrequency", {**FREQUENT, "TimeWindow": 59}, id="window-too-short"),
        pytest.param("FaultFrequency", {**FREQUENT, "Times": 101}, id="too-many-times"),
        pytest.param("FaultFrequency", {**FREQUENT, "Times": True}, id="no-number"),
        pytest.param("FaultFrequency", {**FREQUENT, "EventId": "A"}, id="no-array"),
        pytest.param("FaultFrequency", {**FREQUENT, "FaultHandling": "x"}, id="no-level"),
        pytest.param("FaultFrequency", {**FREQUENT, "FaultHandling": "SeparateNPU"}, id="never-released"),
        pytest.param("FaultFrequency", {**FREQUENT, "ReleaseTimeWindow": 5}, id="released-too-soon"),
        pytest.param("FaultDuration", {**LASTING, "FaultTimeout": 601}, id="timeout-too-long"),
        pytest.param("FaultDuration", {**LASTING, "FaultHandling": "ManuallySeparateNPU"}, id="manually"),
        pytest.param("FaultDuration", {}, id="empty"),
    ],
)
def test_a_bad_rule_is_left_out_and_named(block: str, item: dict[str, Any]) -> None:
    found = rules.parse(rule_file(**{block: [item]}), where="t")
    assert not found.frequency
    assert not found.duration
    assert len(found.findings) == 1
    assert f"t.{block}[0]" in found.findings[0]


def test_of_two_rules_for_one_code_the_first_counts() -> None:
    found = rules.parse(rule_file(FaultFrequency=[FREQUENT, {**FREQUENT, "Times": 9}]), where="t")
    assert found.frequency["A"].times == 1
    assert len(found.findings) == 1


def test_bad_rules_keep_the_last_ones() -> None:
    last = chip_config({KEY_RULES: rule_file(FaultFrequency=[FREQUENT])}, last=shipped())
    kept = chip_config({KEY_RULES: '{"FaultFrequency": 3}'}, last=last)
    assert kept.rules == last.rules
    assert kept.refused


@pytest.mark.parametrize(
    ("code", "hours", "now_h", "reached"),
    [
        pytest.param("80E18005", [0, 5, 23], 23, True, id="V27-third"),
        pytest.param("80E18005", [0, 5], 5, False, id="V27-two"),
        pytest.param("80C98000", [0, 23], 23, True, id="V28"),
        pytest.param("80C98000", [0, 24], 24, False, id="outside-the-window"),
    ],
)
def test_frequency_rules(code: str, hours: list[float], now_h: float, reached: bool) -> None:
    rule = shipped().rules.frequency[code]
    times = [hour * HOUR_S for hour in hours]
    assert recurrences.frequent(rule, times, now_s=now_h * HOUR_S) is reached


@pytest.mark.parametrize(
    ("at_s", "reached"),
    [
        pytest.param([0, 10, 25 * HOUR_S], False, id="V90-25-hours"),
        pytest.param([0, 25 * HOUR_S, 25 * HOUR_S + 10], False, id="V90-25-hours-10-s"),
        pytest.param([0, 10, 20], True, id="within"),
    ],
)
def test_three_within_a_day(at_s: list[float], reached: bool) -> None:
    rule = rules.Frequency(window_s=24 * HOUR_S, times=3, level=Level.MANUALLY_SEPARATE)
    assert recurrences.frequent(rule, at_s, now_s=at_s[-1]) is reached


def test_one_fault_while_idle_and_one_while_in_use_are_not_two() -> None:
    """051: the caller counts only what happened to a card in use."""
    rule = rules.Frequency(window_s=24 * HOUR_S, times=2, level=Level.MANUALLY_SEPARATE)
    assert not recurrences.frequent(rule, [5.0], now_s=6.0)


def test_a_raised_level_falls_after_a_clean_time() -> None:
    rule = shipped().rules.frequency["81078603"]
    assert rule.release_after_s == 172_800

    def released(now_s: float, recovered_s: float | None = 10.0) -> bool:
        return recurrences.frequency_released(
            rule, last_occurrence_s=5.0, last_recovery_s=recovered_s, now_s=now_s
        )

    assert (released(172_810.0), released(172_811.0), released(1e9, None)) == (False, True, False)
    by_hand = shipped().rules.frequency["80E18005"]
    assert not recurrences.frequency_released(by_hand, last_occurrence_s=0, last_recovery_s=1, now_s=1e9)


@pytest.mark.parametrize(
    ("spans", "now_s", "expected"),
    [
        pytest.param([Span(0)], 20.0, (None, 20.0), id="V29-20-s"),
        pytest.param([Span(0)], 20.001, (Level.PRE_SEPARATE, None), id="V29-20.001-s"),
        pytest.param([Span(0, 21)], 81.0, (Level.PRE_SEPARATE, 81.0), id="V29-60-s-clean"),
        pytest.param([Span(0, 21)], 81.001, (None, None), id="V29-more-than-60-s-clean"),
        pytest.param([Span(0, 21), Span(50, 51)], 100.0, (Level.PRE_SEPARATE, 111.0), id="came-back"),
        pytest.param([Span(0, 21), Span(90, 95)], 100.0, (None, None), id="came-back-late"),
        pytest.param([Span(0, 5)], 100.0, (None, None), id="short"),
        pytest.param([], 1.0, (None, None), id="never"),
    ],
)
def test_duration_rules(spans: list[Span], now_s: float, expected: tuple[Level | None, float | None]) -> None:
    assert recurrences.lasting(shipped().rules.duration["81078603"], spans, now_s=now_s) == expected


def test_the_same_code_on_two_cards_of_a_job_is_software() -> None:
    """V91."""
    first = Occurrence("n0/Ascend910-0", "80E18005", 100.0)
    assert recurrences.is_software(first, [first, Occurrence("n1/Ascend910-0", "80E18005", 130.0)])
    assert not recurrences.is_software(first, [first, Occurrence("n1/Ascend910-0", "80E18005", 131.0)])
    assert not recurrences.is_software(first, [Occurrence("n0/Ascend910-0", "80E18005", 110.0)])
    assert not recurrences.is_software(first, [Occurrence("n1/Ascend910-0", "80C98000", 110.0)])


def test_a_chip_table_without_any_group_is_refused() -> None:
    with pytest.raises(InputError, match="none of its groups"):
        code_tables.parse_chip("{}", where="t")
    assert fault_configs.shipped().refused == ()
