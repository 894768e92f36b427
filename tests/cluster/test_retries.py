"""`remain-retry-times` belongs to several: ours goes beside theirs, or nowhere."""

from __future__ import annotations

import orjson
import pytest

from mindie_ha.cluster.retries import Retries, granted, parse_retries

ENTRY = "mindie/p0-0b1c2d3e-0000-0000-0000-000000000000"
DEEP = f'{{"other/job": {"[" * 300}{"]" * 300}}}'


def test_our_entry_goes_beside_those_of_others() -> None:
    text = granted('{"other/job": {"Times": 1}}', entry=ENTRY, job_uid="u", times=3)
    assert text is not None
    found = orjson.loads(text)
    assert (found["other/job"], found[ENTRY]["Times"]) == ({"Times": 1}, 3)


@pytest.mark.parametrize("text", ["[]", "{", DEEP], ids=["list", "cut", "deeper-than-can-be-written"])
def test_what_could_not_be_written_again_is_left_alone(text: str) -> None:
    assert granted(text, entry=ENTRY, job_uid="u", times=3) is None


def test_an_entry_that_is_nested_deep_costs_itself_only() -> None:
    text = f'{DEEP[:-1]}, "mindie/p0": {{"Times": 2}}}}'
    assert parse_retries(text, where="here") == {"mindie/p0": Retries(2, ours=False)}
