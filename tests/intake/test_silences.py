"""Silence windows: the syntax of the annotations, and what they do to a fault over time."""

from __future__ import annotations

import pytest

from mindie_ha.intake.silences import CODES, LEVELS, windows
from mindie_ha.model.faults import CodeFact
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.workloads import Role


def fact(
    code: str = "80E01801", level: Level = Level.RESTART_BUSINESS, family: Family = Family.CHIP
) -> CodeFact:
    return CodeFact(code, level, family, first_seen_s=100.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "code1: 20,code2,code3: 0.2, code4:str,code5:-1, code6\uff1a,"
            "[0x00f10509,132333,npu,na], [0x00f10509]",
            {
                "CODE1": 20,
                "CODE2": 60,
                "CODE3": 60,
                "CODE4": 60,
                "CODE5": 60,
                "CODE6": 60,
                "[0X00F10509,132333,NPU,NA]": 60,
                "[0X00F10509]": 60,
            },
            id="V87",
        ),
        pytest.param("code1: 86401, code2:86400", {"CODE1": 60, "CODE2": 86400}, id="V88"),
        pytest.param(
            "[0x08520003,na,L2,na]:7\uff0ca\uff1a3", {"[0X08520003,NA,L2,NA]": 7, "A": 3}, id="full-width"
        ),
        pytest.param(" , ,: 5,", {}, id="nothing"),
        pytest.param("a:0", {"A": 0}, id="zero"),
        pytest.param("[,[,]a", {"[": 60, "[,]A": 60}, id="broken-brackets"),
        pytest.param("a:٣", {"A": 60}, id="digits-of-another-script"),
        pytest.param("a:" + "9" * 5000, {"A": 60}, id="endless-number"),
    ],
)
def test_items_of_the_annotation(text: str, expected: dict[str, int]) -> None:
    assert windows({CODES: text}, role=Role.TRAINING).codes == expected


@pytest.mark.parametrize(
    ("annotations", "role", "expected"),
    [
        pytest.param({LEVELS: ""}, Role.SERVER, {"RestartRequest": 60}, id="V89-empty"),
        pytest.param({}, Role.SERVER, {"RestartRequest": 60}, id="V89-absent"),
        pytest.param(
            {LEVELS: "level1,level2:20\uff0cRestartRequest: 20"},
            Role.SERVER,
            {"level1": 60, "level2": 20, "RestartRequest": 20},
            id="V89-own",
        ),
        pytest.param({}, Role.TRAINING, {}, id="training"),
        pytest.param({}, Role.CONTROLLER, {}, id="ms"),
    ],
)
def test_levels_and_the_default_of_servers(
    annotations: dict[str, str], role: Role, expected: dict[str, int]
) -> None:
    assert windows(annotations, role=role).levels == expected


def test_malformed_numbers_are_named_with_the_allowed_range() -> None:
    """049."""
    found = windows({CODES: "8C1F8608:90000, 80E01801:-5, 8C1F8609: 7"}, role=Role.SERVER)
    assert found.codes == {"8C1F8608": 60, "80E01801": 60, "8C1F8609": 7}
    assert len(found.findings) == 2
    assert all("0-86400" in text for text in found.findings)


@pytest.mark.parametrize(
    ("annotations", "told", "window_s"),
    [
        pytest.param({CODES: "80e01801:30"}, fact(), 30.0, id="code"),
        pytest.param(
            {CODES: "80E01801:5", LEVELS: "RestartBusiness:99"}, fact(), 5.0, id="code-decides-alone"
        ),
        pytest.param({CODES: "x:5", LEVELS: "RestartBusiness:99"}, fact(), 99.0, id="level"),
        pytest.param({LEVELS: "RestartRequest:9"}, fact(), 0.0, id="another-level"),
        pytest.param(
            {LEVELS: "SeparateFault:9"},
            fact(level=Level.SEPARATE, family=Family.SWITCH),
            9.0,
            id="switch-spelling",
        ),
        pytest.param({CODES: "80E01801:30"}, fact(family=Family.PUBLIC), 0.0, id="never-public"),
        pytest.param({CODES: "80E01801:30"}, fact(family=Family.NODE), 0.0, id="never-board"),
        pytest.param({LEVELS: "nonsense:9"}, fact(level=Level.UNKNOWN), 0.0, id="unknown-level"),
    ],
)
def test_how_long_a_fault_is_borne(annotations: dict[str, str], told: CodeFact, window_s: float) -> None:
    found = windows(annotations, role=Role.TRAINING)
    assert found.window_s(told) == window_s
    assert found.until_s(told) == 100.0 + window_s
