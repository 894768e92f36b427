"""What ClusterD is told of cards that we keep free: always a message that it takes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mindie_ha.intake import public_messages
from mindie_ha.intake.lints.public_reports import AnySerial, shipped_codes
from mindie_ha.intake.public_marks import marked

NOW_S = 1_800_000_000.0


def mark(text: str | None, *cards: int, now_s: float = NOW_S) -> str | None:
    devices = {f"Ascend910-{card}" for card in cards}
    return marked(text, node="node-1", devices=devices, resource="CCAE", code="020001001", now_s=now_s)


def read(text: str) -> list[tuple[str, int, str]]:
    """Assertion, card and name of each fault, as ClusterD takes them."""
    body: dict[str, Any] = json.loads(text)
    message = public_messages.read(body, codes=shipped_codes(), serials=AnySerial(), where="")
    assert message.left_out == ()
    return [(fault.assertion, fault.influences[0].devices[0], fault.fault_id) for fault in message.faults]


def test_a_card_occurs_once_and_recovers_under_the_same_name() -> None:
    first = mark(None, 3)
    assert first is not None
    ((assertion, card, name),) = read(first)
    assert (assertion, card) == ("occur", 3)
    assert mark(first, 3, now_s=NOW_S + 9) is None
    freed = mark(first, now_s=NOW_S + 10)
    assert freed is not None
    assert read(freed) == [("recover", 3, name)]
    assert mark(freed, now_s=NOW_S + 11) is None
    again = mark(freed, 3, now_s=NOW_S + 12)
    assert again is not None
    assert [(one, card) for one, card, _ in read(again)] == [("recover", 3), ("occur", 3)]
    assert len({name for _, _, name in read(again)}) == 2  # a known name would be ignored


def test_what_cannot_be_read_is_replaced() -> None:
    for text in ("{", "[]", '{"faults": [3, {"influence": []}]}'):
        found = mark(text, 1)
        assert found is not None
        assert [(one, card) for one, card, _ in read(found)] == [("occur", 1)]
    assert mark("{", *()) is None


@settings(deadline=None)
@given(steps=st.lists(st.frozensets(st.integers(0, 31), max_size=32), max_size=20))
def test_the_message_stays_valid_bounded_and_says_exactly_what_is_wanted(steps: list[frozenset[int]]) -> None:
    text: str | None = None
    for number, cards in enumerate(steps):
        text = mark(text, *cards, now_s=NOW_S + number) or text
        if text is not None:
            assert {card for one, card, _ in read(text) if one == "occur"} == cards
