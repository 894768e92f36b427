"""Performs actions. Each is fenced, preconditioned on a UID, and safe to repeat.

Actions of one decision run side by side. A failure is returned, never swallowed: the scope is looked at
again after back-off, and the planner decides anew from what is then true.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from mindie_ha.engine.ports import Memory, Views, Writes
from mindie_ha.kit.clock import Clock
from mindie_ha.model.decisions import (
    Action,
    AdoptPodGroup,
    DeletePod,
    GrantRetries,
    IsolateNode,
    NodeDecision,
)
from mindie_ha.model.errors import ClusterError, Conflict, LeaseLost
from mindie_ha.model.ledgers import Isolation, NodeLedger

ISOLATE_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that did not succeed, and why."""

    action: Action
    error: ClusterError | LeaseLost


class Executor:
    """Runs actions through the fenced writer."""

    def __init__(self, *, views: Views, writes: Writes, memory: Memory, clock: Clock) -> None:
        self._clock = clock
        self._views = views
        self._writes = writes
        self._memory = memory
        self._node_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def run(self, actions: tuple[Action, ...]) -> tuple[Failure, ...]:
        """Perform all actions in parallel; returns those that failed."""
        results = await asyncio.gather(*(self._attempt(action) for action in actions))
        return tuple(failure for failure in results if failure is not None)

    async def settle_node(self, decision: NodeDecision, *, node_uid: str) -> None:
        """Bring a node to the decision: remembered before set, taken off before forgotten."""
        async with self._node_locks[decision.node]:
            if decision.tainted:
                await self._memory.save_node(decision.ledger)
                await self._writes.taint(decision.node, uid=node_uid, value=_value(decision.ledger))
            else:
                await self._writes.untaint(decision.node, uid=node_uid)
                await self._memory.save_node(decision.ledger)

    async def _attempt(self, action: Action) -> Failure | None:
        try:
            await self._perform(action)
        except (ClusterError, LeaseLost) as error:
            return Failure(action, error)
        return None

    async def _perform(self, action: Action) -> None:
        match action:
            case DeletePod(key=key, uid=uid, grace_s=grace_s):
                await self._writes.delete_pod(key, uid, grace_s=grace_s)
            case IsolateNode():
                await self._isolate(action)
            case AdoptPodGroup(key=key, uid=uid):
                await self._writes.adopt_podgroup(key, uid=uid)
            case GrantRetries(entry=entry, job_uid=job_uid, times=times):
                await self._writes.grant_retries(entry, job_uid=job_uid, times=times)

    async def _isolate(self, action: IsolateNode) -> None:
        """Add one isolation to the node's ledger, then set the taint. Others may add theirs meanwhile."""
        async with self._node_locks[action.node]:
            for attempt in range(ISOLATE_ATTEMPTS):
                before = self._node_ledger(action)
                ledger = merge(before, action.isolation)
                try:
                    if ledger != before:
                        await self._memory.save_node(ledger)
                    break
                except Conflict:
                    if attempt + 1 == ISOLATE_ATTEMPTS:
                        raise
            if action.node_uid:  # a node that is gone cannot carry a taint; its ledger entry still stands
                await self._writes.taint(action.node, uid=action.node_uid, value=_value(ledger))

    def _node_ledger(self, action: IsolateNode) -> NodeLedger:
        view = self._views.node_view(action.node, now_s=self._clock.wall())
        if view.ledger is not None and view.ledger.node_uid == action.node_uid:
            return view.ledger
        return NodeLedger(node=action.node, node_uid=action.node_uid)


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
