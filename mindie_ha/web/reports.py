"""What `status` shows: every service and job, as plain typed data.

Built from the same view and the same planner as the decisions, so the report cannot tell another story.
The HTTP API, the command line and the pages render this one shape.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import Clock
from mindie_ha.model.decisions import Decision, Plan, TableDecision
from mindie_ha.model.faults import Fault
from mindie_ha.model.ids import ScopeKey
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pauses import Pause
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Outcome
from mindie_ha.model.roles import PodRole
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, TableView, WorkloadView
from mindie_ha.policy import holds
from mindie_ha.policy.wellness import unwell

Planner = Callable[[ScopeView, Settings, float], Plan]


class Report(BaseModel):
    """Base of everything shown; all times are wall time in seconds."""

    model_config = ConfigDict(frozen=True)


class PodReport(Report):
    """One pod of a workload."""

    name: str
    uid: str
    node: str
    phase: str
    ready: bool
    terminating: bool
    ip: str
    devices: tuple[str, ...]
    restarts: int
    ms_state: str = ""  # active, standby or unknown; empty for pods that are not MS
    ms_reason: str = ""
    ms_since_s: float | None = None


class FaultReport(Report):
    """One current fault that concerns a workload."""

    cause: str
    node: str
    device: str
    pod: str
    codes: tuple[str, ...]
    level: str
    acts: bool
    first_seen_s: float
    evidence: str


class RecoveryReport(Report):
    """The open recovery."""

    epoch: int
    cause: str
    summary: str
    rung: str
    phase: str
    phase_since_s: float
    deadline_s: float | None
    condition: str
    condition_message: str
    targets: tuple[str, ...]


class WorkloadReport(Report):
    """One workload and how it is."""

    name: str
    kind: str
    role: str
    pd_role: str
    state: str  # one of STATES
    sentence: str
    replicas: int
    pods: tuple[PodReport, ...]
    recovery: RecoveryReport | None
    faults: tuple[FaultReport, ...]
    recoveries_closed: int
    software_retries_spent: int
    notices: tuple[str, ...]


class TableReport(Report):
    """The service's table."""

    generation: int
    digest: str
    published_at_s: float
    servers: int
    groups: dict[str, int]
    subscribers: int
    strangers: tuple[str, ...] = ()  # addresses of subscribers that are no pod and no node of the service
    handed_to_all: bool
    sentence: str
    left_out: dict[str, tuple[str, ...]]
    held_until_s: dict[str, float]
    notices: tuple[str, ...]


class ProblemReport(Report):
    """One object in the cluster that cannot be understood."""

    object: str
    problem: str


class ScopeReport(Report):
    """One service or job."""

    namespace: str
    name: str
    kind: str
    state: str
    workloads: tuple[WorkloadReport, ...]
    table: TableReport | None


class IsolatedReport(Report):
    """A node, or a card of it, that gets no new work because of us."""

    node: str
    device: str
    reason: str
    text: str
    until: str
    ends_at_s: float | None
    healed_since_s: float | None = None  # the fault is gone since then; it is released a little later


class PauseReport(Report):
    """One scope whose deletions a person holds."""

    scope: str
    text: str
    person: str
    since_s: float
    ends_at_s: float | None
    undo: str


def pause_report(pause: Pause) -> PauseReport:
    """As it is shown everywhere."""
    return PauseReport(
        scope=pause.scope,
        text=pause.text,
        person=pause.person,
        since_s=pause.since_s,
        ends_at_s=pause.ends_at_s,
        undo=holds.command(pause.scope),
    )


class Overview(Report):
    """The whole cluster as we see it."""

    services: tuple[ScopeReport, ...]
    problems: tuple[ProblemReport, ...] = ()
    isolated: tuple[IsolatedReport, ...] = ()
    pauses: tuple[PauseReport, ...] = ()
    leader: str = ""  # whoever leads; empty: nobody, or unknown
    leader_note: str = ""  # about its Lease, where a command read it itself


def report_scope(view: ScopeView, *, planner: Planner, settings: Settings, now_s: float) -> ScopeReport:
    """The report of one scope; O(size of the scope)."""
    plan = planner(view, settings, now_s)
    decisions = {decision.workload: decision for decision in plan.decisions}
    workloads = tuple(workload_report(each, decisions.get(each.workload.key)) for each in view.workloads)
    table = _table(view.table, plan.table) if view.table is not None else None
    return ScopeReport(
        namespace=view.scope.namespace,
        name=view.scope.name,
        kind=view.scope.kind,
        state=_worst([workload.state for workload in workloads]),
        workloads=workloads,
        table=table,
    )


class Facts(Protocol):
    """Who listens to a service's tables (`engine.tables.TableDesk`)."""

    def facts(self, scope: ScopeKey) -> tuple[int, bool]:
        """Number of subscribers, and whether all of them have the newest table."""
        ...

    def strangers(self, scope: ScopeKey) -> tuple[str, ...]:
        """Addresses among them that are no pod and no node of the service."""
        ...


