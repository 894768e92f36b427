"""The memory of a dry run: what would have been written, kept beside what is stored.

Without it every look would begin the same recovery anew and show its first step only. An imagined ledger
counts as long as the stored one is what it was made from: whoever really writes has the last word.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mindie_ha.model.ids import ScopeKey
from mindie_ha.model.ledgers import ServiceLedger, WorkloadLedger
from mindie_ha.model.views import ScopeView, TableView, WorkloadView


@dataclass(slots=True)
class Imagined:
    """Ledgers by workload UID and by scope, each with the stored one it was made from."""

    _workloads: dict[str, tuple[WorkloadLedger, WorkloadLedger]] = field(default_factory=dict)
    _tables: dict[ScopeKey, tuple[ServiceLedger, ServiceLedger]] = field(default_factory=dict)
    _uids: dict[ScopeKey, frozenset[str]] = field(default_factory=dict)

    def over(self, view: ScopeView) -> ScopeView:
        """`view` with the imagined ledgers in place of the stored ones."""
        uids = frozenset(each.workload.uid for each in view.workloads)
        for gone in self._uids.get(view.scope, frozenset()) - uids:
            self._workloads.pop(gone, None)
        self._uids[view.scope] = uids
        workloads = tuple(self._workload(each) for each in view.workloads)
        return replace(view, workloads=workloads, table=self._table(view.scope, view.table))

    def keep(self, uid: str, ledger: WorkloadLedger) -> None:
        """What would be the workload's ledger now."""
        self._workloads[uid] = (self._workloads[uid][0], ledger)

    def keep_table(self, scope: ScopeKey, ledger: ServiceLedger) -> None:
        """What would be the service's ledger now."""
        self._tables[scope] = (self._tables[scope][0], ledger)

    def forget(self, scope: ScopeKey) -> None:
        """The scope is gone."""
        for uid in self._uids.pop(scope, frozenset()):
            self._workloads.pop(uid, None)
        self._tables.pop(scope, None)

    def _workload(self, view: WorkloadView) -> WorkloadView:
        made_from, ledger = self._workloads.get(view.workload.uid, (view.ledger, view.ledger))
        if made_from != view.ledger:
            ledger = view.ledger
        self._workloads[view.workload.uid] = (view.ledger, ledger)
        return replace(view, ledger=ledger)

    def _table(self, scope: ScopeKey, table: TableView | None) -> TableView | None:
        if table is None:
            return None
        made_from, ledger = self._tables.get(scope, (table.ledger, table.ledger))
        if made_from != table.ledger:
            ledger = table.ledger
        self._tables[scope] = (table.ledger, ledger)
        return replace(table, ledger=ledger)


__all__ = ["Imagined"]
