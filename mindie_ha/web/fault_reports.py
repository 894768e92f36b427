"""What is wrong in the fleet now, and what is isolated: plain typed data for the API and the command line.

Every current fault is told with the place it was read from and with every pod it hits, also on nodes without
pods. Faults of pods and of vanished members come from the workloads they hit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TypeVar

from mindie_ha.cluster.store import Store
from mindie_ha.intake.hits import Hit, Resident, hits, why_recorded
from mindie_ha.intake.nodes import node_fault
from mindie_ha.kit.clock import Clock
from mindie_ha.model.faults import Fault, FaultSource
from mindie_ha.model.ledgers import Isolation
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.policy.effects import Subject
from mindie_ha.policy.isolations import is_tainted
from mindie_ha.web.reports import Report

OF_PODS = (
    FaultSource.POD,
    FaultSource.POD_MARK,
    FaultSource.POD_STATUS,
    FaultSource.MEMBER,
    FaultSource.RELATION,
)
NameT = TypeVar("NameT")
SLICE = 50  # nodes or services looked at before others get their turn
ACTS, LATER, RECORDED = "acts", "later", "recorded"


class CodeReport(Report):
    """One code of a fault."""

    code: str
    level: str
    part: str
    first_seen_s: float


class HitReport(Report):
    """One pod that is hit. `effect`: acts, later (at `acts_at_s`) or recorded; `why` for the last two."""

    workload: str
    pod: str
    effect: str
    acts_at_s: float | None
    why: str


class FleetFault(Report):
    """One current fault; `why` says why it acts on nobody."""

    source: str
    cause: str
    node: str
    device: str
    codes: tuple[str, ...]
    level: str
    first_seen_s: float
    evidence: str
    details: tuple[CodeReport, ...]
    hits: tuple[HitReport, ...]
    effect: str
    why: str


class Unreported(Report):
    """A node whose device report is no report any more."""

    node: str
    why: str


class FleetFaults(Report):
    """All of them."""

    faults: tuple[FleetFault, ...]
    unreported: tuple[Unreported, ...] = ()


class IsolationReport(Report):
    """One entry of a node's ledger. `in_force` False: a person took it back while its fault lasts."""

    id: str
    device: str
    reason: str
    text: str
    codes: tuple[str, ...]
    owner: tuple[str, ...]
    epochs: dict[str, int]
    since_s: float
    means: str
    until: str
    ends_at_s: float | None
    in_force: bool
    overruled_by: str
    undo: str


class NodeReport(Report):
    """One node."""

    name: str
    exists: bool
    ready: bool
    unschedulable: bool
    tainted: bool
    isolations: tuple[IsolationReport, ...]
    faults: tuple[FleetFault, ...]
    ledger_error: str
    unreported: str


