"""One record of every decision, read by everybody.

The log, metrics, Kubernetes Events, the audit file, the pages and `why` all show the same `DecisionRecord`.
A record is made after the ledger accepted the decision and before its actions run, so nothing is told
that did not count. A decision that repeats the last one of its workload word for word is not recorded again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mindie_ha.model.decisions import (
    Decision,
    NodeDecision,
    Notice,
    TableDecision,
)
from mindie_ha.model.ids import ObjectKey, ScopeKey
from mindie_ha.model.recoveries import ClosedRecovery, Outcome, Recovery

TABLE = "table"  # the subject of records about a service's table
MAX_RECORDS = 2000
MAX_STANDING = 10_000


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """What was decided, for whom, by which rule, and what follows. Times are wall time in seconds."""

    at_s: float
    scope: ScopeKey
    subject: str  # "<ns>/<name>" of the workload, "table" or the node
    rule: str
    sentence: str
    epoch: int = 0
    rung: str = ""
    phase: str = ""
    outcome: str = ""
    role: str = ""
    actions: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    recovery: Recovery | None = None
    closed: ClosedRecovery | None = None
    about: ObjectKey | None = None  # the workload at which it is told, where the subject is none


Listener = Callable[[DecisionRecord], None]


@dataclass(slots=True)
class Recorder:
    """Keeps the newest records and tells listeners. Listeners must be quick and must not fail."""

    listeners: list[Listener] = field(default_factory=list)
    _records: deque[DecisionRecord] = field(default_factory=lambda: deque(maxlen=MAX_RECORDS))
    _last: dict[tuple[ScopeKey, str], tuple[str, str]] = field(default_factory=dict)
    _standing: dict[tuple[ScopeKey, str], frozenset[str]] = field(default_factory=dict)

    def workload(self, scope: ScopeKey, decision: Decision, *, role: str, at_s: float) -> None:
        """Record the decision on one workload."""
        ledger = decision.ledger
        recovery = ledger.recovery
        self._keep(
            DecisionRecord(
                at_s=at_s,
                scope=scope,
                subject=str(decision.workload),
                rule=decision.rule,
                sentence=decision.sentence,
                epoch=ledger.epoch,
                rung=recovery.rung if recovery else "",
                phase=recovery.phase if recovery else "",
                outcome=decision.outcome or "",
                role=role,
                actions=tuple(action.words for action in decision.actions),
                notices=self._new_notices(scope, str(decision.workload), decision.notices),
                recovery=recovery,
                closed=_just_closed(decision),
            )
        )

    def refused(self, scope: ScopeKey, workload: ObjectKey, refusals: Iterable[str], *, at_s: float) -> None:
        """Tell which actions on a workload the API server refused, each once for as long as it stands."""
        notices = tuple(
            Notice("ActionRefused", f"{workload}: {each}", warning=True, key=f"refused:{workload}:{each}")
            for each in refusals
        )
        told = self._new_notices(scope, f"{workload} refused", notices)
        for notice in told:
            record = DecisionRecord(
                at_s, scope, str(workload), "action-refused", notice.message, notices=(notice,)
            )
            self._keep(record)

    def table(self, scope: ScopeKey, decision: TableDecision, *, at_s: float) -> None:
        """Record the decision on a service's table."""
        actions = (f"publish generation {decision.ledger.generation}",) if decision.publish else ()
        notices = self._new_notices(scope, TABLE, decision.notices)
        self._keep(
            DecisionRecord(
                at_s,
                scope,
                TABLE,
                "table",
                decision.sentence,
                actions=actions,
                notices=notices,
                about=decision.about,
            )
        )

    def node(self, scope: ScopeKey, decision: NodeDecision, *, at_s: float) -> None:
        """Record the decision on a node's isolations."""
        notices = self._new_notices(scope, decision.node, decision.notices)
        self._keep(
            DecisionRecord(at_s, scope, decision.node, "isolation", decision.sentence, notices=notices)
        )

    def recent(self, *, scope: ScopeKey | None = None, subject: str = "") -> Iterable[DecisionRecord]:
        """Newest last; all, or those of one scope and subject."""
        for record in self._records:
            if (scope is None or record.scope == scope) and (not subject or record.subject == subject):
                yield record

    def forget(self, scope: ScopeKey) -> None:
        """Drop what is remembered of a scope that is gone (its records stay until pushed out)."""
        for store in (self._last, self._standing):
            for key in [key for key in store if key[0] == scope]:
                del store[key]

    def _new_notices(self, scope: ScopeKey, subject: str, notices: tuple[Notice, ...]) -> tuple[Notice, ...]:
        before = self._standing.get((scope, subject), frozenset())
        keys = frozenset(notice.key for notice in notices if notice.key)
        if keys:
            self._standing[scope, subject] = keys
        else:
            self._standing.pop((scope, subject), None)
        return tuple(notice for notice in notices if not notice.key or notice.key not in before)

    def _keep(self, record: DecisionRecord) -> None:
        said = (record.rule, record.sentence)
        if (
            self._last.get((record.scope, record.subject)) == said
            and not record.notices
            and not record.actions
        ):
            return
        if len(self._last) >= MAX_STANDING:
            self._last.clear()
        self._last[record.scope, record.subject] = said
        self._records.append(record)
        for listener in self.listeners:
            listener(record)


def _just_closed(decision: Decision) -> ClosedRecovery | None:
    """The recovery that this decision ended; a workload may also park without one."""
    ledger = decision.ledger
    if ledger.recovery is not None or not ledger.closed:
        return None
    newest = ledger.closed[-1]
    if decision.outcome is Outcome.PARKED:
        parked_now = ledger.parked is not None and ledger.parked.at_s == newest.closed_at_s
        return newest if newest.outcome is Outcome.PARKED and parked_now else None
    ended = (Outcome.RECOVERED, Outcome.RECOVERED_UNVERIFIED, Outcome.DEGRADED)
    return newest if decision.outcome in ended else None
