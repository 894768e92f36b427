"""What the engine needs from the Kubernetes edge, as small protocols.

The engine decides nothing and talks to nobody directly: it reads views, asks the planner, writes memory
first and hands actions to these ports. `cluster/` implements them.
"""

from __future__ import annotations

from typing import Protocol

from mindie_ha.model.ids import ObjectKey, PodUID, ScopeKey
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.views import NodeView, ScopeView
from mindie_ha.model.workloads import Workload


class Views(Protocol):
    """Reads snapshots. O(size of one service)."""

    def view(
        self, scope: ScopeKey, *, now_s: float, subscribers: int = 0, handed_to_all: bool = True
    ) -> ScopeView | None:
        """The scope as it stands; None when nothing of it is left."""
        ...

    def node_view(self, name: str, *, now_s: float) -> NodeView:
        """One node, also one that does not exist."""
        ...

    def open_recoveries(self) -> frozenset[str]:
        """Names of all open recoveries as isolations know them: `recovery:<ns>/<name>#<epoch>`."""
        ...


class Writes(Protocol):
    """Fenced writes to the cluster. All raise ClusterError or LeaseLost; all are idempotent."""

    async def delete_pod(self, key: ObjectKey, uid: PodUID, *, grace_s: int | None) -> None:
        """Delete this very pod; one that is gone is done."""
        ...

    async def taint(self, node: str, *, uid: str, value: str) -> None:
        """Put our NoSchedule taint on the node."""
        ...

    async def untaint(self, node: str, *, uid: str) -> None:
        """Take our taint off the node."""
        ...

    async def adopt_podgroup(self, key: ObjectKey, *, uid: str) -> None:
        """Mark the PodGroup as ours."""
        ...

    async def grant_retries(self, entry: str, *, job_uid: str, times: int) -> None:
        """Write the operator's `remain-retry-times` entry if nobody has."""
        ...


class Memory(Protocol):
    """Ledgers with compare-and-swap. `Conflict` means: look again, decide again."""

    async def save_workload(self, ledger: WorkloadLedger, *, owner: Workload) -> None:
        """Write one workload's ledger."""
        ...

    async def save_service(self, ledger: ServiceLedger) -> None:
        """Write one service's ledger."""
        ...

    async def save_node(self, ledger: NodeLedger) -> None:
        """Write one node's ledger; an empty one is removed."""
        ...