class FleetReporter:
    """Reports from the live store."""

    def __init__(self, *, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

    async def faults(self, *, node: str = "") -> FleetFaults:
        """Every current fault, or those of one node."""
        now_s = self._clock.wall()
        names = [node] if node else sorted(self._store.node_names() | self._store.reported_nodes())
        found: list[FleetFault] = []
        silent: list[Unreported] = []
        async for name in _in_slices(names):
            view = self._store.node_view(name, now_s=now_s)
            found += self._on_node(view, now_s)
            silent += [Unreported(node=name, why=view.unreported)] if view.unreported else []
        found += [fault for fault in await self._of_pods(now_s) if node in ("", fault.node)]
        return FleetFaults(faults=tuple(sorted(found, key=_place)), unreported=tuple(silent))

    async def nodes(self) -> list[NodeReport]:
        """Every node that exists, or on which something is isolated, by name."""
        of_pods: dict[str, list[FleetFault]] = {}
        for fault in await self._of_pods(self._clock.wall()):
            of_pods.setdefault(fault.node, []).append(fault)
        names = sorted(self._store.node_names())
        return [self._node(name, of_pods.get(name, ())) async for name in _in_slices(names)]

    async def node(self, name: str) -> NodeReport | None:
        """One of them; None where nothing is known of it."""
        if not self.knows(name):
            return None
        found = await self._of_pods(self._clock.wall())
        return self._node(name, [fault for fault in found if fault.node == name])

    def knows(self, name: str) -> bool:
        """Whether there is such a node, or something isolated on one that was."""
        return name in self._store.node_names()

    def _node(self, name: str, of_pods: Iterable[FleetFault]) -> NodeReport:
        now_s = self._clock.wall()
        view = self._store.node_view(name, now_s=now_s)
        entries = view.ledger.isolations if view.ledger is not None else ()
        return NodeReport(
            name=name,
            exists=view.node.exists,
            ready=view.node.ready,
            unschedulable=view.node.unschedulable,
            tainted=is_tainted(view),
            isolations=tuple(map(isolation_report, entries)),
            faults=tuple(sorted((*self._on_node(view, now_s), *of_pods), key=_place)),
            ledger_error=view.ledger_error,
            unreported=view.unreported,
        )

    def _on_node(self, view: NodeView, now_s: float) -> Iterator[FleetFault]:
        name = view.node.name
        residents = [
            Resident(pod, workload, self._store.podgroup(workload.podgroup) if workload else None)
            for pod in self._store.pods_on(name)
            for workload in (self._store.workload_of_uid(pod.owner_uid),)
        ]
        lost, acts_at_s = node_fault(view.node, settings=self._settings.faults, now_s=now_s)
        if lost is not None and (view.node.exists or residents):
            yield _fleet_fault(lost, self._hits(lost, residents, now_s), acts_at_s=acts_at_s)
        for fault in (*self._store.card_faults(name, now_s=now_s), *view.troubles):
            yield _fleet_fault(fault, self._hits(fault, residents, now_s))

    def _hits(self, fault: Fault, residents: list[Resident], now_s: float) -> tuple[Hit, ...]:
        return hits(fault, residents, settings=self._settings, now_s=now_s)

    async def _of_pods(self, now_s: float) -> list[FleetFault]:
        found: list[FleetFault] = []
        async for scope in _in_slices(sorted(self._store.scopes())):
            view = self._store.view(scope, now_s=now_s)
            for workload in view.workloads if view is not None else ():
                for fault in workload.faults:
                    if fault.source in OF_PODS:
                        why = "" if fault.acts else "a process, or the platform, answers it"
                        hit = Hit(str(workload.workload.key), fault.pod, acts=fault.acts, why=why)
                        found.append(_fleet_fault(fault, (hit,)))
        return found


async def _in_slices(names: Sequence[NameT]) -> AsyncIterator[NameT]:
    """One after the other; others get their turn in between."""
    for number, name in enumerate(names, 1):
        yield name
        if number % SLICE == 0:
            await asyncio.sleep(0)


def isolation_report(isolation: Isolation) -> IsolationReport:
    """One entry as it is shown."""
    return IsolationReport(
        id=isolation.id,
        device=isolation.device,
        reason=isolation.reason,
        text=isolation.text,
        codes=isolation.codes,
        owner=isolation.wanted_by,
        epochs=isolation.epochs,
        since_s=isolation.since_s,
        means=isolation.means,
        until=isolation.until,
        ends_at_s=isolation.ends_at_s,
        in_force=isolation.in_force,
        overruled_by=isolation.overruled_by,
        undo=isolation.undo,
    )


def _fleet_fault(fault: Fault, found: tuple[Hit, ...], *, acts_at_s: float | None = None) -> FleetFault:
    reported = tuple(_hit(hit, acts_at_s) for hit in found)
    effects = {hit.effect for hit in reported}
    effect = next((one for one in (ACTS, LATER) if one in effects), RECORDED)
    why = ""
    if not reported:
        why = "nobody is hit"
    elif effect is RECORDED:
        why = reported[0].why or why_recorded(fault, Subject.INFERENCE)
    return FleetFault(
        source=fault.source,
        cause=fault.cause,
        node=fault.node,
        device=fault.device,
        codes=fault.codes,
        level=fault.level,
        first_seen_s=fault.first_seen_s,
        evidence=fault.evidence,
        details=tuple(
            CodeReport(code=fact.code, level=fact.level, part=fact.part, first_seen_s=fact.first_seen_s)
            for fact in fault.details
        ),
        hits=reported,
        effect=effect,
        why=why,
    )


def _hit(hit: Hit, acts_at_s: float | None) -> HitReport:
    at_s = hit.acts_at_s if hit.acts_at_s is not None else acts_at_s
    effect = ACTS if hit.acts else LATER if at_s is not None else RECORDED
    return HitReport(
        workload=hit.workload,
        pod=hit.pod,
        effect=effect,
        acts_at_s=None if hit.acts else at_s,
        why=hit.why,
    )


def _place(fault: FleetFault) -> tuple[str, str, str]:
    return (fault.node, fault.device, fault.cause)
