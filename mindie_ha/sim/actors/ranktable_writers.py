"""Keeps `hccl.json` in `rings-config-<job>` for the Ascend Operator.

The ConfigMap belongs to the user and is never created here; whether it exists is looked up at the first
write and remembered, also when missing, as the real operator does. Data key `version` is one write old:
"0" first, then the time of the write before. A write is tried three times, a second apart.
Source: rank table contract §6.5.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.actors.ascendjobs import JobSpec
from mindie_ha.sim.actors.caches import TRANSIENT, Cache
from mindie_ha.sim.actors.documents import uid_of
from mindie_ha.sim.actors.hccl_tables import (
    COMPLETED,
    INITIALIZING,
    Step,
    allocated,
    build,
    initializing,
    next_step,
    version_of,
)
from mindie_ha.sim.client import ApiClient, Object

ATTEMPTS = 3
ATTEMPT_GAP_S = 1.0


@dataclass(slots=True)
class Table:
    """The operator's memory of one job's table."""

    status: str = INITIALIZING
    built_for: frozenset[str] = frozenset()
    text: str = ""
    stamp: int = 0
    exists: bool | None = None


class RanktableWriter:
    """One table per job UID."""

    def __init__(self, *, api: ApiClient, cache: Cache, clock: Clock) -> None:
        self._api = api
        self._cache = cache
        self._clock = clock
        self._tables: dict[str, Table] = {}

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget the tables of jobs that are gone."""
        self._tables = {uid: table for uid, table in self._tables.items() if uid in uids}

    async def sync(self, job: JobSpec, pods: list[Object]) -> None:
        """Bring the table in line with the job's pods; raises what the last of three writes raised."""
        table = self._tables.setdefault(job.uid, Table())
        step = next_step(table.status, total=job.replicas, pods=pods, built_for=table.built_for)
        if step is Step.INITIALIZE:
            table.text = initializing(table.text, version=version_of(job))
            table.status, table.built_for = INITIALIZING, frozenset()
            await self._write(job, table)
        elif step is Step.BUILD:
            ready = allocated(pods)
            built = build(job, ready, version=version_of(job))
            if built is not None:
                table.text = built
                await self._write(job, table)
                table.status, table.built_for = COMPLETED, frozenset(uid_of(pod) for pod in ready)

    async def _write(self, job: JobSpec, table: Table) -> None:
        name = f"rings-config-{job.name}"
        if table.exists is None:
            table.exists = await self._api.get("ConfigMap", name, job.namespace) is not None
        if not table.exists:
            return
        body = {"data": {"hccl.json": table.text, "version": str(table.stamp)}}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = await self._api.patch("ConfigMap", name, job.namespace, body)
                break
            except TRANSIENT:
                if attempt == ATTEMPTS:
                    raise
                await self._clock.sleep(ATTEMPT_GAP_S)
        table.stamp = int(self._clock.wall())
        self._cache.observe("ConfigMap", answer)


__all__ = ["RanktableWriter", "Table"]
