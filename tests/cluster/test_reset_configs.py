"""What is written into the mailbox of a training job, and when nobody may write."""

from __future__ import annotations

import hashlib

import orjson
import pytest

from mindie_ha.cluster.reset_configs import gracefully_ending, parse, rejoined
from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey

KEY = ObjectKey("train", "reset-config-job")
HELD = [{"RankId": 3, "Status": "unrecovered", "Policy": "reset"}]


def data(**content: object) -> dict[str, str]:
    return {"reset.json": orjson.dumps(content).decode(), "restartType": ""}


def test_what_others_wrote_stays_and_the_check_code_follows() -> None:
    written = rejoined(data(RetryTime=1, Theirs="kept"), key=KEY, retry_time=2, at_s=5.5)
    text = written["reset.json"]
    assert text is not None
    assert orjson.loads(text) == {
        "RetryTime": 2,
        "Theirs": "kept",
        "RankList": [],
        "UpdateTime": 5,
        "FaultFlushing": False,
    }
    assert written["checkCode"] == hashlib.sha256(text.encode()).hexdigest()
    assert written["restartType"] == "podReschedule"


def test_what_was_said_is_not_said_again() -> None:
    assert rejoined(data(RetryTime=2), key=KEY, retry_time=2, at_s=0.0) == {}
    assert gracefully_ending(data(GracefulExit=1), key=KEY, ending=True, at_s=0.0) == {}
    assert gracefully_ending(data(), key=KEY, ending=False, at_s=0.0) == {}


def test_a_reset_that_began_since_we_looked_is_not_overwritten() -> None:
    held = data(RetryTime=1, RankList=HELD)
    assert parse(KEY, held).held
    with pytest.raises(InputError, match="resets a card"):
        rejoined(held, key=KEY, retry_time=2, at_s=0.0)
    with pytest.raises(InputError, match="resets a card"):
        gracefully_ending(held, key=KEY, ending=True, at_s=0.0)


def test_a_word_to_leave_is_taken_back_even_during_a_reset() -> None:
    written = gracefully_ending(data(GracefulExit=1, RankList=HELD), key=KEY, ending=False, at_s=0.0)
    text = written["reset.json"]
    assert text is not None
    assert orjson.loads(text)["RankList"] == HELD


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", '{"RetryTime": "1"}', '{"RetryTime": -1}', '{"RankList": 5}', '{"RankList": [5]}'),
        pytest.param(f'{{"theirs": {"[" * 300}{"]" * 300}}}', id="deeper-than-can-be-written"),
    ],
)
def test_what_cannot_be_read_is_told_and_never_overwritten(text: str) -> None:
    assert parse(KEY, {"reset.json": text}).error
    with pytest.raises(InputError):
        rejoined({"reset.json": text}, key=KEY, retry_time=1, at_s=0.0)
