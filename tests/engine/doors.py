"""What stands between a controller and the embedded API server: doors that shut, rules that strike.

The Lease passes beside all of it, unless the door is shut: no test counts its renewals.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from mindie_ha.sim.disturbances import Rule
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.server import ApiServer
from tools.soak.judges import Judge

BESIDE = ("/events",)
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Ours(Rule):
    """A rule that strikes the requests of the controller alone, but for those for its Lease."""

    def matches(self, route: Route, request: ApiRequest) -> bool:
        """As `Rule`, for one user agent."""
        ours = request.headers.get("user-agent") == "mindie-ha" and "/leases" not in request.path
        return ours and super().matches(route, request)


@dataclass(slots=True)
class Door:
    """Between one controller and the server. Shut, it lets nothing through in either direction."""

    server: ApiServer
    judge: Judge
    cut_before: int = 0  # the write with this number never leaves; 0: none
    cut_after: int = 0  # this one arrives, its answer does not
    counts_events: bool = True
    writes: int = 0
    shut: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Answer one request, or never."""
        if "/leases" in request.path:  # counted by nobody
            if self.shut.is_set():
                raise ConnectionResetError("the door is shut")
            return await self.server.handle(request)
        if request.method not in WRITES or request.path.endswith("reviews"):  # questions, too
            return await (self._never() if self.shut.is_set() else self.server.handle(request))
        counted = self.counts_events or not any(path in request.path for path in BESIDE)
        self.writes += counted
        if counted and self.writes == self.cut_before:
            self.shut.set()
        if self.shut.is_set():
            return await self._never()
        self.judge.before(request)
        response: ApiResponse | None = None
        try:
            response = await self.server.handle(request)
        finally:
            self.judge.after(request, response)
        if counted and self.writes >= self.cut_after > 0:
            self.shut.set()
            return await self._never()
        return response

    async def _never(self) -> ApiResponse:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable")
