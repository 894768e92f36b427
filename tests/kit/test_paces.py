"""How often something may be done: a burst, then evenly, and never a wait that does not end."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.paces import Pace
from tools.soak.loops import VirtualLoop


def on_virtual_time(body: object) -> object:
    """Run a coroutine on a loop that fails where time does not pass."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(body)  # type: ignore[call-overload]
    finally:
        loop.end()


@pytest.mark.looptime
async def test_after_a_rest_a_second_s_worth_goes_at_once_and_the_rest_evenly() -> None:
    clock = LoopClock()
    pace = Pace(clock=clock, per_s=10)
    times = []
    for _ in range(25):
        await pace.turn()
        times.append(clock.monotonic())
    assert times[9] == 0
    assert times[10:] == pytest.approx([0.1 * number for number in range(1, 16)], abs=1e-3)


@pytest.mark.looptime
async def test_a_rest_is_worth_one_second_at_most() -> None:
    clock = LoopClock()
    pace = Pace(clock=clock, per_s=10)
    await clock.sleep(100)
    began_s = clock.monotonic()
    await asyncio.gather(*(pace.turn() for _ in range(20)))
    assert clock.monotonic() - began_s == pytest.approx(1.0, abs=1e-3)


@pytest.mark.looptime
async def test_turns_come_in_the_order_of_asking() -> None:
    pace, came = Pace(clock=LoopClock(), per_s=2), []

    async def ask(number: int) -> None:
        await pace.turn()
        came.append(number)

    await asyncio.gather(*map(ask, range(8)))
    assert came == list(range(8))


@settings(deadline=None)  # real time, of a machine that may be busy
@given(st.lists(st.floats(0, 0.4), min_size=5, max_size=60), st.sampled_from([3, 7, 50, 200]))
def test_whenever_turns_are_asked_for_time_goes_on_and_none_is_lost(gaps: list[float], per_s: int) -> None:
    async def ask() -> float:
        clock = LoopClock()
        pace = Pace(clock=clock, per_s=per_s)
        for gap_s in gaps:
            await clock.sleep(gap_s)
            await asyncio.gather(*(pace.turn() for _ in range(per_s)))
        return clock.monotonic()

    spent_s = on_virtual_time(ask())
    assert isinstance(spent_s, float)
    assert spent_s >= len(gaps) - 1 - 1e-3


@pytest.mark.parametrize("per_s", [0, -1])
def test_a_pace_of_nothing_is_refused(per_s: float) -> None:
    async def make() -> None:
        Pace(clock=LoopClock(), per_s=per_s)

    with pytest.raises(ValueError, match="above 0"):
        on_virtual_time(make())
