"""What `why`, `plan` and `history` show, as plain typed data.

Built from the same views, planner, ledgers and decision records as everything else, so that no second story
can be told. `why` answers for one workload: how it is, what it waits for, what was decided in which order.
`plan` is the planner's word now, without any of it being done. `history` is what the ledgers keep of
recoveries that are over, newest first. The loop gets a turn after each service.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from mindie_ha.cluster.store import Store
from mindie_ha.engine.records import Recorder
from mindie_ha.engine.sinks import as_json
from mindie_ha.kit.clock import Clock
from mindie_ha.model.decisions import Decision, Plan, TableDecision
from mindie_ha.model.errors import NotFound
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.recoveries import ClosedRecovery, PhaseRecord
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, TableView, WorkloadView
from mindie_ha.policy import waits
from mindie_ha.policy.isolations import plan_node
from mindie_ha.web.reports import Facts, Planner, Report, WorkloadReport, workload_report


class StepReport(Report):
    """One phase of a recovery as its ledger remembers it."""

    epoch: int
    rung: str
    phase: str
    start_s: float
    end_s: float | None
    exit: str


class WaitReport(Report):
    """What is waited for. `until_s` None: no time ends it."""

    what: str
    ends: str
    until_s: float | None
    then: str


class PastRecovery(Report):
    """One recovery that is over."""

    workload: str
    role: str
    epoch: int
    kind: str
    cause: str
    rungs: tuple[str, ...]
    outcome: str
    opened_at_s: float
    closed_at_s: float
    took_s: float
    reason: str
    summary: str
    deleted: tuple[str, ...]
    created: tuple[str, ...]


class WhyReport(Report):
    """One workload. `decisions` None: only a running controller has them."""

    workload: str
    report: WorkloadReport
    waits_for: WaitReport | None
    steps: tuple[StepReport, ...]  # of the open recovery, else of the newest
    closed: tuple[PastRecovery, ...]
    decisions: tuple[dict[str, Any], ...] | None


class PlannedReport(Report):
    """What would be done about one workload, table or node now."""

    subject: str
    rule: str
    sentence: str
    records: bool  # its ledger would be written first
    actions: tuple[str, ...]
    notices: tuple[str, ...]
    outcome: str = ""
    look_again_s: float | None = None


class PlanReport(Report):
    """The planner's word now. Nodes are named where something would change."""

    at_s: float
    workloads: tuple[PlannedReport, ...]
    tables: tuple[PlannedReport, ...]
    nodes: tuple[PlannedReport, ...]


class HistoryReport(Report):
    """Closed recoveries, newest first."""

    recoveries: tuple[PastRecovery, ...]


