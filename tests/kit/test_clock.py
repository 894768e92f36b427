"""Wall time follows the system's clock without its jumps."""

from __future__ import annotations

import asyncio

import pytest

from mindie_ha.kit.clock import SLEW, LoopClock

pytestmark = pytest.mark.looptime
START_S = 1_700_000_000.0


class System:
    """The system's clock: runs with the loop and can be set."""

    def __init__(self) -> None:
        self.set_by_s = 0.0
        self._began_s = asyncio.get_running_loop().time()

    def __call__(self) -> float:
        return START_S + self.set_by_s + asyncio.get_running_loop().time() - self._began_s


@pytest.mark.parametrize("jump_s", [-3600.0, -1.0, 1.0, 3600.0])
async def test_a_clock_that_is_set_bends_wall_time_and_never_breaks_it(jump_s: float) -> None:
    system = System()
    clock = LoopClock(system=system)
    await clock.sleep(100)
    assert clock.wall() == pytest.approx(START_S + 100)
    system.set_by_s = jump_s
    assert clock.wall() == pytest.approx(START_S + 100)
    before_s = clock.wall()
    await clock.sleep(60)
    assert abs(clock.wall() - before_s - 60) <= 60 * SLEW + 1e-6
    await clock.sleep(abs(jump_s) / SLEW)
    assert clock.wall() == pytest.approx(system())


async def test_wall_time_never_goes_back() -> None:
    system = System()
    clock = LoopClock(system=system)
    system.set_by_s = -86_400.0
    last_s = clock.wall()
    for _ in range(100):
        await clock.sleep(0.01)
        assert clock.wall() > last_s
        last_s = clock.wall()


async def test_a_clock_with_an_origin_ignores_the_system() -> None:
    clock = LoopClock(wall_origin_s=START_S, system=lambda: 5.0)
    await clock.sleep(10)
    assert clock.wall() == pytest.approx(START_S + 10)
