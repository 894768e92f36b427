"""The ConfigMaps we read, as facts: fault reports, the scheduler's list, instance tables, ledgers, retries.

Each family is parsed once per change, here. A change names what it touches: scopes directly, or nodes, which
the store expands to the services on them. Malformed content costs its own object: the last good state is kept
(reports, list, retries) or the error stands beside it (ledgers: observe only).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from mindie_ha.cluster import convert, documents, reset_configs
from mindie_ha.cluster.fault_reports import FaultReports, News
from mindie_ha.cluster.indexes import Index
from mindie_ha.cluster.listings import Listings
from mindie_ha.cluster.public_reports import EMPTY, PublicReports
from mindie_ha.cluster.retries import Retries, job_of, parse_retries
from mindie_ha.cluster.slim import SlimConfigMap
from mindie_ha.cluster.sources import (
    CLUSTER_INFO_PREFIX,
    LABEL_LEDGER,
    Family,
    family_of,
)
from mindie_ha.cluster.touches import Touched, nothing
from mindie_ha.intake import listed_devices
from mindie_ha.model.errors import InputError, LedgerUnreadable
from mindie_ha.model.ids import ObjectKey, ScopeKey, service_key
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.pauses import PauseLedger, Pauses
from mindie_ha.model.public_faults import PublicFaultLedger
from mindie_ha.model.ranktables import RanktableError
from mindie_ha.model.recoveries import Frozen, Recovery
from mindie_ha.model.reset_configs import RESET_CONFIG_PREFIX, ResetConfig
from mindie_ha.model.settings import FaultFeed
from mindie_ha.model.views import Turn
from mindie_ha.model.workloads import LABEL_JOB_ID, RingsConfig
from mindie_ha.policy.retries import RETRY_KEY
from mindie_ha.policy.turns import turn_of
from mindie_ha.ranktable.hccl import HCCL_KEY, RINGS_CONFIG_PREFIX, parse_hccl

FAULT_NAMESPACES = {
    Family.DEVICE_INFO: "kube-system",
    Family.NODE_INFO: "mindx-dl",
    Family.CLUSTER_INFO: "mindx-dl",
    Family.CLUSTER_TROUBLES: "mindx-dl",
    Family.CHIP_CONFIG: "kube-system",
    Family.NODE_CONFIG: "mindx-dl",
}
LABEL_OF_PUBLIC = "public-faults"
LedgerT = TypeVar("LedgerT", bound=Frozen)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A ledger as stored: the record, or why it cannot be read, and what a compare-and-swap needs."""

    key: ObjectKey
    label: str
    ledger: Frozen | None
    error: str
    owner_uid: str
    resource_version: str
    annotations: Mapping[str, str]


def read(entry: LedgerEntry | None, model: type[LedgerT]) -> tuple[LedgerT | None, str]:
    """The ledger in an entry where it is a `model`, and else why it cannot be read; neither for none."""
    if entry is None:
        return None, ""
    if isinstance(entry.ledger, model):
        return entry.ledger, ""
    return None, entry.error or f"ConfigMap {entry.key} is no {model.__name__}"


def version_of(entry: LedgerEntry | None) -> str:
    """The resourceVersion of an entry; empty for none."""
    return entry.resource_version if entry is not None else ""


