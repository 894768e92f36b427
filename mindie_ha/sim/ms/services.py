"""What the MS pods of one service know of each other.

Stands for two things outside the pods: the etcd locks, and the calls by which the leading Controller tells
each Coordinator *that its table names* which instances exist. A Coordinator whose IP is in no table is never
told anything, as in life.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.ms.elections import Election
from mindie_ha.sim.ms.loaders import Instance


class InstanceListener(Protocol):
    """A running Coordinator: takes `POST /v1/instances/refresh`."""

    def refresh(self, instances: Sequence[Instance]) -> None:
        """Replace the known instances."""
        ...


class MsService:
    """The MS roles of one (namespace, jobID)."""

    def __init__(self, clock: Clock, *, lease_s: float, leads_first: Collection[str] = ()) -> None:
        self.controllers = Election(clock, lease_s=lease_s, leads_first=leads_first)
        self.coordinators = Election(clock, lease_s=lease_s, leads_first=leads_first)
        self.listeners: dict[str, InstanceListener] = {}
        """Running Coordinators by pod IP."""

    def synchronize(self, coordinator_ips: Sequence[str], instances: Sequence[Instance]) -> None:
        """Tell the Coordinators at these addresses; one that does not run is passed over."""
        for ip in coordinator_ips:
            listener = self.listeners.get(ip)
            if listener is not None:
                listener.refresh(instances)


__all__ = ["InstanceListener", "MsService"]
