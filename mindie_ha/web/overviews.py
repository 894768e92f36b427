"""Everything that `status` shows, gathered without holding up anybody else.

A report is planned per service, and a fleet has hundreds: the loop gets a turn after each. One gathering
runs at a time, and whoever asked before it began shares its result, so that many who ask at once cost as
much as one.
"""

from __future__ import annotations

import asyncio

from mindie_ha.web.reports import Overview, Reporter


class Overviews:
    """Shares gatherings between those who ask."""

    def __init__(self, reports: Reporter) -> None:
        self._reports = reports
        self._turn = asyncio.Lock()
        self._begun = 0
        self._last: tuple[int, dict[str, object]] = (0, {})

    async def gather(self) -> dict[str, object]:
        """As plain data; it began after this was called."""
        asked_after = self._begun
        async with self._turn:
            number, found = self._last
            if number > asked_after:
                return found
            self._begun += 1
            number = self._begun
            found = await self._gather()
            self._last = (number, found)
            return found

    async def _gather(self) -> dict[str, object]:
        services = []
        for scope in sorted(self._reports.scopes()):
            report = self._reports.report(scope)
            if report is not None:
                services.append(report.model_dump(mode="json"))
            await asyncio.sleep(0)
        rest: Overview = self._reports.overview(services=())
        return {**rest.model_dump(mode="json"), "services": services}
