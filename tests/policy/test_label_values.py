"""The five ways people write the switch, from a line of YAML to the word on it."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.policy.label_values import LABELS, LabelVerdict, Standing, judge

QUOTE = 'only "on", in quotes, lets the failed pod alone be replaced'
ONE_OF = 'it must be one of force, grace, external-force, external-grace, "off"'
BOOLEAN = "is the YAML boolean true (an unquoted on, yes or true); the API server refuses it"
TEXT = "(it looks like an unquoted YAML on/off), so"
JOB = "a failure restarts all pods of the job"


def written(label: str, text: str) -> LabelVerdict:
    return judge(label, yaml.safe_load(f"{label}: {text}")[label])


@pytest.mark.parametrize(
    ("text", "standing", "message"),
    [
        pytest.param("on", Standing.REFUSED, f"label pod-rescheduling {BOOLEAN}", id="unquoted-on"),
        pytest.param('"on"', Standing.KNOWN, "", id="on"),
        pytest.param("true", Standing.REFUSED, f"label pod-rescheduling {BOOLEAN}", id="unquoted-true"),
        pytest.param('"true"', Standing.IGNORED, f"label pod-rescheduling is 'true' {TEXT} {JOB}", id="true"),
        pytest.param(
            '"On "',
            Standing.REFUSED,
            "label pod-rescheduling is 'On '; the API server refuses it, as a label value has letters, "
            "digits, '-', '_', '.', and begins and ends with a letter or digit, at most 63 of them",
            id="On-blank",
        ),
        pytest.param('"On"', Standing.IGNORED, f"label pod-rescheduling is 'On' {TEXT} {JOB}", id="On"),
        pytest.param('"off"', Standing.KNOWN, "", id="off"),
        pytest.param("", Standing.KNOWN, "", id="absent"),
        pytest.param("1", Standing.REFUSED, "label pod-rescheduling is no text; the API server refuses it"),
    ],
)
def test_each_way_to_write_pod_rescheduling_has_its_word(text: str, standing: Standing, message: str) -> None:
    said = written("pod-rescheduling", text)
    assert (said.standing, said.message) == (standing, message)
    assert said.sentence == (f"{message}: {QUOTE}" if message else "")


@pytest.mark.parametrize(
    ("text", "standing", "message"),
    [
        pytest.param("on", Standing.REFUSED, f"label fault-scheduling {BOOLEAN}", id="unquoted-on"),
        pytest.param(
            "off",
            Standing.REFUSED,
            "label fault-scheduling is the YAML boolean false (an unquoted off, no or false); the API server "
            "refuses it",
            id="unquoted-off",
        ),
        pytest.param('"off"', Standing.KNOWN, "", id="off"),
        pytest.param(
            '"on"', Standing.IGNORED, f"label fault-scheduling is 'on' {TEXT} the job is not managed", id="on"
        ),
        pytest.param(
            "Grace",
            Standing.IGNORED,
            "label fault-scheduling is 'Grace', so the job is not managed",
            id="135",
        ),
        pytest.param("external-grace", Standing.KNOWN, "", id="external-grace"),
    ],
)
def test_each_way_to_write_fault_scheduling_has_its_word(text: str, standing: Standing, message: str) -> None:
    said = written("fault-scheduling", text)
    assert (said.standing, said.message) == (standing, message)
    assert said.sentence == (f"{message}: {ONE_OF}" if message else "")


@given(label=st.sampled_from(LABELS), value=st.text(max_size=80) | st.integers() | st.booleans() | st.none())
def test_a_value_is_known_or_has_a_message_with_advice(label: str, value: object) -> None:
    said = judge(label, value)
    assert bool(said.message) == bool(said.advice) == (said.standing is not Standing.KNOWN)
    assert len(said.sentence) < 500
    assert "\n" not in said.sentence