class ConfigMaps:
    """Tables of parsed ConfigMaps; `put` and `drop` say what a change touches."""

    def __init__(
        self,
        *,
        feed: FaultFeed = FaultFeed.DEVICE_PLUGIN,
        pauses: ObjectKey,
        refused: Callable[[str], None] | None = None,
    ) -> None:
        self._pauses = pauses
        self.listings = Listings()
        self.public = PublicReports()
        self.reports = FaultReports(feed=feed, problem=self._note_problem, refused=refused or _uncounted)
        self.rings: dict[ObjectKey, RingsConfig] = {}
        self.rings_by_service: Index[ScopeKey, ObjectKey] = Index()
        self.ledgers: dict[ObjectKey, LedgerEntry] = {}
        self.tables: dict[ObjectKey, ServiceLedger] = {}  # the newest that each table's ledger ever held
        self.resets: dict[ObjectKey, ResetConfig] = {}
        self.retries: dict[str, Retries] = {}
        self.retries_map: SlimConfigMap | None = None  # as last seen, for a compare-and-swap
        self.recovering: dict[ObjectKey, str] = {}  # ledgers with an open recovery -> what it is called
        self.turns: dict[ObjectKey, Turn] = {}  # open recoveries as the limits of concurrency see them
        self._unknown: dict[ObjectKey, str] = {}  # unreadable ledgers of workloads -> "<ns>/<name>"
        self.obliged: Index[str, ObjectKey] = (
            Index()
        )  # node -> workloads with an open recovery that isolates it
        self._isolating: Index[str, str] = Index()  # "<ns>/<name>" of a workload -> nodes it wants isolated
        self.problems: dict[ObjectKey, str] = {}  # what was refused, for people

    def put(self, item: SlimConfigMap, *, now_s: float) -> Touched:
        """A ConfigMap as it is now."""
        self.problems.pop(item.key, None)
        family = family_of(item)
        if family is Family.RESET:
            return self._put_reset(item)
        return self.public.put(item) if family is Family.PUBLIC else self._put(family, item, now_s)

    def drop(self, item: SlimConfigMap, *, now_s: float) -> Touched:
        """A ConfigMap was deleted."""
        self.problems.pop(item.key, None)
        family = family_of(item)
        if family is Family.RESET:
            return _of_job(item.key) if self.resets.pop(item.key, None) is not None else nothing()
        return self.public.drop(item.key) if family is Family.PUBLIC else self._drop(family, item, now_s)

    def _put(self, family: Family, item: SlimConfigMap, now_s: float) -> Touched:
        match family:
            case Family.CLUSTER_INFO if _in_place(item):
                return self._put_shard(item, now_s)
            case _ if family in FAULT_NAMESPACES:
                return _told(self.reports.put(item, family, now_s=now_s)) if _in_place(item) else nothing()
            case Family.RINGS:
                return self._put_rings(item, now_s)
            case Family.LEDGER:
                return self._put_ledger(item)
            case Family.RETRIES:
                return self._put_retries(item)
            case _:
                return nothing()

    def _drop(self, family: Family, item: SlimConfigMap, now_s: float) -> Touched:
        match family:
            case Family.CLUSTER_INFO if _in_place(item):
                touched = _told(self.reports.drop(item, family, now_s=now_s))
                touched.nodes |= self.listings.remove(item.key, now_s=now_s)
                return touched
            case _ if family in FAULT_NAMESPACES:
                return _told(self.reports.drop(item, family, now_s=now_s)) if _in_place(item) else nothing()
            case Family.RINGS:
                return self._drop_rings(item.key)
            case Family.LEDGER:
                return self._drop_ledger(item.key)
            case Family.RETRIES:
                self.retries_map = None
                return self._replace_retries({})
            case _:
                return nothing()

    def ledger(self, key: ObjectKey) -> LedgerEntry | None:
        """The ledger stored under a ConfigMap key."""
        return self.ledgers.get(key)

    def pauses(self) -> Pauses:
        """What people paused."""
        entry = self.ledgers.get(self._pauses)
        ledger, error = read(entry, PauseLedger)
        return Pauses(ledger or PauseLedger(), version_of(entry), error)

    def open_recoveries(self) -> frozenset[str]:
        """Names of all open recoveries as isolations know them (`recovery:<ns>/<name>#<epoch>`).

        Where a workload's ledger is unreadable, whatever it once wanted counts as open: nothing of its
        may be released because we cannot read.
        """
        names = set(self.recovering.values())
        for workload in self._unknown.values():
            for node in self._isolating.of(workload):
                names |= self._wishes(node, workload)
        return frozenset(names)

    def _wishes(self, node: str, workload: str) -> set[str]:
        entries = (entry.ledger for entry in self.ledgers.values())
        ledgers = (ledger for ledger in entries if isinstance(ledger, NodeLedger) and ledger.node == node)
        wanted = (name for ledger in ledgers for one in ledger.isolations for name in one.wanted_by)
        return {name for name in wanted if _workload_of(name) == workload}

    def _put_shard(self, item: SlimConfigMap, now_s: float) -> Touched:
        name = item.key.name
        if not name.removeprefix(CLUSTER_INFO_PREFIX).isdecimal():
            return nothing()
        try:
            shard = listed_devices.parse(item.data.get(name, ""), where=f"ConfigMap {item.key}")
        except InputError as error:
            self.problems[item.key] = str(error)  # the last good content stays
            return nothing()
        if shard.refused:
            self.problems[item.key] = "; ".join(str(error) for error in shard.refused[:3])
        touched = _told(self.reports.put(item, Family.CLUSTER_INFO, now_s=now_s))
        touched.nodes |= self.listings.put(item.key, shard.nodes, now_s=now_s)
        return touched

    def _note_problem(self, key: ObjectKey, text: str) -> None:
        self.problems[key] = text

    def _put_rings(self, item: SlimConfigMap, now_s: float) -> Touched:
        old = self.rings.get(item.key)
        text = item.data.get(HCCL_KEY)
        try:
            if text:
                parse_hccl(text)
        except RanktableError as error:
            self.problems[item.key] = str(error)
        same = old is not None and old.text == text
        new = convert.rings_config(item, changed_at_s=old.changed_at_s if same and old else now_s)
        if new == old:
            return nothing()
        touched = self._drop_rings(item.key)
        self.rings[item.key] = new
        self.rings_by_service.add(_service_of(new), item.key)
        touched.scopes |= {_service_of(new)} if _service_of(new).name else set()
        touched.jobs = frozenset({_job_of(item.key)})
        return touched

    def _drop_rings(self, key: ObjectKey) -> Touched:
        old = self.rings.pop(key, None)
        if old is None:
            return nothing()
        service = _service_of(old)
        self.rings_by_service.discard(service, key)
        return Touched({service} if service.name else set(), set(), jobs=frozenset({_job_of(key)}))

    def _put_ledger(self, item: SlimConfigMap) -> Touched:
        entry = _ledger_entry(item)
        old = self.ledgers.get(item.key)
        self.ledgers[item.key] = entry
        waiting = self._remember(old, entry)
        if isinstance(entry.ledger, ServiceLedger):
            last = self.tables.setdefault(item.key, entry.ledger)
            if last.generation <= entry.ledger.generation:
                self.tables[item.key] = entry.ledger
        if old is not None and replace(old, resource_version=entry.resource_version) == entry:
            return nothing()
        if entry.error:
            self.problems[item.key] = entry.error
        return self._ledger_touch(entry, waiting)

    def _drop_ledger(self, key: ObjectKey) -> Touched:
        entry = self.ledgers.pop(key, None)
        waiting = self._remember(entry, None)
        if entry is None:
            return nothing()
        if entry.label == LABEL_OF_PUBLIC:  # deleted by a person: everything public is forgotten
            return self.public.remember(EMPTY)
        return self._ledger_touch(entry, waiting)

    def _remember(self, old: LedgerEntry | None, new: LedgerEntry | None) -> frozenset[ObjectKey]:
        """Index what a ledger says; whose turn it may be now."""
        keys = {entry.key for entry in (old, new) if entry is not None}  # one, or none
        before = [self.turns.get(key) for key in keys]
        self._index(old, new)
        if before == [self.turns.get(key) for key in keys]:
            return frozenset()
        return frozenset(ObjectKey.parse(one.workload) for one in self.turns.values() if one.queues)

    def _index(self, old: LedgerEntry | None, new: LedgerEntry | None) -> None:
        for entry in (old, new):
            if entry is None:
                continue
            ledger = entry.ledger
            self.recovering.pop(entry.key, None)
            self.turns.pop(entry.key, None)
            self._unknown.pop(entry.key, None)
            if isinstance(ledger, NodeLedger):
                note = self._isolating.add if entry is new else self._isolating.discard
                for isolation in ledger.isolations:
                    for name in isolation.wanted_by:
                        note(_workload_of(name), ledger.node)
            if isinstance(ledger, WorkloadLedger) and ledger.recovery is not None:
                self._remember_recovery(entry.key, ledger.workload, ledger.recovery, known=entry is new)
            if entry is not new:
                continue
            if ledger is None and documents.ANNOTATION_WORKLOAD in entry.annotations:
                workload = entry.annotations[documents.ANNOTATION_WORKLOAD]
                self._unknown[entry.key] = f"{entry.key.namespace}/{workload}"

    def _remember_recovery(self, key: ObjectKey, text: str, recovery: Recovery, *, known: bool) -> None:
        workload = text.partition("/")[2]
        mark = self.obliged.add if known else self.obliged.discard
        for obligation in recovery.obligations:
            mark(obligation.ref.partition("/")[0], ObjectKey.parse(workload))
        if known:
            self.recovering[key] = f"recovery:{workload}#{recovery.epoch}"
            self.turns[key] = turn_of(workload, recovery)

    def _ledger_touch(self, entry: LedgerEntry, waiting: frozenset[ObjectKey]) -> Touched:
        ledger = entry.ledger
        if entry.key == self._pauses:
            return Touched(set(), set(), urgent=True, everything=True)
        if isinstance(ledger, PublicFaultLedger):
            return self.public.remember(ledger)
        if isinstance(ledger, ServiceLedger):
            return Touched({service_key(ledger.namespace, ledger.job_id)}, set())
        if isinstance(ledger, NodeLedger):
            return Touched(set(), {ledger.node})
        if isinstance(ledger, WorkloadLedger):
            job = ObjectKey.parse(ledger.workload.partition("/")[2])
            return Touched(set(), set(self._isolating.of(str(job))), jobs=waiting | {job})
        notes = entry.annotations  # unreadable: its annotations still say whose it is
        touched = nothing()
        if documents.ANNOTATION_JOB_ID in notes:
            touched.scopes.add(service_key(entry.key.namespace, notes[documents.ANNOTATION_JOB_ID]))
        if documents.ANNOTATION_NODE in notes:
            touched.nodes.add(notes[documents.ANNOTATION_NODE])
        if documents.ANNOTATION_WORKLOAD in notes:
            touched.jobs = frozenset({ObjectKey(entry.key.namespace, notes[documents.ANNOTATION_WORKLOAD])})
        return touched

    def _put_reset(self, item: SlimConfigMap) -> Touched:
        old, new = self.resets.get(item.key), reset_configs.parse(item.key, item.data)
        self.resets[item.key] = new
        if new.error:
            self.problems[item.key] = new.error
        return _of_job(item.key) if new != old else nothing()

    def _put_retries(self, item: SlimConfigMap) -> Touched:
        self.retries_map = item
        try:
            found = parse_retries(item.data.get(RETRY_KEY, ""), where=f"ConfigMap {item.key}")
        except InputError as error:
            self.problems[item.key] = str(error)
            return nothing()
        return self._replace_retries(found)

    def _replace_retries(self, found: dict[str, Retries]) -> Touched:
        old, self.retries = self.retries, found
        changed = {name for name in old.keys() | found.keys() if old.get(name) != found.get(name)}
        jobs = {ObjectKey.parse(job_of(name)) for name in changed if job_of(name)}
        return Touched(set(), set(), jobs=frozenset(jobs))


