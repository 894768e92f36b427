"""The keyed queue: one slot a key, faults first, timers, back-off."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.queues import KeyedQueue

pytestmark = pytest.mark.looptime


def make_queue(*, bound: int = 100) -> KeyedQueue[str]:
    return KeyedQueue(clock=LoopClock(wall_origin_s=0.0), entropy=Entropy(1), bound=bound)


async def taken(queue: KeyedQueue[str]) -> list[str]:
    """Everything that is due now, given back at once."""
    keys = []
    while len(queue):
        key = await queue.get()
        keys.append(key)
        queue.done(key)
    return keys


async def test_a_key_added_many_times_is_one_slot() -> None:
    queue = make_queue()
    for _ in range(5):
        queue.add("a")
    assert await taken(queue) == ["a"]


async def test_faults_go_first_and_order_is_kept_inside_a_priority() -> None:
    queue = make_queue()
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add("d", urgent=True)
    queue.add("c", urgent=True)
    assert await taken(queue) == ["d", "c", "a", "b"]


async def test_a_key_is_never_with_two_workers_and_comes_back_after_done() -> None:
    queue = make_queue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_an_urgent_addition_while_running_stays_urgent() -> None:
    queue = make_queue()
    queue.add("a")
    await queue.get()
    queue.add("b")
    queue.add("a", urgent=True)
    queue.add("a")
    queue.done("a")
    assert await taken(queue) == ["a", "b"]


async def test_a_waiting_worker_wakes_for_an_addition() -> None:
    queue = make_queue()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(5)
    queue.add("a")
    assert await waiting == "a"
    assert asyncio.get_running_loop().time() == 5


async def test_the_earliest_timer_of_a_key_wins() -> None:
    queue = make_queue()
    queue.add_at("a", 10.0)
    queue.add_at("a", 3.0)
    queue.add_at("a", 7.0)
    assert await queue.get() == "a"
    assert asyncio.get_running_loop().time() == pytest.approx(3.0)


async def test_a_plain_add_does_not_cancel_a_later_timer() -> None:
    queue = make_queue()
    queue.add_at("a", 10.0)
    queue.add("a")
    assert await taken(queue) == ["a"]
    assert await queue.get() == "a"
    assert asyncio.get_running_loop().time() == pytest.approx(10.0)


async def test_a_timer_that_fires_while_the_key_runs_makes_it_due_again() -> None:
    queue = make_queue()
    queue.add("a")
    await queue.get()
    queue.add_at("a", 1.0)
    queue.add_at("b", 2.0)
    assert await queue.get() == "b"
    queue.done("a")
    assert await queue.get() == "a"


async def test_an_earlier_timer_set_while_a_worker_waits_is_kept() -> None:
    queue = make_queue()
    queue.add_at("late", 100.0)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add_at("soon", 2.0)
    assert await waiting == "soon"
    assert asyncio.get_running_loop().time() == pytest.approx(2.0)


async def test_failures_double_the_delay_up_to_a_bound_and_success_forgets_them() -> None:
    queue = make_queue()
    delays = [queue.retry("a") for _ in range(12)]
    assert delays[0] == pytest.approx(0.1, rel=0.21)
    assert delays[3] == pytest.approx(0.8, rel=0.21)
    assert max(delays) <= 30.0
    assert delays[-1] >= 24.0
    queue.forget("a")
    assert queue.retry("a") == pytest.approx(0.1, rel=0.21)


async def test_beyond_the_bound_nothing_is_lost_in_silence() -> None:
    queue = make_queue(bound=2)
    assert [queue.add(key) for key in ("a", "b", "c", "a")] == [True, True, False, True]
    assert queue.refused == 1
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]


async def test_a_timer_that_finds_the_queue_full_comes_again() -> None:
    queue = make_queue(bound=1)
    queue.add_at("timer", 1.0)
    queue.add("a")
    await asyncio.sleep(2)
    assert await queue.get() == "a"
    queue.add("b")
    assert await queue.get() == "b"
    assert await queue.get() == "timer"


async def test_two_workers_share_the_work() -> None:
    queue = make_queue()
    for number in range(10):
        queue.add(str(number))
    running: set[str] = set()
    done: list[str] = []

    async def work() -> None:
        while True:
            key = await queue.get()
            assert key not in running
            running.add(key)
            await asyncio.sleep(1)
            running.discard(key)
            done.append(key)
            queue.done(key)

    workers = [asyncio.create_task(work()) for _ in range(2)]
    await asyncio.sleep(5.5)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    assert sorted(done) == [str(number) for number in range(10)]


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "urgent", "take", "done", "timer"]), st.sampled_from("abc")),
        max_size=60,
    )
)
def test_whatever_is_added_is_taken_once_more_after_the_last_addition(steps: list[tuple[str, str]]) -> None:
    async def play() -> None:
        queue = make_queue()
        running: list[str] = []
        owed: set[str] = set()
        for step, key in steps:
            if step in ("add", "urgent"):
                queue.add(key, urgent=step == "urgent")
                owed.add(key)
            elif step == "timer":
                queue.add_at(key, 0.0)
                owed.add(key)
            elif step == "take" and len(queue):
                got = await queue.get()
                assert got not in running
                running.append(got)
                owed.discard(got)
            elif step == "done" and running:
                queue.done(running.pop())
        for key in running:
            queue.done(key)
        while owed:
            async with asyncio.timeout(5):
                got = await queue.get()
            owed.discard(got)
            queue.done(got)

    asyncio.run(play())


async def test_a_held_key_comes_once_when_the_hold_is_over_whoever_adds_it() -> None:
    clock = LoopClock(wall_origin_s=0.0)
    queue: KeyedQueue[str] = KeyedQueue(clock=clock, entropy=Entropy(1))
    queue.hold("a", 2.0)
    queue.add("a", urgent=True)
    queue.add_at("a", clock.monotonic() + 1.0)
    queue.add("b")
    assert await queue.get() == "b"
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(2.0, abs=0.01)
    queue.done("a")
    queue.add("a")
    assert await taken(queue) == ["a"]
