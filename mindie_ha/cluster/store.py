"""All facts, indexed: what watches bring and what our own writes answered, as immutable records.

`apply` and `remove` cost what the change touches, never the size of the fleet, and say which scopes have to
look again; heartbeats that change no fact touch nobody. `view` builds the planner's snapshot of one scope.
`apply_response` gives read-your-writes: the answer to a write counts at once unless something newer is known.
One event loop; nothing here awaits or raises for hostile input.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from mindie_ha.cluster import convert, documents, workload_kinds
from mindie_ha.cluster.config_maps import ConfigMaps, LedgerEntry, read, version_of
from mindie_ha.cluster.facts import Facts
from mindie_ha.cluster.fleets import Fleet
from mindie_ha.cluster.indexes import Versions
from mindie_ha.cluster.namesakes import Namesakes
from mindie_ha.cluster.problems import Problem, Problems
from mindie_ha.cluster.public_reports import PublicReport
from mindie_ha.cluster.recurring_cards import RecurringCards
from mindie_ha.cluster.roles import RoleMemory
from mindie_ha.cluster.slim import (
    MODELS,
    SlimConfigMap,
    SlimNode,
    SlimObject,
    SlimOwner,
    SlimPod,
    SlimPodGroup,
    decode_json,
    slim,
)
from mindie_ha.cluster.slim_sets import SlimReplicaSet
from mindie_ha.cluster.sources import SOURCE_OF_FAMILY, SOURCES, Source, family_of
from mindie_ha.cluster.successions import remembered
from mindie_ha.cluster.table_views import table_view
from mindie_ha.cluster.touches import Touched, nothing
from mindie_ha.intake.collect import collect
from mindie_ha.intake.freshness import unreported
from mindie_ha.intake.nodes import mark_fault
from mindie_ha.intake.public_faults import faults_on
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Fault
from mindie_ha.model.ids import ObjectKey, PodUID, ScopeKey, node_key
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.nodes import Node
from mindie_ha.model.pauses import Pauses
from mindie_ha.model.pods import Pod
from mindie_ha.model.public_faults import PublicFaultLedger
from mindie_ha.model.reset_configs import name_of as reset_config_name
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import FleetView, NodeView, ScopeView, WorkloadView
from mindie_ha.model.workloads import ROLES_BY_APP, PodGroup, RingsConfig, Role, Workload
from mindie_ha.ranktable.hccl import RINGS_CONFIG_PREFIX, rings_config_name

Listener = Callable[[frozenset[ScopeKey], bool], None]  # (scopes to look at again, urgent)
FOREVER = 1 << 62  # UIDs never come back


class Store:
    """See the module. `listener` is told synchronously which scopes a change touches."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Settings,
        listener: Listener,
        refused: Callable[[str], None] | None = None,
        roles: Mapping[str, Role] = ROLES_BY_APP,
    ) -> None:
        self._clock = clock
        self._roles = roles
        self._settings = settings
        self._listener = listener
        pauses = documents.pauses_key(settings.cluster.namespace)
        self._maps = ConfigMaps(feed=settings.faults.source, pauses=pauses, refused=refused)
        self._fleet = Fleet(settings.brakes)
        self._versions: Versions[tuple[str, ObjectKey]] = Versions()
        self._facts = Facts(clock=clock, fleet=self._fleet)
        self._recurring = RecurringCards(facts=self._facts, reports=self._maps.reports)
        self.roles = RoleMemory(clock=clock, patience_s=settings.roles.failover_s)
        self.refusals = Problems()
        self._namesakes = Namesakes()
        self._answered: dict[tuple[str, ObjectKey], SlimObject] = {}  # known from our own writes alone

    # -- what comes in -------------------------------------------------------------------------------

    def on_change(
        self, source: Source, key: ObjectKey, old: SlimObject | None, new: SlimObject | None
    ) -> None:
        """An informer's callback."""
        self.refusals.clear(source, key)
        item = new if new is not None else old
        if isinstance(item, SlimConfigMap) and SOURCE_OF_FAMILY.get(family_of(item)) is not source:
            if new is None or old is None or SOURCE_OF_FAMILY.get(family_of(old)) is not source:
                return  # it counts for another selection, or for none
            self.remove(old)  # its label changed: what it was is gone
        elif new is not None:
            self.apply(new)
        elif old is not None:
            self.remove(old)

    def on_refused(self, source: Source, key: ObjectKey | None, error: InputError) -> None:
        """An informer could not read an object; what was known of it stays."""
        if key is not None:
            self.refusals.note(Problem(source, key, str(error), counted=True))

    def on_listed(self, source: Source, version: int) -> None:
        """A full list was applied: what only an answer of ours told of, and it does not show, is gone."""
        for item in list(self._answered.values()):
            if _source_of(item) is source and item.version <= version:
                self.remove(item)

    def on_rewound(self, source: Source) -> None:
        """A list showed an older version than its watch had: versions must be learnt anew."""
        self._versions.rewind()
        for item in list(self._answered.values()):
            if _source_of(item) is source:
                self.remove(item)

    def apply(self, item: SlimObject, *, from_watch: bool = True) -> frozenset[ScopeKey]:
        """An object as it is now; returns the scopes that it touches (and tells the listener)."""
        identity = (_kind(item), item.key)
        if from_watch:
            self._confirm(identity, item)
        fresh = not self._versions.knows(identity, item.metadata.uid)
        if not self._versions.admit(identity, item, from_watch=from_watch):
            return frozenset()
        if not from_watch and (fresh or identity in self._answered):
            self._answered[identity] = item
        match item:
            case SlimPod():
                touched = self._facts.put_pod(convert.pod(item))
            case SlimNode():
                touched = self._facts.put_node(item)
            case SlimOwner():
                touched = self._put_owner(item)
            case SlimReplicaSet():
                touched = self._facts.put_replica_set(item.metadata.uid, convert.owner_uid(item))
            case SlimPodGroup():
                touched = self._facts.put_podgroup(convert.podgroup(item))
            case SlimConfigMap():
                touched = self._put_config_map(item)
            case _:
                return frozenset()
        return self._tell(touched)

    def remove(self, item: SlimObject) -> frozenset[ScopeKey]:
        """An object is gone; returns the scopes that it touched."""
        self._confirm((_kind(item), item.key), item)
        last = item.version if isinstance(item, SlimConfigMap) else FOREVER
        if not self._versions.end((_kind(item), item.key), item.metadata.uid, last):
            return frozenset()
        match item:
            case SlimPod():
                self.roles.forget(PodUID(item.metadata.uid))
                touched = self._facts.drop_pod(item.key)
            case SlimNode():
                touched = self._facts.drop_node(item.metadata.name)
            case SlimOwner():
                touched = self._drop_owner(item)
            case SlimReplicaSet():
                touched = self._facts.drop_replica_set(item.metadata.uid)
            case SlimPodGroup():
                touched = self._facts.drop_podgroup(item.key)
            case SlimConfigMap():
                touched = self._maps.drop(item, now_s=self._clock.wall())
            case _:
                return frozenset()
        return self._tell(touched)

    def apply_response(self, body: bytes) -> frozenset[ScopeKey]:
        """The answer to a write of ours; anything unknown, malformed or older is ignored."""
        try:
            content = decode_json(body, where="answer to a write")
            kind = content.get("kind")
            model = MODELS.get(kind) if isinstance(kind, str) else None
            if model is None:
                return frozenset()
            item = slim(content, model, kind=str(kind))
        except InputError:
            return frozenset()  # the watch brings it, and says what is wrong with it
        if isinstance(item, SlimConfigMap) and family_of(item) not in SOURCE_OF_FAMILY:
            return frozenset()
        return self.apply(item, from_watch=False)

    # -- what goes out -------------------------------------------------------------------------------

    def view(
        self, scope: ScopeKey, *, now_s: float, subscribers: int = 0, handed_to_all: bool = True
    ) -> ScopeView | None:
        """The planner's snapshot of a service or job; None where nothing is known of it."""
        workloads = self.workloads_of(scope)
        orphans = self.orphan_rings(scope)
        table = table_view(
            scope, facts=self._facts, maps=self._maps, subscribers=subscribers, handed_to_all=handed_to_all
        )
        if not workloads and not orphans and (table is None or not table.ledger.generation):
            self._maps.tables.pop(documents.service_ledger_key(scope.namespace, scope.name), None)
            self.roles.forget_scope(scope)
            return None
        views: list[WorkloadView] = []
        nodes: dict[str, NodeView] = {}
        wakes: list[float] = []
        for workload in workloads:
            view, own, wake_at_s = self._workload_view(workload, now_s)
            views.append(view)
            nodes.update(own)
            wakes += [wake_at_s] if wake_at_s is not None else []
        return ScopeView(
            scope=scope,
            workloads=tuple(views),
            nodes=nodes,
            fleet=self.fleet(now_s=now_s),
            table=table,
            orphan_rings=orphans,
            pauses=self._maps.pauses(),
            turns=self._facts.acted_on(self._maps.turns.values(), self._settings),
            streams=self.roles.streams(scope),
            wake_at_s=min(wakes, default=None),
        )

    def node_view(self, name: str, *, now_s: float) -> NodeView:
        """Everything known of a node; one that does not exist says so."""
        entry = self._maps.ledger(documents.node_ledger_key(self._settings.cluster.namespace, name))
        ledger, error = read(entry, NodeLedger)
        node = self._facts.nodes.get(name) or Node(name=name, exists=False, ready=False)
        report = self._recurring.report(name, ledger, now_s=now_s)
        marked = mark_fault(node, now_s=now_s)
        return NodeView(
            node=node,
            report=report,
            troubles=(*self._maps.reports.troubles(name), *((marked,) if marked is not None else ())),
            unreported=unreported(report, stale_s=self._settings.faults.report_stale_s, now_s=now_s),
            listed=self._maps.listings.of(name, now_s=now_s),
            recurring=self._recurring.followed(name, ledger, now_s=now_s) if not error else None,
            ledger=ledger,
            ledger_version=version_of(entry),
            ledger_error=error,
            publicly_bad=frozenset(fault.device for fault in self._public_faults(name, now_s) if fault.acts),
        )

    def card_faults(self, node: str, *, now_s: float) -> tuple[Fault, ...]:
        """What is wrong with the cards of a node, told by the device plugin or by public faults."""
        entry = self._maps.ledger(documents.node_ledger_key(self._settings.cluster.namespace, node))
        told = self._recurring.raised(node, read(entry, NodeLedger)[0], now_s=now_s)
        return (*told, *self._public_faults(node, now_s))

    def reported_nodes(self) -> frozenset[str]:
        """The nodes on whose cards somebody reports."""
        return self._maps.reports.nodes() | self._maps.public.nodes()

    def public_ledger(self) -> PublicFaultLedger:
        """All public faults; an unreadable ledger leaves those that were known."""
        return self._maps.public.ledger

    def public_report(self, key: ObjectKey) -> PublicReport | None:
        """The message in a ConfigMap that reports public faults."""
        return self._maps.public.report(key)

    def assume_public(self, ledger: PublicFaultLedger) -> None:
        """Take `ledger` for the one that stands: where nothing may be written, memory has to do."""
        self._tell(self._maps.public.remember(ledger))

    def serials(self) -> Mapping[str, str]:
        """Nodes by serial number."""
        return self._facts.by_serial

    def fleet(self, *, now_s: float) -> FleetView:
        """The summary of all nodes."""
        return self._fleet.view(now_s=now_s, open_recoveries=len(self._maps.recovering))

    def pauses(self) -> Pauses:
        """What people paused."""
        return self._maps.pauses()

    def scopes(self) -> frozenset[ScopeKey]:
        """Every service and job that is known, for a full look after start."""
        return frozenset(self._facts.by_scope) | {key for key in self._maps.rings_by_service if key.name}

    def node_names(self) -> frozenset[str]:
        """Every node that exists or that a node ledger names."""
        ledgers = (entry.ledger for entry in self._maps.ledgers.values())
        return frozenset(self._facts.nodes) | {one.node for one in ledgers if isinstance(one, NodeLedger)}

    def node_addresses(self, name: str) -> tuple[str, ...]:
        """The addresses of a node; none where it does not exist."""
        found = self._facts.nodes.get(name)
        return found.addresses if found is not None else ()

    def workload(self, key: ObjectKey) -> Workload | None:
        """A workload by namespace and name."""
        return self._facts.workloads.get(self._facts.uid_of.get(key, ""))

    def workload_of_uid(self, uid: str) -> Workload | None:
        """A workload by its UID, or by that of what owns its pods."""
        return self._facts.workload_behind(uid)

    def pod(self, key: ObjectKey) -> Pod | None:
        """A pod by namespace and name."""
        return self._facts.pods.get(key)

    def pods_of(self, owner_uid: str) -> tuple[Pod, ...]:
        """All pod objects of a workload, by rank, then name."""
        return tuple(sorted(self._facts.pods_of(owner_uid), key=_by_rank))

    def pods_by_ip(self, ip: str) -> tuple[Pod, ...]:
        """The pods that have an address; several on a host network."""
        return tuple(self._facts.pods[key] for key in self._facts.by_ip.of(ip))

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """The pods that are bound to a node."""
        return tuple(self._facts.pods[key] for key in self._facts.by_node.of(node))

    def podgroup(self, key: ObjectKey) -> PodGroup | None:
        """A PodGroup by namespace and name."""
        return self._facts.podgroups.get(key)

    def workloads_of(self, scope: ScopeKey) -> tuple[Workload, ...]:
        """The workloads of a service or job, by name."""
        found = [self._facts.workloads[uid] for uid in self._facts.by_scope.of(scope)]
        return tuple(sorted(found, key=lambda one: one.key))

    def services_named(self, job_id: str) -> tuple[ScopeKey, ...]:
        """The services that carry a jobID, one per namespace; more than one is a clash on the wire."""
        return self._facts.services_named(job_id)

    def namespace_of_ip(self, ip: str) -> str | None:
        """The namespace of the pod with this address; None where there is no one answer."""
        found = {pod.key.namespace for pod in self.pods_by_ip(ip)} if ip else set()
        return found.pop() if len(found) == 1 else None

    def service_ledger(self, scope: ScopeKey) -> ServiceLedger | None:
        """The remembered table of a service; None where there is none or it cannot be read."""
        table = table_view(scope, facts=self._facts, maps=self._maps)
        return table.ledger if table is not None and table.ledger.generation else None

    def open_recoveries(self) -> frozenset[str]:
        """Names of all open recoveries, as isolations name those who want them."""
        return self._maps.open_recoveries()

    def ledger_entry(self, key: ObjectKey) -> LedgerEntry | None:
        """A ledger with its resourceVersion, by the key of its ConfigMap."""
        return self._maps.ledger(key)

    def retries_map(self) -> SlimConfigMap | None:
        """The ConfigMap with `remain-retry-times` as last seen."""
        return self._maps.retries_map

    def ledger_entries(self) -> Collection[LedgerEntry]:
        """Every ledger as stored, those that cannot be read too."""
        return self._maps.ledgers.values()

    def problems(self) -> dict[str, str]:
        """Malformed objects and unreadable ledgers, for people: object -> what is wrong."""
        return self.refusals.all()

    def orphan_rings(self, scope: ScopeKey) -> tuple[RingsConfig, ...]:
        """Instance tables of a service whose AscendJob is gone."""
        rings = [self._maps.rings[key] for key in self._maps.rings_by_service.of(scope)]
        return tuple(sorted((one for one in rings if self._owner_of(one) is None), key=lambda one: one.key))

    # -- building views ------------------------------------------------------------------------------

    def _workload_view(
        self, workload: Workload, now_s: float
    ) -> tuple[WorkloadView, dict[str, NodeView], float | None]:
        pods = self.pods_of(workload.uid)
        ledger, error = self._workload_ledger(workload)
        names = {pod.node for pod in pods if pod.node}
        if ledger.recovery is not None:
            recovery = ledger.recovery
            names |= {target.node for target in recovery.targets} | {recovery.intent.node}
        nodes = {name: self.node_view(name, now_s=now_s) for name in sorted(names) if name}
        rings = self._maps.rings.get(ObjectKey(workload.key.namespace, rings_config_name(workload.key.name)))
        retries = self._maps.retries.get(f"{workload.key}-{workload.uid}")
        group = self._facts.podgroups.get(workload.podgroup)
        collected = collect(
            workload=workload,
            pods=pods,
            nodes=nodes,
            device_faults={name: self.card_faults(name, now_s=now_s) for name in nodes},
            annotations=group.annotations if group is not None else None,
            ledger=ledger,
            settings=self._settings,
            now_s=now_s,
            rules=self._maps.reports.customization.relations,
        )
        view = WorkloadView(
            workload=workload,
            pods=pods,
            ledger=ledger,
            ledger_version=version_of(self._maps.ledger(documents.workload_ledger_key(workload))),
            ledger_error=error,
            podgroup=group,
            rings=rings,
            reset=self._maps.resets.get(
                ObjectKey(workload.key.namespace, reset_config_name(workload.key.name))
            ),
            faults=collected.faults,
            remarks=collected.remarks,
            roles=self.roles.roles_of(workload, pods, nodes=self._facts.nodes, ledger=ledger),
            links=self.roles.links_of(pods),
            retry_times=retries.times if retries is not None else None,
            retry_times_ours=retries is None or retries.ours,
        )
        times = [collected.wake_at_s, *(self._recurring.wake_at_s(name, now_s=now_s) for name in nodes)]
        return view, nodes, min((at_s for at_s in times if at_s is not None), default=None)

    def _public_faults(self, node: str, now_s: float) -> tuple[Fault, ...]:
        records = self._maps.public.on(node)
        if not records:
            return ()
        held = (device for pod in self.pods_on(node) for device in pod.devices)
        prefix = next((name.partition("-")[0] for name in held), "Ascend910")
        suspect_after_s = self._settings.faults.public_suspect_after_s
        return faults_on(records, device_prefix=prefix, now_s=now_s, suspect_after_s=suspect_after_s)

    def _workload_ledger(self, workload: Workload) -> tuple[WorkloadLedger, str]:
        entry = self._maps.ledger(documents.workload_ledger_key(workload))
        return remembered(entry, workload, rebuilt=self._facts.was_rebuilt(workload))

    def _put_config_map(self, item: SlimConfigMap) -> Touched:
        touched = self._maps.put(item, now_s=self._clock.wall())
        self.refusals.judge(_source_of(item), item, self._maps.problems.get(item.key))
        return touched

    def _put_owner(self, item: SlimOwner) -> Touched:
        """A name is one workload: of two kinds under it, the one that came first."""
        found = workload_kinds.workload(item, roles=self._roles)
        standing = self.workload(item.key)
        if standing is not None and standing.kind != found.kind:
            self._namesakes.wait(item)
            who = f"the {standing.kind} {item.key}"
            self.refusals.judge(
                _source_of(item), item, f"not looked after: {who} is known by the same name; rename one"
            )
            return nothing()
        self._namesakes.forget(item)
        return self._facts.put_workload(found)

    def _drop_owner(self, item: SlimOwner) -> Touched:
        self._namesakes.forget(item)
        touched = self._facts.drop_workload(item.metadata.uid)
        heir = self._namesakes.heir(item.key) if self.workload(item.key) is None else None
        if heir is not None:
            self.refusals.judge(_source_of(heir), heir, None)
            touched.scopes |= self._put_owner(heir).scopes
        return touched

    def _owner_of(self, rings: RingsConfig) -> Workload | None:
        return self.workload(ObjectKey(rings.key.namespace, rings.key.name.removeprefix(RINGS_CONFIG_PREFIX)))

    # -- whom it concerns ----------------------------------------------------------------------------

    def _confirm(self, identity: tuple[str, ObjectKey], item: SlimObject) -> None:
        """A watch knows the object, so a list is no longer needed to tell its end."""
        answered = self._answered.get(identity)
        if answered is not None and answered.metadata.uid == item.metadata.uid:
            del self._answered[identity]

    def _tell(self, touched: Touched) -> frozenset[ScopeKey]:
        scopes = set(touched.scopes) | (self.scopes() if touched.everything else set())
        waiting = {
            job for node in touched.nodes for job in self._maps.obliged.of(node)
        }  # their pods have left
        for job in touched.jobs | waiting:
            workload = self.workload(job)
            if workload is not None:
                scopes.add(workload.scope)
        for node in touched.nodes:
            scopes.add(node_key(node))
            for key in self._facts.by_node.of(node):
                scopes |= self._facts.scopes_of_owner(self._facts.pods[key].owner_uid)
        found = frozenset(scopes)
        if found:
            self._listener(found, touched.urgent)
        return found


def _kind(item: SlimObject) -> str:
    return type(item).__name__


def _source_of(item: SlimObject) -> Source | None:
    if isinstance(item, SlimConfigMap):
        return SOURCE_OF_FAMILY.get(family_of(item))
    return next((source for source in SOURCES if isinstance(item, source.model)), None)


def _by_rank(pod: Pod) -> tuple[bool, int, ObjectKey]:
    return (pod.rank is None, pod.rank or 0, pod.key)


__all__ = ["Listener", "Store"]
