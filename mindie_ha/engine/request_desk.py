"""Where people ask for a recovery.

The answer is given when the workload's ledger holds their word; whoever runs as the controller sees it with
its watch and recovers as after a fault. Who asks twice is told that it is under way.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import Conflict, LedgerUnreadable, NotFound
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.policy import asking
from mindie_ha.policy.asking import Wish

ATTEMPTS = 5  # the reconciler writes the same ledger


@dataclass(frozen=True, slots=True)
class Requested:
    """What was recorded: the recovery to come, and what the controller says first."""

    workload: ObjectKey
    rung: str
    pods: tuple[str, ...]
    epoch: int
    says: str


class RequestDesk:
    """See the module."""

    def __init__(self, *, store: Store, ledgers: Ledgers, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._ledgers = ledgers
        self._clock = clock
        self._settings = settings

    async def recover(self, key: ObjectKey, wish: Wish) -> Requested:
        """Record a wish. Raises InputError, NotFound, Conflict, LedgerUnreadable, ClusterError."""
        if self._settings.dry_run:
            raise Conflict("the controller runs with --dry-run: it records nothing", status=409)
        for attempt in range(ATTEMPTS):
            scope, view = self._view(key)
            if view.ledger_error:
                raise LedgerUnreadable(view.ledger_error)
            granted = asking.judge(scope, view, wish, settings=self._settings, now_s=self._clock.wall())
            try:
                await self._ledgers.save_workload(
                    granted.ledger, workload=view.workload, version=view.ledger_version
                )
            except Conflict:
                if attempt + 1 == ATTEMPTS:
                    raise
                continue
            return Requested(key, granted.rung, granted.pods, granted.epoch, granted.says)
        raise AssertionError("unreachable")

    def _view(self, key: ObjectKey) -> tuple[ScopeView, WorkloadView]:
        workload = self._store.workload(key)
        scope = self._store.view(workload.scope, now_s=self._clock.wall()) if workload is not None else None
        for view in scope.workloads if scope is not None else ():
            if view.workload.key == key and scope is not None:
                return scope, view
        raise NotFound(f"there is no workload {str(key)[:317]}", status=404)


__all__ = ["RequestDesk", "Requested"]
