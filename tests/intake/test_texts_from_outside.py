"""What JSON can spell and nothing of ours could write down again is refused at the door."""

from __future__ import annotations

from contextlib import suppress

import pytest

from mindie_ha.intake import bodies
from mindie_ha.model.errors import InputError


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a": "\\ud800"}', id="value"),
        pytest.param('{"\\uDFFF": 1}', id="key"),
        pytest.param('[["x\\udc00\\ud800y"]]', id="halves-in-the-wrong-order"),
        pytest.param('["\ud800"]', id="raw"),
    ],
)
def test_half_of_a_character_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="half of a character"):
        bodies.parse(text, where="here")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param('"\\ud83c\\udf27"', "\N{CLOUD WITH RAIN}", id="pair"),
        pytest.param('"\\\\ud800"', "\\ud800", id="a-backslash-and-letters"),
        pytest.param('"\N{CLOUD WITH RAIN}"', "\N{CLOUD WITH RAIN}", id="raw"),
    ],
)
def test_whole_characters_are_taken(text: str, value: str) -> None:
    assert bodies.parse(text, where="here") == value


def test_however_deep_a_text_is_it_is_read_or_refused() -> None:
    """Reading and looking for halves of characters have limits of their own, which depend on the stack."""
    for depth in range(850, 1000):
        text = f'{{"a": "\\ud83d\\ude00", "b": {"[" * depth}{"]" * depth}}}'
        with suppress(InputError):
            bodies.parse(text, where="here")