def _in_place(item: SlimConfigMap) -> bool:
    """Whether a fault report stands where its writer writes it: anybody may use such a name elsewhere."""
    return item.key.namespace == FAULT_NAMESPACES.get(family_of(item), item.key.namespace)


def _told(news: News) -> Touched:
    return Touched(set(), set(news.nodes), urgent=news.urgent)


def _uncounted(source: str) -> None:
    """Refusals are counted by whoever has metrics."""


def _workload_of(wanted_by: str) -> str:
    return wanted_by.removeprefix("recovery:").partition("#")[0]


def _service_of(rings: RingsConfig) -> ScopeKey:
    return service_key(rings.key.namespace, rings.labels.get(LABEL_JOB_ID, ""))


def _of_job(reset: ObjectKey) -> Touched:
    job = ObjectKey(reset.namespace, reset.name.removeprefix(RESET_CONFIG_PREFIX))
    return Touched(set(), set(), jobs=frozenset({job}))


def _job_of(rings: ObjectKey) -> ObjectKey:
    return ObjectKey(rings.namespace, rings.name.removeprefix(RINGS_CONFIG_PREFIX))


def _ledger_entry(item: SlimConfigMap) -> LedgerEntry:
    known = documents.kind_of(item)
    ledger, error = None, ""
    if known is None:
        error = f"ConfigMap {item.key}: unknown kind of ledger"
    else:
        try:
            ledger = documents.decode(item, known[0], limit=known[1])
        except LedgerUnreadable as unreadable:
            error = str(unreadable)
    meta = item.metadata
    return LedgerEntry(
        key=item.key,
        label=meta.labels.get(LABEL_LEDGER, ""),
        ledger=ledger,
        error=error,
        owner_uid=meta.owner_references[0].uid if meta.owner_references else "",
        resource_version=meta.resource_version,
        annotations=meta.annotations,
    )


__all__ = ["ConfigMaps", "LedgerEntry", "read", "version_of"]
