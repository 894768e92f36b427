"""The overview is gathered a service at a time, and those who ask together share it."""

from __future__ import annotations

import asyncio
from typing import cast

from mindie_ha.web.overviews import Overviews
from mindie_ha.web.reports import Overview, Reporter


class OneReport:
    """As plain data."""

    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"mode": mode}


class SlowReports:
    """Counts how often it is asked for a service."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.asked = 0

    def scopes(self) -> set[int]:
        return set(range(self._count))

    def report(self, scope: int) -> OneReport | None:
        self.asked += 1
        return OneReport() if scope else None  # the first one is gone meanwhile

    def overview(self, *, services: tuple[()]) -> Overview:
        return Overview(services=services)


async def test_others_get_their_turn_and_askers_share() -> None:
    reports = SlowReports(200)
    overviews = Overviews(cast("Reporter", reports))
    first = asyncio.create_task(overviews.gather())
    turns = 0
    while not first.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 5:
            more = [asyncio.create_task(overviews.gather()) for _ in range(50)]
    assert turns >= 200
    assert len(cast("list[object]", (await first)["services"])) == 199
    found = await asyncio.gather(*more)
    assert all(one is found[0] for one in found)
    assert reports.asked == 400  # one gathering for the first, one for all who came during it


async def test_what_was_gathered_before_the_question_is_no_answer() -> None:
    reports = SlowReports(3)
    overviews = Overviews(cast("Reporter", reports))
    await overviews.gather()
    await overviews.gather()
    assert reports.asked == 6
