"""The table of a service as planners see it: what was published last, and with whom it clashes.

A ledger that was deleted or set back under a service that is there is not believed: consumers hold the newest
table, so generations and ids must go on from the newest one that we saw.
"""

from __future__ import annotations

from mindie_ha.cluster import documents
from mindie_ha.cluster.config_maps import ConfigMaps, read, version_of
from mindie_ha.cluster.facts import Facts
from mindie_ha.model.ids import ScopeKey, ScopeKind
from mindie_ha.model.ledgers import ServiceLedger
from mindie_ha.model.views import TableView


def table_view(
    scope: ScopeKey,
    *,
    facts: Facts,
    maps: ConfigMaps,
    subscribers: int = 0,
    handed_to_all: bool = True,
) -> TableView | None:
    """The table of a service; None for a job that belongs to none."""
    if scope.kind is not ScopeKind.SERVICE:
        return None
    key = documents.service_ledger_key(scope.namespace, scope.name)
    entry = maps.ledger(key)
    ledger, error = read(entry, ServiceLedger)
    if ledger is not None and (ledger.namespace, ledger.job_id) != (scope.namespace, scope.name):
        ledger, error = None, f"ConfigMap {entry.key if entry else ''} is the ledger of another service"
    last = maps.tables.get(key)
    lost = not error and last is not None and _is_behind(ledger, last, scope, facts)
    shared: set[ScopeKey] = set()
    for uid in facts.by_scope.of(scope):
        shared.update(facts.sharers(facts.workloads[uid]))
    return TableView(
        ledger=(last if lost else ledger) or ServiceLedger(namespace=scope.namespace, job_id=scope.name),
        ledger_version=version_of(entry),
        ledger_error=error,
        recorded=not lost,
        subscribers=subscribers,
        handed_to_all=handed_to_all,
        shared_with=tuple(str(key) for key in sorted(shared - {scope})),
        namesakes=tuple(other.namespace for other in facts.services_named(scope.name) if other != scope),
    )


def _is_behind(stored: ServiceLedger | None, last: ServiceLedger, scope: ScopeKey, facts: Facts) -> bool:
    """Whether the stored ledger is older than the newest one seen, under a service that is there."""
    same = (last.namespace, last.job_id) == (scope.namespace, scope.name)
    behind = stored is None or stored.generation < last.generation
    return same and behind and bool(facts.by_scope.of(scope))


__all__ = ["table_view"]
