"""Saving ledgers: compare-and-swap on what the decision was made from, before anything acts on them.

Reading is the store's (`documents.decode` on what watches bring). `version` is that of the view: what came
into the store since then was not looked at. Saving raises `Conflict` if somebody else wrote first (the store
then knows what; plan again) and `LedgerUnreadable` where the present one cannot be read: nothing overwrites
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mindie_ha.cluster import documents
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.workload_kinds import BY_KIND
from mindie_ha.cluster.writer import Writer, Written
from mindie_ha.model.errors import LedgerUnreadable
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.pauses import PauseLedger
from mindie_ha.model.public_faults import PublicFaultLedger
from mindie_ha.model.recoveries import Frozen
from mindie_ha.model.workloads import Workload

MAX_OWNERS = 128  # enough that one of them is there as long as the service is; a list of thousands bloats


class Ledgers:
    """Writes the five kinds of ledgers; `namespace` is ours."""

    def __init__(self, *, store: Store, writer: Writer, namespace: str) -> None:
        self._store = store
        self._writer = writer
        self._namespace = namespace

    async def save_workload(self, ledger: WorkloadLedger, *, workload: Workload, version: str) -> Written:
        """Write a workload's memory; it goes when the workload goes."""
        if not version:
            await self._stands(workload)
        return await self._save(
            documents.workload_ledger_key(workload),
            ledger,
            label="workload",
            annotations={documents.ANNOTATION_WORKLOAD: workload.key.name},
            owners=(_owned_by(workload),),
            limit=documents.MAX_BYTES,
            version=version,
        )

    async def save_service(
        self, ledger: ServiceLedger, *, workloads: Iterable[Workload], version: str
    ) -> Written:
        """Write a service's ids and table; it goes when the last of the service's `workloads` goes."""
        listed = tuple(workloads)[:MAX_OWNERS]
        if not version and listed:
            await self._stands(listed[-1])
        return await self._save(
            documents.service_ledger_key(ledger.namespace, ledger.job_id),
            ledger,
            label="service",
            annotations={documents.ANNOTATION_JOB_ID: ledger.job_id},
            owners=tuple(_owned_by(workload) for workload in listed),
            limit=documents.MAX_SERVICE_BYTES,
            version=version,
        )

    async def save_node(self, ledger: NodeLedger, *, version: str) -> Written:
        """Write what is isolated on a node; it goes when the Node object goes."""
        owners = (_owner("v1", "Node", ledger.node, ledger.node_uid),) if ledger.node_uid else ()
        return await self._save(
            documents.node_ledger_key(self._namespace, ledger.node),
            ledger,
            label="node",
            annotations={documents.ANNOTATION_NODE: ledger.node},
            owners=owners,
            limit=documents.MAX_BYTES,
            version=version,
        )

    async def save_pauses(self, ledger: PauseLedger, *, version: str) -> Written:
        """Write what people paused."""
        return await self._save(
            documents.pauses_key(self._namespace),
            ledger,
            label="pauses",
            annotations={},
            owners=(),
            limit=documents.MAX_BYTES,
            version=version,
        )

    async def save_public(self, ledger: PublicFaultLedger) -> Written:
        """Write all public faults; nobody repeats a report that was lost.

        The caller read what it changes in the same turn of the loop, so the newest version is that one.
        """
        key = documents.public_ledger_key(self._namespace)
        present = self._store.ledger_entry(key)
        return await self._save(
            key,
            ledger,
            label="public-faults",
            annotations={},
            owners=(),
            limit=documents.MAX_PUBLIC_BYTES,
            version=present.resource_version if present is not None else "",
        )

    async def _stands(self, workload: Workload) -> None:
        """Before a first ledger: its owner is there. What a watch that fell silent still shows may be gone;
        a ledger for it would be collected and written again without end."""
        owner = _owned_by(workload)
        if owner["uid"] == workload.uid:
            await self._writer.confirm(BY_KIND[workload.kind].resource, workload.key, uid=workload.uid)

    async def _save(
        self,
        key: ObjectKey,
        ledger: Frozen,
        *,
        label: str,
        annotations: dict[str, str],
        owners: tuple[dict[str, Any], ...],
        limit: int,
        version: str,
    ) -> Written:
        present = self._store.ledger_entry(key)
        known = {"", *(owner["uid"] for owner in owners)}
        stale = present is not None and bool(owners) and present.owner_uid not in known
        if present is not None and present.error and not stale:
            raise LedgerUnreadable(present.error)
        body = documents.manifest(
            key, ledger, label=label, annotations=annotations, owners=owners, limit=limit
        )
        return await self._writer.put_config_map(body, resource_version=version)


def _owned_by(workload: Workload) -> dict[str, Any]:
    if (maker := workload.maker) is not None:
        return _owner(maker.api_version, maker.kind, maker.name, maker.uid)
    return _owner(BY_KIND[workload.kind].resource.api_version, workload.kind, workload.key.name, workload.uid)


def _owner(api_version: str, kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


__all__ = ["Ledgers"]
