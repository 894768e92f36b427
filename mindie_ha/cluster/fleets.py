"""Fleet counters, kept with every Node event so that reading them costs nothing.

A node counts as lost from the moment it stops being Ready (or vanishes) until it is Ready again or the
brake's window has passed. While the brake is on no loss is forgotten: time alone brings no node back. Nodes
that are NotReady when we first see them count from their own transition time: our restart in the middle of
an outage must not hide the outage from the brake.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from mindie_ha.model.settings import BrakeSettings
from mindie_ha.model.views import FleetView
from mindie_ha.policy.brakes import braked_since_s, judge


class Fleet:
    """Counts nodes."""

    def __init__(self, settings: BrakeSettings) -> None:
        self._settings = settings
        self._ready: dict[str, bool] = {}
        self._ready_count = 0
        self._open: set[str] = set()
        self._lost: OrderedDict[str, float] = OrderedDict()  # in order of time
        self._braked_since_s: float | None = None
        self._on = False

    def put(self, node: str, *, ready: bool, since_s: float, now_s: float, is_open: bool = False) -> bool:
        """A node as it is now; `since_s` is when it stopped being Ready, `is_open` whether new pods may come.
        True if that lifted the brake."""
        (self._open.add if is_open else self._open.discard)(node)
        was = self._ready.get(node)
        self._ready[node] = ready
        self._ready_count += int(ready) - int(bool(was))
        if ready:
            self._lost.pop(node, None)
        elif was or was is None:
            self._lose(node, since_s)
        return self._judge(now_s)

    def remove(self, node: str, *, now_s: float) -> bool:
        """The Node object is gone. True if that lifted the brake."""
        self._open.discard(node)
        was = self._ready.pop(node, None)
        if was is None:
            return False
        if was:
            self._ready_count -= 1
            self._lose(node, now_s)
        return self._judge(now_s)

    def view(self, *, now_s: float, open_recoveries: int = 0) -> FleetView:
        """The summary that planners read."""
        self._judge(now_s)
        return replace(self._summary(), open_recoveries=open_recoveries)

    def _lose(self, node: str, at_s: float) -> None:
        self._lost.pop(node, None)
        self._lost[node] = at_s

    def _judge(self, now_s: float) -> bool:
        braked = self._braked_since_s is not None
        if not (braked and judge(self._summary(), settings=self._settings, now_s=now_s).on):
            window_s = self._settings.window_s
            for node in [name for name, at_s in self._lost.items() if now_s - at_s > window_s]:
                del self._lost[node]
        self._braked_since_s = braked_since_s(self._summary(), settings=self._settings, now_s=now_s)
        was_on, self._on = self._on, judge(self._summary(), settings=self._settings, now_s=now_s).on
        return was_on and not self._on

    def _summary(self) -> FleetView:
        return FleetView(
            nodes=len(self._ready),
            ready=self._ready_count,
            open=len(self._open),
            lost_recently=len(self._lost),
            braked_since_s=self._braked_since_s,
        )


__all__ = ["Fleet"]
