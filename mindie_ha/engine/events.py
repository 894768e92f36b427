"""Which Kubernetes object an Event of a record is about: the one a person would `describe`."""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.cluster.events import About
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.workload_kinds import BY_KIND
from mindie_ha.engine.records import TABLE, DecisionRecord
from mindie_ha.model.decisions import Notice
from mindie_ha.model.ids import ObjectKey, ScopeKind
from mindie_ha.model.workloads import Role, Workload


def about_of(record: DecisionRecord, store: Store) -> About | None:
    """The AscendJob, the service's Controller for a table, or the Node; None when it is gone."""
    if record.scope.kind is ScopeKind.NODE:
        name = record.scope.name
        return About("v1", "Node", ObjectKey("", name), name)  # kubectl looks for the name in the UID
    if record.subject == TABLE:
        workloads = store.workloads_of(record.scope)
        chosen = next((one for one in workloads if one.role is Role.CONTROLLER), None)
        return _job(chosen or next(iter(workloads), None))
    return _job(store.workload(ObjectKey.parse(record.subject)))


def for_event(notice: Notice, record: DecisionRecord) -> Notice:
    """The notice as an Event says it: `describe` shows object and reason beside the message."""
    message = notice.message.removeprefix(f"{record.subject}: ").removeprefix(f"{notice.reason}: ")
    return replace(notice, message=message)


def _job(workload: Workload | None) -> About | None:
    if workload is None:
        return None
    return About(BY_KIND[workload.kind].resource.api_version, workload.kind, workload.key, workload.uid)
