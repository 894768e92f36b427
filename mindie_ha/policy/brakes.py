"""The fleet brake: many nodes lost at once look like our blindness, not like their failure.

It holds deletions that only a lost node asks for; it never blocks a release, a table, or the answer to a
chip fault. It lifts when fewer nodes are lost, or after a while if more than half of the fleet is Ready.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.settings import BrakeSettings
from mindie_ha.model.views import FleetView


@dataclass(frozen=True, slots=True)
class Brake:
    """Whether the brake is on, and when to look again."""

    on: bool = False
    reason: str = ""
    wake_at_s: float | None = None


def too_many_lost(fleet: FleetView, *, settings: BrakeSettings) -> bool:
    """Whether the losses of the window are above the limit, or nothing is Ready at all. A fleet without any
    Node object is the same: more likely we cannot see it."""
    limit = max(float(settings.lost_nodes_min), settings.lost_nodes_share * fleet.nodes)
    return fleet.lost_recently > limit or fleet.ready == 0


def braked_since_s(fleet: FleetView, *, settings: BrakeSettings, now_s: float) -> float | None:
    """What the store has to remember as `FleetView.braked_since_s`."""
    if not too_many_lost(fleet, settings=settings):
        return None
    return fleet.braked_since_s if fleet.braked_since_s is not None else now_s


def judge(fleet: FleetView, *, settings: BrakeSettings, now_s: float) -> Brake:
    """Whether deletions because of lost nodes are held now."""
    since_s = braked_since_s(fleet, settings=settings, now_s=now_s)
    if since_s is None:
        return Brake()
    lifts_at_s = since_s + settings.release_s
    if now_s >= lifts_at_s and fleet.ready * 2 > fleet.nodes:
        return Brake()
    reason = f"{fleet.lost_recently} of {fleet.nodes} nodes lost within {settings.window_s:g} s"
    if fleet.ready == 0:
        reason = f"none of {fleet.nodes} nodes is Ready"
    return Brake(on=True, reason=reason, wake_at_s=lifts_at_s if now_s < lifts_at_s else None)
