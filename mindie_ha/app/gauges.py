"""Gauges that are read from the live parts when somebody scrapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mindie_ha.cluster.leases import Candidate
from mindie_ha.cluster.store import Store
from mindie_ha.engine.outlets import Outlets
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.roles import Activity
from mindie_ha.policy.activity import MS_ROLES

LEDGERS = ("workload", "service", "node", "pauses")
WORKLOAD_STATES = ("parked", "waiting", "recovering")


def watch(
    metrics: Metrics, *, store: Store, outlets: Outlets, candidate: Candidate, leads: Callable[[], bool]
) -> None:
    """Let every gauge read its part."""
    metrics.subscribers.set_function(lambda: outlets.mailboxes.open_streams)
    metrics.leader.set_function(lambda: float(leads()))
    metrics.lease_age_s.set_function(lambda: candidate.age_s)
    for role in sorted(MS_ROLES):
        for what in Activity:
            metrics.ms_pods.labels(role, what).set_function(partial(store.roles.count, role, what))
    for kind in LEDGERS:
        metrics.ledgers_unreadable.labels(kind).set_function(partial(_unreadable, store, kind))
    for state in WORKLOAD_STATES:
        metrics.workloads.labels(state).set_function(partial(_in_state, store, state))


def _unreadable(store: Store, kind: str) -> int:
    return sum(1 for entry in store.ledger_entries() if entry.error and entry.label == kind)


def _in_state(store: Store, state: str) -> int:
    ledgers = (entry.ledger for entry in store.ledger_entries())
    return sum(1 for ledger in ledgers if isinstance(ledger, WorkloadLedger) and ledger.state == state)


__all__ = ["watch"]
