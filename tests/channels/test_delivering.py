"""One delivery loop: retried until delivered or superseded, on virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from mindie_ha.channels.deliveries import DELIVERED, Delivery, Outcome
from mindie_ha.channels.ports import DeliveryProblem, DeliveryReceipt, HttpTarget, Owed, TableVersion
from mindie_ha.channels.settings import DeliverySettings
from mindie_ha.kit.clock import LoopClock
from tests.channels.fakes import CHAT, table, tools

TARGET = HttpTarget("http://[fd00::12]:1026/table")
NO_JITTER = DeliverySettings(backoff_jitter=0.0)
DOWN = Outcome("failed", "connection refused")

pytestmark = pytest.mark.looptime


class Script:
    """An attempt that follows a script, then always delivers; notes the time of each try."""

    def __init__(self, *outcomes: Outcome | Exception, takes_s: float = 0.0) -> None:
        self.clock = LoopClock()
        self.outcomes = list(outcomes)
        self.takes_s = takes_s
        self.tries: list[tuple[float, int]] = []
        self.receipts: list[DeliveryReceipt] = []
        self.problems: list[DeliveryProblem] = []
        self.delivery = Delivery(
            CHAT,
            TARGET,
            channel="http",
            attempt=self.attempt,
            tools=tools(self.clock, receipts=self.receipts, problems=self.problems, settings=NO_JITTER),
        )

    async def attempt(self, offered: TableVersion) -> Outcome:
        self.tries.append((round(self.clock.monotonic(), 3), offered.generation))
        await asyncio.sleep(self.takes_s)
        outcome = self.outcomes.pop(0) if self.outcomes else DELIVERED
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def test_backs_off_doubling_to_30_s_until_delivered() -> None:
    script = Script(*[DOWN] * 9)
    script.delivery.offer(table(1))
    await script.delivery.at_rest()

    times = [at for at, _ in script.tries]
    assert [b - a for a, b in pairwise(times)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert [receipt.generation for receipt in script.receipts] == [1]
    assert [problem.attempts for problem in script.problems] == list(range(1, 10))
    assert script.delivery.owed is None
    await script.delivery.close()


async def test_only_the_newest_is_delivered_to_one_that_was_down_for_long() -> None:
    script = Script(*[DOWN] * 30)
    script.delivery.offer(table(1))
    await asyncio.sleep(300)
    script.delivery.offer(table(2))
    script.delivery.offer(table(3))
    script.outcomes.clear()
    await script.delivery.at_rest()

    assert script.tries[-1] == (300.0, 3)  # the new table ended the pause
    assert [receipt.generation for receipt in script.receipts] == [3]
    await script.delivery.close()


async def test_table_superseded_during_an_attempt_is_not_retried() -> None:
    script = Script(DOWN, takes_s=1.0)
    script.delivery.offer(table(1))
    await asyncio.sleep(0.5)
    script.delivery.offer(table(2))
    await script.delivery.at_rest()

    assert script.tries == [(0.0, 1), (1.0, 2)]
    await script.delivery.close()


async def test_refusal_waits_for_the_next_table_or_five_minutes() -> None:
    no = Outcome("refused", "HTTP 422: bad table")
    script = Script(no, no, no)
    script.delivery.offer(table(1))
    await script.delivery.at_rest()
    assert script.delivery.owed == Owed(
        destination=TARGET,
        generation=1,
        digest="sha256:1",
        attempts=1,
        last_error="HTTP 422: bad table",
        refused=True,
    )

    await asyncio.sleep(301)
    script.delivery.offer(table(2))
    await asyncio.sleep(1)

    assert script.tries == [(0.0, 1), (300.0, 1), (301.0, 2)]
    assert all(problem.refused for problem in script.problems)
    await script.delivery.close()


async def test_a_bug_in_an_attempt_costs_that_attempt() -> None:
    script = Script(RuntimeError("a bug"))
    script.delivery.offer(table(1))
    await script.delivery.at_rest()

    assert script.tries == [(0.0, 1), (0.5, 1)]
    assert "a bug" in script.problems[0].reason
    await script.delivery.close()


async def test_attempt_that_hangs_is_given_up() -> None:
    script = Script(takes_s=60.0)
    script.delivery.offer(table(1))
    await asyncio.sleep(10.2)

    assert script.problems[0].reason == "no result within 10 s"
    await script.delivery.close()


async def test_equal_digest_is_not_sent_and_repeat_sends_it() -> None:
    script = Script()
    script.delivery.offer(table(1))
    await script.delivery.at_rest()
    script.delivery.offer(table(2, digest=table(1).digest))
    await script.delivery.at_rest()
    assert len(script.tries) == 1

    script.delivery.repeat(table(2, digest=table(1).digest))
    await script.delivery.at_rest()

    assert script.tries == [(0.0, 1), (0.0, 2)]
    await script.delivery.close()


async def test_closing_cancels_the_attempt_and_forgets_what_was_owed() -> None:
    script = Script(takes_s=5.0)
    script.delivery.offer(table(1))
    await asyncio.sleep(1)
    await script.delivery.close()
    script.delivery.offer(table(2))
    await asyncio.sleep(10)

    assert len(script.tries) == 1
    assert script.receipts == []
