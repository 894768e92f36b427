"""Which Kubernetes object an Event of a record is about: the one a person would `describe`."""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.cluster.events import About
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.workload_kinds import BY_KIND
from mindie_ha.engine.records import TABLE, DecisionRecord
from mindie_ha.model.decisions import Notice
from mindie_ha.model.ids import ObjectKey, ScopeKind
from mindie_ha.model.workloads import Workload


def about_of(record: DecisionRecord, store: Store) -> About | None:
    """The AscendJob, for a table the one that the decision names, or the Node; None when it is gone."""
    if record.scope.kind is ScopeKind.NODE:
        name = record.scope.name
        return About("v1", "Node", ObjectKey("", name), name)  # kubectl looks for the name in the UID
    if record.subject == TABLE:
        return _job(store.workload(record.about) if record.about is not None else None)
    return _job(store.workload(ObjectKey.parse(record.subject)))


def for_event(notice: Notice, record: DecisionRecord) -> Notice:
    """The notice as an Event says it: `describe` shows object and reason beside the message."""
    message = notice.message.removeprefix(f"{record.subject}: ").removeprefix(f"{notice.reason}: ")
    return replace(notice, message=message)


def _job(workload: Workload | None) -> About | None:
    if workload is None:
        return None
    return About(BY_KIND[workload.kind].resource.api_version, workload.kind, workload.key, workload.uid)