class Explainer:
    """See the module. `recorder` None: no controller runs here."""

    def __init__(
        self,
        *,
        store: Store,
        tables: Facts,
        planner: Planner,
        settings: Settings,
        clock: Clock,
        recorder: Recorder | None = None,
    ) -> None:
        self._store = store
        self._tables = tables
        self._planner = planner
        self._settings = settings
        self._clock = clock
        self._recorder = recorder

    async def why(self, key: ObjectKey, *, limit: int) -> WhyReport:
        """Why one workload is as it is. Raises NotFound."""
        async for scope in self._scopes(key):
            now_s = self._clock.wall()
            decisions = {each.workload: each for each in self._plan(scope).decisions}
            for view in scope.workloads:
                if view.workload.key == key:
                    return self._why(view, decisions[key], limit=limit, now_s=now_s)
        raise _unknown(key)

    async def plan(self, key: ObjectKey | None) -> PlanReport:
        """What would be done now, of everything or of one workload and its table. Raises NotFound."""
        workloads: list[PlannedReport] = []
        tables: list[PlannedReport] = []
        async for scope in self._scopes(key):
            plan = self._plan(scope)
            before = {view.workload.key: view for view in scope.workloads}
            workloads += [
                _planned(before[each.workload], each)
                for each in plan.decisions
                if key in (None, each.workload)
            ]
            if plan.table is not None and scope.table is not None:
                tables.append(_planned_table(scope.table, f"table of {scope.scope}", plan.table))
        if key is not None and not workloads:
            raise _unknown(key)
        nodes = () if key is not None else tuple([each async for each in self._nodes()])
        return PlanReport(
            at_s=self._clock.wall(), workloads=tuple(workloads), tables=tuple(tables), nodes=nodes
        )

    async def history(self, key: ObjectKey | None) -> HistoryReport:
        """What is over, of everything or of one workload. Raises NotFound."""
        found: list[PastRecovery] = []
        known = False
        async for scope in self._scopes(key):
            for view in scope.workloads:
                if key in (None, view.workload.key):
                    known = True
                    found += past(view)
        if key is not None and not known:
            raise _unknown(key)
        newest_first = sorted(found, key=lambda one: (-one.closed_at_s, one.workload))
        return HistoryReport(recoveries=tuple(newest_first))

    async def _scopes(self, key: ObjectKey | None) -> AsyncIterator[ScopeView]:
        """Every service and job, or the one that `key` is in."""
        workload = self._store.workload(key) if key is not None else None
        if key is not None:
            wanted = [workload.scope] if workload is not None else []
        else:
            wanted = sorted(self._store.scopes())
        for scope in wanted:
            subscribers, handed = self._tables.facts(scope)
            view = self._store.view(
                scope, now_s=self._clock.wall(), subscribers=subscribers, handed_to_all=handed
            )
            if view is not None:
                yield view
            await asyncio.sleep(0)

    def _plan(self, scope: ScopeView) -> Plan:
        return self._planner(scope, self._settings, self._clock.wall())

    async def _nodes(self) -> AsyncIterator[PlannedReport]:
        wanted = self._store.open_recoveries()
        for name in sorted(self._store.node_names()):
            await asyncio.sleep(0)  # a fleet has thousands, and the loop has others to serve
            now_s = self._clock.wall()
            view = self._store.node_view(name, now_s=now_s)
            found = plan_node(view, wanted=wanted, settings=self._settings, now_s=now_s)
            if found.changed:
                yield PlannedReport(
                    subject=f"node {name}",
                    rule="isolation",
                    sentence=found.sentence,
                    records=True,
                    actions=(f"taint {'stands' if found.tainted else 'goes'}",),
                    notices=tuple(notice.message for notice in found.notices),
                    look_again_s=found.wake_at_s,
                )

    def _why(self, view: WorkloadView, decision: Decision, *, limit: int, now_s: float) -> WhyReport:
        wait = waits.judge(view, decision, now_s=now_s)
        subject = str(view.workload.key)
        decisions = None
        if self._recorder is not None:
            records = [as_json(record) for record in self._recorder.recent(subject=subject)]
            decisions = tuple(records[-limit:] if limit > 0 else ())
        return WhyReport(
            workload=subject,
            report=workload_report(view, decision),
            waits_for=None
            if wait is None
            else WaitReport(what=wait.what, ends=wait.ends, until_s=wait.until_s, then=wait.then),
            steps=tuple(_steps(view)),
            closed=tuple(reversed(tuple(past(view)))),
            decisions=decisions,
        )


def past(view: WorkloadView) -> Iterator[PastRecovery]:
    """The closed recoveries that a ledger keeps, oldest first."""
    for one in view.ledger.closed:
        yield PastRecovery(
            workload=str(view.workload.key),
            role=view.workload.role,
            epoch=one.epoch,
            kind=one.intent.kind,
            cause=one.intent.cause,
            rungs=one.rungs,
            outcome=one.outcome,
            opened_at_s=one.opened_at_s,
            closed_at_s=one.closed_at_s,
            took_s=round(one.closed_at_s - one.opened_at_s, 3),
            reason=one.intent.summary,
            summary=one.summary,
            deleted=tuple(target.name for target in one.targets),
            created=tuple(each.name for each in one.replacements),
        )


def _steps(view: WorkloadView) -> Iterator[StepReport]:
    newest: ClosedRecovery | None = view.ledger.closed[-1] if view.ledger.closed else None
    source = view.ledger.recovery or newest
    history: tuple[PhaseRecord, ...] = source.history if source is not None else ()
    for one in history:
        yield StepReport(
            epoch=source.epoch if source is not None else 0,
            rung=one.rung,
            phase=one.phase,
            start_s=one.start_s,
            end_s=one.end_s,
            exit=one.exit,
        )


def _planned(view: WorkloadView, decision: Decision) -> PlannedReport:
    return PlannedReport(
        subject=str(decision.workload),
        rule=decision.rule,
        sentence=decision.sentence,
        records=decision.ledger != view.ledger,
        actions=tuple(action.words for action in decision.actions),
        notices=tuple(notice.message for notice in decision.notices),
        outcome=decision.outcome or "",
        look_again_s=decision.wake_at_s,
    )


def _planned_table(view: TableView, subject: str, decision: TableDecision) -> PlannedReport:
    publish = (f"publish generation {decision.ledger.generation}",) if decision.publish else ()
    return PlannedReport(
        subject=subject,
        rule="table",
        sentence=decision.sentence,
        records=decision.ledger != view.ledger,
        actions=publish,
        notices=tuple(notice.message for notice in decision.notices),
        look_again_s=decision.wake_at_s,
    )


def _unknown(key: ObjectKey) -> NotFound:
    return NotFound(f"there is no workload {str(key)[:317]}", status=404)


__all__ = ["Explainer", "HistoryReport", "PastRecovery", "PlanReport", "WhyReport", "past"]
