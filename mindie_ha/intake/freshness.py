"""When a device report is no report any more: a condition that is shown, never a fault.

The plugin writes at least every five minutes. A report whose time is older than `report_stale_s`, and whose
time we have not seen moving for as long (clocks of nodes may be wrong), tells nothing about now; what it said
last is kept, because a dead plugin heals no card.

Source: fault input contract §1.6, §1.2; vector V19.
"""

from __future__ import annotations

from mindie_ha.model.nodes import DeviceReport


def unreported(report: DeviceReport | None, *, stale_s: float, now_s: float) -> str:
    """Why the node's cards are not reported now; empty: they are, or the node has no plugin at all."""
    if report is None:
        return ""
    newest_s = max(report.updated_at_s, report.advanced_at_s)
    if now_s - newest_s <= stale_s:
        return ""
    if not newest_s:
        return f"no valid report was ever seen: {report.stale_reason or 'unknown reason'}"
    age = f"the last valid report is {now_s - newest_s:.0f} s old"
    return f"{age}; newer ones are refused: {report.stale_reason}" if report.stale_reason else age


def goes_stale_at_s(report: DeviceReport | None, *, stale_s: float, now_s: float) -> float | None:
    """When a report that counts now will not count any more, unless a newer one comes."""
    if report is None:
        return None
    at_s = max(report.updated_at_s, report.advanced_at_s) + stale_s
    return at_s + 0.001 if at_s >= now_s else None
