"""Where people hand a job to us.

Only labels of the job are written, with its UID and resourceVersion; the annotation of its PodGroup is set by
the controller, which sees the labels as it sees those that somebody applied. The answer is given when the job
carries them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mindie_ha.cluster.store import Store
from mindie_ha.cluster.workload_kinds import BY_KIND
from mindie_ha.cluster.writer import Writer
from mindie_ha.model.errors import Conflict, NotFound
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import Settings
from mindie_ha.policy import adoptions, persons


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was set, and what holds from now on."""

    workload: ObjectKey
    labels: Mapping[str, str] = field(default_factory=dict)  # that were changed
    says: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a label was changed."""
        return bool(self.labels)


class AdoptionDesk:
    """See the module."""

    def __init__(self, *, store: Store, writer: Writer, settings: Settings) -> None:
        self._store = store
        self._writer = writer
        self._settings = settings

    async def adopt(self, key: ObjectKey, *, mode: str, pod_rescheduling: bool, person: str) -> Adopted:
        """Set the labels that make a job ours. Raises InputError, NotFound, Conflict, ClusterError."""
        who = persons.named(person)
        workload = self._store.workload(key)
        if workload is None:
            raise NotFound(f"there is no workload {str(key)[:317]}", status=404)
        group = self._store.podgroup(workload.podgroup)
        wanted = adoptions.labels(
            workload, group, mode=mode, pod_rescheduling=pod_rescheduling, settings=self._settings
        )
        if wanted and self._settings.dry_run:
            raise Conflict("the controller runs with --dry-run: it writes nothing", status=409)
        if wanted:
            resource = BY_KIND[workload.kind].resource
            await self._writer.label_workload(resource, key, uid=workload.uid, labels=wanted, by=who)
        says = adoptions.explained(workload, group, changed=wanted, settings=self._settings)
        return Adopted(key, wanted, says)


__all__ = ["Adopted", "AdoptionDesk"]
