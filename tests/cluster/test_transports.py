"""Replies become errors of our tree; chunks become lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.cluster.transports import Reply, bounded_lines, check, error_of, within
from mindie_ha.model.errors import (
    ClusterError,
    Conflict,
    Denied,
    Gone,
    NotFound,
    Refused,
    Throttled,
    Unreachable,
)

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused), (401, Denied), (403, Denied), (404, NotFound), (409, Conflict), (410, Gone),
        (422, Refused), (429, Throttled), (500, Unreachable), (503, Unreachable), (504, Unreachable),
    ],
)  # fmt: skip
def test_each_status_has_its_error(status: int, kind: type[ClusterError]) -> None:
    body = orjson.dumps({"kind": "Status", "code": status, "reason": "R", "message": "because"})
    with pytest.raises(kind, match=f"get pods a/b: {status} R because") as caught:
        check(Reply(status, body), action="get pods a/b")
    assert caught.value.status == status


def test_a_good_reply_is_its_body() -> None:
    assert check(Reply(201, b"x"), action="create") == b"x"


def test_a_410_of_a_list_carries_the_fresh_token() -> None:
    error = error_of(410, orjson.dumps({"metadata": {"continue": "tok"}}), {}, action="list")
    assert isinstance(error, Gone)
    assert error.continue_token == "tok"


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({"retry-after": "3"}, None, 3.0),
        ({}, {"retryAfterSeconds": 7}, 7.0),
        ({"retry-after": "Wed, 21 Oct 2026"}, None, 1.0),
        ({"retry-after": "nan"}, None, 1.0),
        ({"retry-after": "1e9"}, None, 60.0),
        ({"retry-after": "-5"}, None, 0.0),
        ({}, "x", 1.0),
        ({}, {"retryAfterSeconds": [1]}, 1.0),
    ],
    ids=["header", "details", "date", "nan", "huge", "negative", "no-object", "list"],
)
def test_how_long_to_wait_after_429(headers: dict[str, str], details: object, seconds: float) -> None:
    error = error_of(429, orjson.dumps({"details": details}), headers, action="x")
    assert isinstance(error, Throttled)
    assert error.retry_after_s == seconds


@given(status=st.integers(400, 599), body=st.binary(max_size=50))
def test_any_body_of_a_refusal_becomes_an_error_of_the_tree(status: int, body: bytes) -> None:
    assert isinstance(error_of(status, body, {}, action="x"), ClusterError)


async def chunks_of(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def lines(parts: list[bytes], *, limit: int = 1000) -> list[bytes]:
    return [line async for line in bounded_lines(chunks_of(parts), limit=limit)]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b\nc", b"\n"], [b"ab", b"c"]),
        ([b"\n\n a\r\n"], [b" a\r"]),
        ([b"no end"], [b"no end"]),
        ([b"x" * 900, b"x" * 900, b"\nok\n"], [b"", b"ok"]),
        ([b"x" * 2000], []),
    ],
    ids=["two", "split", "blank", "unended", "overlong-then-good", "overlong-unended"],
)
async def test_lines(parts: list[bytes], expected: list[bytes]) -> None:
    assert await lines(parts) == expected


@given(
    text=st.lists(st.binary(min_size=1, max_size=20).filter(lambda raw: b"\n" not in raw and raw.strip())),
    cut=st.integers(1, 7),
)
def test_however_lines_are_cut_into_chunks_they_come_out_whole(text: list[bytes], cut: int) -> None:
    whole = b"".join(line + b"\n" for line in text)
    parts = [whole[at : at + cut] for at in range(0, len(whole), cut)]
    assert asyncio.run(lines(parts)) == text


async def test_silence_is_a_broken_connection() -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(1000)
        yield b"b"

    items = within(30.0, silent())
    assert await anext(items) == b"a"
    with pytest.raises(Unreachable, match="for 30 s"):
        await anext(items)
    assert asyncio.get_running_loop().time() == 30
