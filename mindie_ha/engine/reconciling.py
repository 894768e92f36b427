"""One look at one scope: view, plan, remember, act.

The order is the whole safety of the product. The planner sees an immutable snapshot; what it wants to
remember is written with compare-and-swap before any action runs; actions carry UIDs; after anything
changed the scope is looked at again at once, so every phase is entered on facts and not on hope. A
conflict or a failed action changes nothing here: the next look decides from what is then true.

Decisions on different workloads of one service, and on its table, do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.store import Store
from mindie_ha.engine.executor import Executor
from mindie_ha.engine.imaginations import Imagined
from mindie_ha.engine.looks import Look
from mindie_ha.engine.records import Recorder
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.logs import Log
from mindie_ha.kit.tasks import every
from mindie_ha.model.decisions import Decision, NodeDecision, Notice, Plan, TableDecision
from mindie_ha.model.errors import Conflict, Denied, LedgerUnreadable, MindieHaError, Refused
from mindie_ha.model.ids import ScopeKey, ScopeKind
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView, ScopeView, WorkloadView

Planner = Callable[[ScopeView, Settings, float], Plan]


class NodePlanner(Protocol):
    """`policy.isolations.plan_node`."""

    def __call__(
        self, view: NodeView, *, wanted: frozenset[str], settings: Settings, now_s: float
    ) -> NodeDecision: ...


class Tables(Protocol):
    """Hands tables to the channels and knows who has them."""

    def facts(self, scope: ScopeKey) -> tuple[int, bool]:
        """Number of subscribers, and whether all of them have the newest table."""
        ...

    async def publish(self, scope: ScopeKey, decision: TableDecision) -> None:
        """Give a recorded table to every channel; returns within a bounded time, delivered or not."""
        ...

    async def forget(self, scope: ScopeKey) -> None:
        """The service is gone."""
        ...


class PublicReports(Protocol):
    """Reads ConfigMaps that report public faults, and sweeps what has ended."""

    async def reconcile(self, scope: ScopeKey) -> Look:
        """Look once."""
        ...


LookListener = Callable[[ScopeKey, ScopeView | None], None]


class Reconciler:
    """Takes one scope from view to done."""

    def __init__(
        self,
        *,
        store: Store,
        ledgers: Ledgers,
        executor: Executor,
        tables: Tables,
        recorder: Recorder,
        planner: Planner,
        node_planner: NodePlanner,
        public: PublicReports,
        on_look: tuple[LookListener, ...],
        settings: Settings,
        clock: Clock,
        log: Log,
    ) -> None:
        self._log = log
        self._store = store
        self._ledgers = ledgers
        self._executor = executor
        self._tables = tables
        self._recorder = recorder
        self._planner = planner
        self._node_planner = node_planner
        self._public = public
        self._on_look = on_look
        self._settings = settings
        self._clock = clock
        self._imagined = Imagined()

    async def reconcile(self, scope: ScopeKey) -> Look:
        """Look once. Raises nothing that the world can cause; a bug is contained by the caller."""
        if scope.kind is ScopeKind.NODE:
            self._tell_looked(scope, None)
            return await self._node(scope)
        if scope.kind is ScopeKind.PUBLIC:
            return await self._public.reconcile(scope)
        subscribers, handed = self._tables.facts(scope)
        view = self._store.view(
            scope, now_s=self._clock.wall(), subscribers=subscribers, handed_to_all=handed
        )
        self._tell_looked(scope, view)
        if view is None:
            self._recorder.forget(scope)
            self._imagined.forget(scope)
            await self._tables.forget(scope)
            return Look()
        if self._settings.dry_run:
            view = self._imagined.over(view)
        plan = self._planner(view, self._settings, self._clock.wall())
        before = {each.workload.key: each for each in view.workloads}
        steps = [self._workload(scope, before[each.workload], each) for each in plan.decisions]
        if not view.workloads:
            await self._tables.forget(scope)  # nobody is left to have a table
        elif plan.table is not None:
            steps.append(self._table(scope, view, plan.table))
        looks = await every(steps)
        return Look(
            progressed=any(look.progressed for look in looks),
            failed=any(look.failed for look in looks),
            wake_at_s=_earliest(plan.wake_at_s, view.wake_at_s),
        )

    def _tell_looked(self, scope: ScopeKey, view: ScopeView | None) -> None:
        for listener in self._on_look:
            listener(scope, view)

    async def _workload(self, scope: ScopeKey, view: WorkloadView, decision: Decision) -> Look:
        changed = decision.ledger != view.ledger
        if self._settings.dry_run:
            self._imagined.keep(view.workload.uid, decision.ledger)
            self._record(scope, view, decision)
            return Look(progressed=changed)
        if changed:
            try:
                await self._ledgers.save_workload(
                    decision.ledger, workload=view.workload, version=view.ledger_version
                )
            except LedgerUnreadable as error:
                self._record(scope, view, _not_written(decision, view.ledger, str(error)))
                return Look(failed=True)
            except MindieHaError as error:
                return self._not_recorded(str(decision.workload), error)
        self._record(scope, view, decision)
        failures = await self._executor.run(decision.actions)
        for failure in failures:
            self._log.warning(
                "action failed; looking again after back-off",
                workload=str(decision.workload),
                action=type(failure.action).__name__,
                error=str(failure.error),
            )
        if decision.actions:
            refusals = [
                f"{failure.action.words}: {failure.error}"
                for failure in failures
                if isinstance(failure.error, Denied | Refused)
            ]
            self._recorder.refused(scope, decision.workload, refusals, at_s=self._clock.wall())
        acted = len(decision.actions) > len(failures)
        return Look(progressed=changed or acted, failed=bool(failures))

    def _record(self, scope: ScopeKey, view: WorkloadView, decision: Decision) -> None:
        self._recorder.workload(scope, decision, role=view.workload.role, at_s=self._clock.wall())

    async def _table(self, scope: ScopeKey, view: ScopeView, decision: TableDecision) -> Look:
        assert view.table is not None  # noqa: S101 - narrowed by the caller
        changed = decision.ledger != view.table.ledger
        if self._settings.dry_run:
            self._imagined.keep_table(scope, decision.ledger)
            self._recorder.table(scope, decision, at_s=self._clock.wall())
            return Look(progressed=changed)
        if changed or not view.table.recorded:
            workloads = [each.workload for each in view.workloads]
            try:
                await self._ledgers.save_service(
                    decision.ledger, workloads=workloads, version=view.table.ledger_version
                )
            except MindieHaError as error:
                return self._not_recorded(f"table of {scope}", error)
        self._recorder.table(scope, decision, at_s=self._clock.wall())
        await self._tables.publish(scope, decision)
        return Look(progressed=changed)

    async def _node(self, scope: ScopeKey) -> Look:
        view = self._store.node_view(scope.name, now_s=self._clock.wall())
        decision = self._node_planner(
            view,
            wanted=self._store.open_recoveries(),
            settings=self._settings,
            now_s=self._clock.wall(),
        )
        if not decision.changed or self._settings.dry_run:
            if decision.notices:
                self._recorder.node(scope, decision, at_s=self._clock.wall())
            return Look(wake_at_s=decision.wake_at_s)
        try:
            await self._executor.settle_node(decision, view=view)
        except MindieHaError as error:
            return self._not_recorded(f"node {scope.name}", error)
        self._recorder.node(scope, decision, at_s=self._clock.wall())
        return Look(progressed=True, wake_at_s=decision.wake_at_s)

    def _not_recorded(self, subject: str, error: MindieHaError) -> Look:
        """Nothing was written, so nothing was done. A conflict is ordinary: our view was old."""
        if not isinstance(error, Conflict):
            self._log.warning(
                "could not write; looking again after back-off", subject=subject, error=str(error)
            )
        return Look(failed=True)


def _not_written(decision: Decision, before: WorkloadLedger, why: str) -> Decision:
    """What is told where a ledger can never be written: nothing is done that is not recorded first."""
    message = f"{decision.workload}: nothing is done, its ledger cannot be written: {why}"
    notice = Notice("LedgerNotWritten", message, warning=True, key=f"ledger:{before.workload_uid}")
    return Decision(decision.workload, before, message, rule="ledger-not-written", notices=(notice,))


def _earliest(*times_s: float | None) -> float | None:
    return min((each for each in times_s if each is not None), default=None)
