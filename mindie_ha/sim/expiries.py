"""Events live one hour after their last write, as etcd's lease on them says; long runs stay bounded."""

from __future__ import annotations

from mindie_ha.sim.core import Core
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.storage import Change, Key, Kind, kind_of

EVENTS = by_kind("Event")
LIFE_S = 3600.0
PERIOD_S = 60.0


class EventExpiry:
    """Follows writes of Events; `run()` has to be owned by a task supervisor."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._deadlines: dict[Key, float] = {}  # oldest first: every write moves its key to the end
        core.store.listen(self._follow)

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind != kind_of(EVENTS):
            return
        self._deadlines.pop(change.key, None)
        if change.type != "DELETED":
            self._deadlines[change.key] = self._core.clock.monotonic() + LIFE_S

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await self._core.clock.sleep(PERIOD_S)
            self.sweep()

    def sweep(self) -> None:
        """Drop the Events whose hour is over."""
        now_s = self._core.clock.monotonic()
        over: list[Key] = []
        for key, deadline_s in self._deadlines.items():
            if deadline_s > now_s:
                break
            over.append(key)
        for namespace, name in over:
            self._core.store.remove(EVENTS, namespace, name)
