"""A mailbox: the last table always arrives, and nothing ever goes back."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.channels.latest_values import Mailbox
from tests.channels.fakes import table


@given(
    digests=st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    steps=st.lists(st.sampled_from(["offer", "stale", "take", "confirm", "give_back"]), max_size=60),
)
def test_the_last_table_arrives_and_nothing_goes_back(digests: list[str], steps: list[str]) -> None:
    async def run() -> None:
        box, has, seen, offered, in_hand = Mailbox(), "", 0, 0, None
        for step in steps:
            if step == "offer" and offered < len(digests):
                offered += 1
                box.offer(table(offered, digest=digests[offered - 1]))
            elif step == "stale" and offered:
                box.offer(table(offered, digest="stale"))
            elif step == "take" and in_hand is None and box.pending is not None:
                in_hand = await box.take()
            elif step in {"confirm", "give_back"} and in_hand is not None:
                # A hand-over whose outcome is unknown may have happened.
                assert in_hand.generation >= seen
                assert in_hand.digest != "stale"
                has, seen, in_hand = in_hand.digest, in_hand.generation, None
                _ = box.confirm() if step == "confirm" else box.give_back()
        if in_hand is not None:
            has = in_hand.digest
            box.confirm()
        while box.pending is not None:
            last = await box.take()
            assert last is not None
            has = last.digest
            box.confirm()
        assert not offered or has == digests[offered - 1]
        assert box.owed is None

    asyncio.run(run())


async def test_a_table_that_came_back_to_what_the_receiver_has_is_not_sent() -> None:
    box = Mailbox(delivered_digest="a")

    assert box.offer(table(2, digest="b"))
    assert not box.offer(table(3, digest="a"))

    assert box.owed is None


async def test_after_an_unknown_outcome_the_old_table_is_sent_again() -> None:
    box = Mailbox(delivered_digest="a")
    box.offer(table(2, digest="b"))
    await box.take()
    box.give_back()

    assert box.offer(table(3, digest="a"))


async def test_the_same_content_under_a_newer_generation_is_retried_under_the_newer_one() -> None:
    box = Mailbox()
    box.offer(table(1, digest="a"))
    await box.take()
    box.offer(table(2, digest="a"))

    assert box.give_back()
    assert box.pending == table(2, digest="a")


@pytest.mark.looptime
async def test_closing_ends_a_waiting_take() -> None:
    box = Mailbox()
    asyncio.get_running_loop().call_later(1, box.close)

    assert await box.take() is None
    assert not box.offer(table(1))
