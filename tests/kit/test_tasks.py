"""The supervisor: names, restarts, containment, bounded closing."""

from __future__ import annotations

import asyncio
import io
import itertools
import json

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import make_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import OnEnd, Supervisor, every

pytestmark = pytest.mark.looptime


class House:
    def __init__(self) -> None:
        self.output = io.StringIO()
        self.metrics = Metrics()
        self.supervisor = Supervisor(
            clock=LoopClock(wall_origin_s=0.0),
            entropy=Entropy(1),
            log=make_log(self.output, as_json=True),
            metrics=self.metrics,
        )

    def crashes(self, task: str) -> float:
        value = self.metrics.factory.registry.get_sample_value("mindie_ha_task_crashes_total", {"task": task})
        return value or 0.0

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.output.getvalue().splitlines()]


@pytest.fixture
async def house() -> House:
    return House()


async def fail() -> None:
    raise KeyError("a bug")


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_crash_is_contained_reported_and_returned(house: House) -> None:
    crash = await house.supervisor.contain("reconcile", fail())
    assert crash.crashed
    assert house.crashes("reconcile") == 1
    assert "Traceback" in str(house.lines()[0]["exception"])


async def test_a_good_result_passes_through(house: House) -> None:
    async def answer() -> int:
        return 42

    assert (await house.supervisor.contain("reconcile", answer())).value == 42


async def test_cancellation_is_not_swallowed(house: House) -> None:
    task = asyncio.create_task(house.supervisor.contain("reconcile", forever()))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_loop_that_crashes_starts_again_with_growing_delays(house: House) -> None:
    starts: list[float] = []

    async def crash() -> None:
        starts.append(asyncio.get_running_loop().time())
        raise ValueError("again")

    house.supervisor.start("loop", crash)
    await asyncio.sleep(10)
    await house.supervisor.close()
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert gaps == sorted(gaps)
    assert 3 <= len(starts) <= 6


async def test_the_end_of_a_vital_task_is_told_to_the_owner(house: House) -> None:
    house.supervisor.start("vital", fail, on_end=OnEnd.FAIL)
    async with asyncio.timeout(1):
        await house.supervisor.failed.wait()
    assert house.supervisor.failure == "task vital ended: KeyError('a bug')"


async def test_a_name_is_used_once_and_free_again_after_the_end(house: House) -> None:
    house.supervisor.start("one", forever)
    with pytest.raises(ValueError, match="one is running already"):
        house.supervisor.start("one", forever)
    await house.supervisor.stop("one")
    house.supervisor.start("one", forever)
    assert house.supervisor.names == ("one",)
    await house.supervisor.close()


async def test_closing_awaits_cancelled_tasks(house: House) -> None:
    ended: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ended.append("tidy")

    house.supervisor.start("tidy", tidy)
    await asyncio.sleep(0)
    await house.supervisor.close()
    assert ended == ["tidy"]


async def test_closing_is_bounded_and_names_who_does_not_end(house: House) -> None:
    stop = asyncio.Event()

    async def stubborn() -> None:
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue

    task = house.supervisor.start("stubborn", stubborn, on_end=OnEnd.ACCEPT)
    await asyncio.sleep(0)
    await house.supervisor.close(timeout_s=2.0)
    assert house.lines()[-1]["task"] == "stubborn"
    stop.set()
    await task


async def test_a_crash_of_one_step_is_told_when_every_step_has_ended() -> None:
    ended: list[str] = []

    async def slow() -> None:
        await asyncio.sleep(5)
        ended.append("slow")

    async def broken() -> None:
        raise ValueError("bug")

    with pytest.raises(ValueError, match="bug"):
        await every([broken(), slow()])
    assert ended == ["slow"]


async def test_cancelling_steps_cancels_each_of_them() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            ended.append("slow")

    task = asyncio.create_task(every([slow(), slow()]))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["slow", "slow"]
