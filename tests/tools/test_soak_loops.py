"""The loop under the simulation: virtual time, processes that stop at any step, and no way to hang."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextvars import copy_context

import pytest

from tools.soak.loops import PROCESS, Deadlock, LiveLock, Process, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.end()


def within(process: Process, body: Coroutine[object, object, None]) -> asyncio.Task[None]:
    context = copy_context()
    context.run(PROCESS.set, process)
    return asyncio.get_running_loop().create_task(body, context=context)


async def tick(times: list[float], count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(1)
        times.append(asyncio.get_running_loop().time())


def test_a_year_costs_what_is_done_in_it(loop: VirtualLoop) -> None:
    loop.run_until_complete(asyncio.sleep(365 * 86_400))
    assert loop.time() >= 365 * 86_400
    assert loop.turns < 2000


def test_a_frozen_process_takes_no_step_and_goes_on_later(loop: VirtualLoop) -> None:
    async def story() -> None:
        times: list[float] = []
        others: list[float] = []
        process = Process("one")
        mine, other = within(process, tick(times, 5)), asyncio.ensure_future(tick(others, 5))
        await asyncio.sleep(2.5)
        process.freeze()
        await asyncio.sleep(10)
        assert (times, others) == ([1, 2], [1, 2, 3, 4, 5])
        process.thaw()
        await asyncio.gather(mine, other)
        assert times == [1, 2, 12.5, 13.5, 14.5]

    loop.run_until_complete(story())


@pytest.mark.parametrize("after", range(1, 7))
def test_a_process_is_stopped_at_any_of_its_steps(loop: VirtualLoop, after: int) -> None:
    async def story() -> None:
        times: list[float] = []
        process = Process("one")
        within(process, tick(times, 50))
        await asyncio.sleep(1.5)
        process.trap(after, process.freeze)
        known = process.steps
        await asyncio.sleep(30)
        assert process.steps == known + after - 1
        assert len(times) < 6
        process.thaw()

    loop.run_until_complete(story())


def test_turning_without_time_passing_is_seen(loop: VirtualLoop) -> None:
    async def spin() -> None:
        await asyncio.sleep(3)
        while True:  # noqa: ASYNC110 - it is what this test is about
            await asyncio.sleep(0)

    with pytest.raises(LiveLock, match=r"at 3\.0+ s"):
        loop.run_until_complete(spin())


def test_waiting_for_what_nobody_will_do_is_seen(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        loop.run_until_complete(wait())