class Reporter:
    """Reports from the live store."""

    def __init__(
        self, *, store: Store, tables: Facts, planner: Planner, settings: Settings, clock: Clock
    ) -> None:
        self._store = store
        self._tables = tables
        self._planner = planner
        self._settings = settings
        self._clock = clock

    def scopes(self) -> frozenset[ScopeKey]:
        """Every service and job that is known."""
        return self._store.scopes()

    def report(self, scope: ScopeKey) -> ScopeReport | None:
        """One of them; None when it is gone."""
        now_s = self._clock.wall()
        subscribers, handed = self._tables.facts(scope)
        view = self._store.view(scope, now_s=now_s, subscribers=subscribers, handed_to_all=handed)
        if view is None:
            return None
        found = report_scope(view, planner=self._planner, settings=self._settings, now_s=now_s)
        strangers = self._tables.strangers(scope)
        if not strangers or found.table is None:
            return found
        table = found.table.model_copy(update={"strangers": strangers})
        return found.model_copy(update={"table": table})

    def problems(self) -> list[ProblemReport]:
        """Every object that cannot be understood now, in order."""
        found = sorted(self._store.problems().items())
        return [ProblemReport(object=name, problem=text) for name, text in found]

    def overview(self, *, services: tuple[ScopeReport, ...] | None = None) -> Overview:
        """Everything that `status` shows; `services` where they were gathered already."""
        standing = holds.standing(self._store.pauses().ledger, now_s=self._clock.wall())
        return Overview(
            services=tuple(self.all()) if services is None else services,
            problems=tuple(self.problems()),
            isolated=tuple(self.isolated()),
            pauses=tuple(map(pause_report, standing)),
        )

    def isolated(self) -> Iterator[IsolatedReport]:
        """What is kept off new work now, by node."""
        for name in sorted(self._store.node_names()):
            ledger = self._store.node_view(name, now_s=self._clock.wall()).ledger
            for one in ledger.isolations if ledger is not None else ():
                if one.in_force:
                    yield IsolatedReport(
                        node=name,
                        device=one.device,
                        reason=one.reason,
                        text=one.text,
                        until=one.until,
                        ends_at_s=one.ends_at_s,
                        healed_since_s=one.healed_since_s,
                    )

    def all(self) -> list[ScopeReport]:
        """All of them, in order."""
        found = (self.report(scope) for scope in sorted(self.scopes()))
        return [report for report in found if report is not None]


STATES = ("parked", "held", "waiting", "recovering", "faulty", "starting", "observed", "ok")


def _worst(states: list[str]) -> str:
    return min(states, key=STATES.index, default="ok")


def _state(view: WorkloadView, decision: Decision | None) -> str:
    ledger = view.ledger
    held = decision is not None and decision.outcome is Outcome.HELD
    if held and ledger.parked is None:
        return "held"
    if ledger.state:
        return ledger.state
    if view.ledger_error:
        return "observed"
    if any(fault.acts for fault in view.faults):
        return "faulty"
    alive = [pod for pod in view.pods if pod.alive]
    complete = len(alive) >= view.workload.replicas and not unwell(view.workload.role, alive)
    return "ok" if complete else "starting"


def workload_report(view: WorkloadView, decision: Decision | None) -> WorkloadReport:
    workload, ledger = view.workload, view.ledger
    notices = decision.notices if decision is not None else ()
    return WorkloadReport(
        name=workload.key.name,
        kind=workload.kind,
        role=workload.role,
        pd_role=workload.pd_role,
        state=_state(view, decision),
        sentence=decision.sentence if decision is not None else "",
        replicas=workload.replicas,
        pods=tuple(_pod(pod, view.roles.get(pod.uid)) for pod in view.pods),
        recovery=_recovery(ledger),
        faults=tuple(_fault(fault) for fault in view.faults),
        recoveries_closed=ledger.recoveries_closed,
        software_retries_spent=ledger.software_retries_spent,
        notices=tuple(notice.message for notice in notices),
    )


def _pod(pod: Pod, role: PodRole | None) -> PodReport:
    return PodReport(
        name=pod.key.name,
        uid=pod.uid,
        node=pod.node,
        phase=pod.phase,
        ready=pod.ready,
        terminating=pod.terminating,
        ip=pod.ip,
        devices=pod.devices,
        restarts=pod.restarts,
        ms_state=role.activity if role is not None else "",
        ms_reason=role.reason if role is not None else "",
        ms_since_s=role.since_s if role is not None else None,
    )


def _fault(fault: Fault) -> FaultReport:
    return FaultReport(
        cause=fault.cause,
        node=fault.node,
        device=fault.device,
        pod=fault.pod,
        codes=fault.codes,
        level=fault.level,
        acts=fault.acts,
        first_seen_s=fault.first_seen_s,
        evidence=fault.evidence,
    )


def _recovery(ledger: WorkloadLedger) -> RecoveryReport | None:
    recovery = ledger.recovery
    if recovery is None:
        return None
    return RecoveryReport(
        epoch=recovery.epoch,
        cause=recovery.intent.cause,
        summary=recovery.intent.summary,
        rung=recovery.rung,
        phase=recovery.phase,
        phase_since_s=recovery.phase_since_s,
        deadline_s=recovery.deadline_s,
        condition=recovery.condition,
        condition_message=recovery.condition_message,
        targets=tuple(target.name for target in recovery.targets),
    )


def _table(view: TableView, decision: TableDecision | None) -> TableReport:
    ledger = view.ledger
    left_out = decision.left_out if decision is not None else ()
    notices = decision.notices if decision is not None else ()
    return TableReport(
        generation=ledger.generation,
        digest=ledger.digest,
        published_at_s=ledger.published_at_s,
        servers=count_servers(ledger.text),
        groups=dict(ledger.ids),
        subscribers=view.subscribers,
        handed_to_all=view.handed_to_all,
        sentence=decision.sentence if decision is not None else "",
        left_out={name: tuple(each.message for each in findings) for name, findings in left_out},
        held_until_s=dict(decision.held) if decision is not None else {},
        notices=tuple(notice.message for notice in notices),
    )


def count_servers(text: str) -> int:
    """Server entries in the groups from 2 up; 0 where no table was published. `text` is our own."""
    if not text:
        return 0
    groups = json.loads(text)["server_group_list"]
    return sum(len(group["server_list"]) for group in groups if int(group["group_id"]) >= 2)
