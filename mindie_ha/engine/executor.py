"""Performs actions. Each is fenced, preconditioned on a UID, and safe to repeat.

Actions of one decision run side by side. A failure is returned, never swallowed: the scope is looked at
again after back-off, and the planner decides anew from what is then true.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.retries import RETRIES_KEY, granted
from mindie_ha.cluster.sources import RETRIES_NAME, RETRIES_NAMESPACE
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.writer import Writer
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.tasks import every
from mindie_ha.model.decisions import (
    Action,
    AdoptPodGroup,
    DeletePod,
    GrantRetries,
    IsolateNode,
    NodeDecision,
)
from mindie_ha.model.errors import Conflict, MindieHaError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import Isolation, NodeLedger
from mindie_ha.model.nodes import TAINT_ISOLATED, Taint
from mindie_ha.model.views import NodeView

ISOLATE_ATTEMPTS = 3
ADOPTION = (
    "ProcessRecoverStrategy",
    "mindie-ha",
)  # with it Volcano never deletes (rescheduling contract §1.1)
RETRIES_LABELS = {"mx-consumer-volcano": "true"}


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that did not succeed, and why."""

    action: Action
    error: MindieHaError


class Executor:
    """Runs actions through the fenced writer."""

    def __init__(self, *, store: Store, writer: Writer, ledgers: Ledgers, clock: Clock) -> None:
        self._clock = clock
        self._store = store
        self._writer = writer
        self._ledgers = ledgers
        self._node_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def run(self, actions: tuple[Action, ...]) -> tuple[Failure, ...]:
        """Perform all actions in parallel; returns those that failed."""
        results = await every(self._attempt(action) for action in actions)
        return tuple(failure for failure in results if failure is not None)

    async def settle_node(self, decision: NodeDecision, *, view: NodeView) -> None:
        """Bring a node to the decision on `view`: remembered before set, taken off before forgotten.

        Raises Conflict if the node's ledger changed since `view`: an isolation that was added meanwhile
        must not lose its taint.
        """
        async with self._node_locks[decision.node]:
            now = self._store.node_view(decision.node, now_s=self._clock.wall())
            if now.ledger_version != view.ledger_version:
                raise Conflict(
                    f"the ledger of node {decision.node} changed since it was looked at", status=409
                )
            if decision.tainted:
                await self._ledgers.save_node(decision.ledger, version=view.ledger_version)
                await self._taint(decision.node, view.node.uid, decision.ledger)
            else:
                await self._untaint(decision.node, view.node.uid)
                await self._ledgers.save_node(decision.ledger, version=view.ledger_version)

    async def _attempt(self, action: Action) -> Failure | None:
        try:
            await self._perform(action)
        except MindieHaError as error:
            return Failure(action, error)
        return None

    async def _perform(self, action: Action) -> None:
        match action:
            case DeletePod(key=key, uid=uid, grace_s=grace_s):
                await self._writer.delete_pod(key, uid=uid, grace_s=grace_s)
            case IsolateNode():
                await self._isolate(action)
            case AdoptPodGroup(key=key, uid=uid):
                name, value = ADOPTION
                await self._writer.annotate_podgroup(key, uid=uid, name=name, value=value)
            case GrantRetries(entry=entry, job_uid=job_uid, times=times):
                await self._writer.change_config_map(
                    ObjectKey(RETRIES_NAMESPACE, RETRIES_NAME),
                    name=RETRIES_KEY,
                    change=lambda text: granted(text, entry=entry, job_uid=job_uid, times=times),
                    labels=RETRIES_LABELS,
                )

    async def _isolate(self, action: IsolateNode) -> None:
        """Add one isolation to the node's ledger, then set the taint. Others may add theirs meanwhile."""
        async with self._node_locks[action.node]:
            for attempt in range(ISOLATE_ATTEMPTS):
                before, version = self._node_ledger(action)
                ledger = merge(before, action.isolation)
                try:
                    if ledger != before:
                        await self._ledgers.save_node(ledger, version=version)
                    break
                except Conflict:
                    if attempt + 1 == ISOLATE_ATTEMPTS:
                        raise
            if action.node_uid:  # a node that is gone cannot carry a taint; its ledger entry still stands
                await self._taint(action.node, action.node_uid, ledger)

    async def _taint(self, node: str, uid: str, ledger: NodeLedger) -> None:
        taint = Taint(TAINT_ISOLATED, "NoSchedule", _value(ledger))
        await self._writer.set_taint(node, uid=uid, taint=taint, present=True)

    async def _untaint(self, node: str, uid: str) -> None:
        if uid:
            taint = Taint(TAINT_ISOLATED, "NoSchedule")
            await self._writer.set_taint(node, uid=uid, taint=taint, present=False)

    def _node_ledger(self, action: IsolateNode) -> tuple[NodeLedger, str]:
        view = self._store.node_view(action.node, now_s=self._clock.wall())
        if view.ledger is not None and view.ledger.node_uid == action.node_uid:
            return view.ledger, view.ledger_version
        return NodeLedger(node=action.node, node_uid=action.node_uid), view.ledger_version


def merge(ledger: NodeLedger, isolation: Isolation) -> NodeLedger:
    """The ledger with `isolation` in it; one that stands already gains the new wishes and codes."""
    kept = []
    for standing in ledger.isolations:
        if standing.id != isolation.id:
            kept.append(standing)
            continue
        isolation = standing.model_copy(
            update={
                "wanted_by": tuple(dict.fromkeys((*standing.wanted_by, *isolation.wanted_by))),
                "codes": tuple(dict.fromkeys((*standing.codes, *isolation.codes))),
                "until": isolation.until,
                "healed_since_s": None,
            }
        )
    return ledger.model_copy(update={"isolations": (*kept, isolation)})


def _value(ledger: NodeLedger) -> str:
    """The taint's value: the bounded reason of the first isolation, for people who read the node."""
    return ledger.isolations[0].reason if ledger.isolations else ""
