"""Nodes, their device reports and what the scheduler has been told about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mindie_ha.model.faults import Fault, FaultSource

TAINT_ISOLATED = "mindie-ha.io/isolated"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """One node taint."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Losses:
    """How often a node stopped being Ready in one streak of losses. Wall time in seconds."""

    count: int = 0
    since_s: float = 0.0
    last_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Node:
    """A Node object. `exists` is False for a node that pods or reports name but the API does not have."""

    name: str
    uid: str = ""
    exists: bool = True
    ready: bool = True
    ready_reason: str = ""
    not_ready_since_s: float | None = None  # wall time, our own observation
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    addresses: tuple[str, ...] = ()
    capacity_npu: int = 0
    healthy_status: str = ""  # annotation NodeHealthyStatus; sticky until a person removes it
    serial: str = ""  # annotation product-serial-number
    losses: Losses = Losses()
    resource_version: str = ""

    @property
    def open(self) -> bool:
        """Whether a pod that tolerates nothing may be placed there."""
        closed = self.unschedulable or any(
            taint.effect in ("NoSchedule", "NoExecute") for taint in self.taints
        )
        return self.exists and self.ready and not closed


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """The device plugin's word on one node: cards that are unhealthy now, listed so or by their codes.

    `stale_reason` says why the newest update was refused (the last good state is kept).
    """

    node: str
    unhealthy: frozenset[str] = frozenset()
    network_unhealthy: frozenset[str] = frozenset()
    resetting: frozenset[str] = frozenset()
    sub_healthy: frozenset[str] = frozenset()  # cards with a code of that level
    updated_at_s: float = 0.0  # by the node's clock
    advanced_at_s: float = field(default=0.0, compare=False)  # by ours: when we saw that time move
    stale_reason: str = ""


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """What one source (switch, board) says about a node as a whole; no faults: it is well."""

    node: str
    source: FaultSource
    faults: tuple[Fault, ...] = ()
    updated_at_s: float = field(default=0.0, compare=False)
    stale_reason: str = ""


@dataclass(frozen=True, slots=True)
class ListedDevices:
    """The list that the scheduler reads (`cluster-info-device-<i>`): what it believes of one node."""

    node: str
    unhealthy: frozenset[str] = frozenset()
    updated_at_s: float = field(default=0.0, compare=False)  # tells two entries of a moving node apart
