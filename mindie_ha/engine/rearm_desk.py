"""Where people re-arm a parked workload.

The answer is given when the workload's ledger holds it; whoever runs as the controller looks again at once.
Asking twice is asking once: what is not parked stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import Conflict, LedgerUnreadable, NotFound
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import Park
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import WorkloadView
from mindie_ha.policy import rearming

ATTEMPTS = 5  # the reconciler writes the same ledger


@dataclass(frozen=True, slots=True)
class Rearmed:
    """What was ended; `park` None: it was not parked, nothing changed."""

    workload: ObjectKey
    park: Park | None

    @property
    def changed(self) -> bool:
        """Whether a park was ended."""
        return self.park is not None


class RearmDesk:
    """See the module."""

    def __init__(self, *, store: Store, ledgers: Ledgers, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._ledgers = ledgers
        self._clock = clock
        self._settings = settings

    async def reset(self, key: ObjectKey, *, text: str, person: str) -> Rearmed:
        """End the park of a workload. Raises InputError, NotFound, LedgerUnreadable, ClusterError."""
        rearming.word(person=person, text=text)
        if self._settings.dry_run:
            raise Conflict("the controller runs with --dry-run: it records nothing", status=409)
        for attempt in range(ATTEMPTS):
            view = self._view(key)
            if view.ledger_error:
                raise LedgerUnreadable(view.ledger_error)
            now_s = self._clock.wall()
            ledger = rearming.rearmed(view.ledger, person=person, text=text, now_s=now_s)
            if ledger == view.ledger:
                return Rearmed(key, None)
            try:
                await self._ledgers.save_workload(ledger, workload=view.workload, version=view.ledger_version)
            except Conflict:
                if attempt + 1 == ATTEMPTS:
                    raise
                continue
            return Rearmed(key, view.ledger.parked)
        raise AssertionError("unreachable")

    def _view(self, key: ObjectKey) -> WorkloadView:
        workload = self._store.workload(key)
        scope = self._store.view(workload.scope, now_s=self._clock.wall()) if workload is not None else None
        for view in scope.workloads if scope is not None else ():
            if view.workload.key == key:
                return view
        raise NotFound(f"there is no workload {str(key)[:317]}", status=404)


__all__ = ["RearmDesk", "Rearmed"]
