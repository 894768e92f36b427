"""Maintenance windows: times in which deletions are held, as if a person had paused the cluster. Pure.

A window begins whenever its cron expression fires in its time zone and lasts `duration_s` of real time, also
across a change of the clocks; windows may overlap. Outside them nothing is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cronsim import CronSim

from mindie_ha.model.settings import Window
from mindie_ha.policy.holds import HELD_BY_WINDOW, Hold


def judge(windows: Iterable[Window], *, now_s: float) -> Hold:
    """What holds deletions now; it is looked at again when the first of the open windows ends."""
    open_now = [(end_s, window) for window in windows if (end_s := ends_s(window, now_s=now_s)) is not None]
    if not open_now:
        return Hold()
    end_s, window = min(open_now, key=lambda each: each[0])
    message = f"maintenance window {window.cron!r} ({window.time_zone}), {window.duration_s:g} s long"
    return Hold(HELD_BY_WINDOW, message, end_s)


def ends_s(window: Window, *, now_s: float) -> float | None:
    """Wall time at which the window that is open now ends; None where none is open."""
    earliest_s = now_s - window.duration_s
    fires = CronSim(window.cron, datetime.fromtimestamp(earliest_s, tz=window.zone))
    # The first one after `earliest_s`: older ones are over. In an hour that repeats it may start too early.
    began = next((fire for fire in fires if fire.timestamp() > earliest_s), None)
    if began is None or began.timestamp() > now_s:
        return None
    return began.timestamp() + window.duration_s
