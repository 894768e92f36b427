"""Performs actions. Each is fenced, preconditioned on a UID, and safe to repeat.

Actions of one decision run side by side. A failure is returned, never swallowed: the scope is looked at
again after back-off, and the planner decides anew from what is then true.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

from mindie_ha.cluster.reset_configs import gracefully_ending, rejoined
from mindie_ha.cluster.retries import granted
from mindie_ha.cluster.writer import Writer
from mindie_ha.engine.marks import Marks
from mindie_ha.engine.node_ledgers import NodeLedgers
from mindie_ha.engine.permits import Permits
from mindie_ha.model.decisions import (
    Action,
    AdoptPodGroup,
    AskRejoin,
    DeletePod,
    DiscountIsolation,
    GrantRetries,
    IsolateNode,
    LabelPod,
    NodeDecision,
    TellExit,
)
from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.ledgers import NodeLedger
from mindie_ha.model.nodes import TAINT_ISOLATED, Taint
from mindie_ha.model.views import NodeView
from mindie_ha.policy import isolating
from mindie_ha.policy.ownership import ANNOTATION_STRATEGY, STRATEGY_OURS
from mindie_ha.policy.retries import RETRY_CONFIG_MAP, RETRY_KEY

RETRIES_LABELS = {"mx-consumer-volcano": "true"}


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that did not succeed, and why."""

    action: Action
    error: MindieHaError


class Executor:
    """Runs actions through the fenced writer."""

    def __init__(self, *, writer: Writer, nodes: NodeLedgers, marks: Marks, permits: Permits) -> None:
        self._writer = writer
        self._permits = permits
        self._marks = marks
        self._nodes = nodes

    async def run(self, actions: tuple[Action, ...]) -> tuple[Failure, ...]:
        """Perform all actions in parallel; returns those that failed."""
        results = await asyncio.gather(*(self._attempt(action) for action in actions))
        return tuple(failure for failure in results if failure is not None)

    async def settle_node(self, decision: NodeDecision, *, view: NodeView) -> None:
        """Bring a node to the decision on `view`: remembered before set, taken off before forgotten.

        Raises Conflict if the node's ledger changed since `view`: an isolation that was added meanwhile
        must not lose its taint.
        """
        async with self._nodes.lock(decision.node):
            self._nodes.check(view)
            if decision.marks is not None:
                await self._marks.keep(decision.node, decision.marks)
            if decision.tainted:
                await self._nodes.save(decision.ledger, version=view.ledger_version)
                await self._taint(decision.node, view.node.uid, decision.ledger)
            else:
                await self._untaint(decision.node, view.node.uid)
                await self._nodes.save(decision.ledger, version=view.ledger_version)

    async def _attempt(self, action: Action) -> Failure | None:
        try:
            await self._perform(action)
        except MindieHaError as error:
            return Failure(action, error)
        return None

    async def _perform(self, action: Action) -> None:
        match action:
            case DeletePod(key=key, uid=uid, grace_s=grace_s):
                permit = partial(self._permits.check, action)
                await self._writer.delete_pod(key, uid=uid, grace_s=grace_s, permit=permit)
            case IsolateNode():
                await self._isolate(action)
            case DiscountIsolation():
                await self._discount(action)
            case AdoptPodGroup(key=key, uid=uid):
                await self._writer.annotate_podgroup(
                    key, uid=uid, name=ANNOTATION_STRATEGY, value=STRATEGY_OURS
                )
            case AskRejoin(key=key, retry_time=number, at_s=at_s):
                await self._writer.patch_config_map(
                    key, change=lambda data: rejoined(data, key=key, retry_time=number, at_s=at_s)
                )
            case TellExit(key=key, ending=ending, at_s=at_s):
                await self._writer.patch_config_map(
                    key, change=lambda data: gracefully_ending(data, key=key, ending=ending, at_s=at_s)
                )
            case LabelPod(key=key, uid=uid, name=name, value=value):
                await self._writer.label_pod(key, uid=uid, name=name, value=value)
            case GrantRetries(entry=entry, job_uid=job_uid, times=times):
                await self._writer.change_config_map(
                    RETRY_CONFIG_MAP,
                    name=RETRY_KEY,
                    change=lambda text: granted(text, entry=entry, job_uid=job_uid, times=times),
                    labels=RETRIES_LABELS,
                )

    async def _isolate(self, action: IsolateNode) -> None:
        """Add one isolation to the node's ledger, then set the taint. Others may add theirs meanwhile."""
        async with self._nodes.lock(action.node):
            ledger = await self._nodes.change(
                action.node,
                node_uid=action.node_uid,
                change=lambda before: isolating.merged(before, action.isolation),
            )
            taints = any(item.taints for item in ledger.isolations)
            if (
                action.node_uid and taints
            ):  # a node that is gone cannot carry a taint; its ledger entry still stands
                await self._taint(action.node, action.node_uid, ledger)

    async def _discount(self, action: DiscountIsolation) -> None:
        async with self._nodes.lock(action.node):
            await self._nodes.change(
                action.node,
                node_uid="",
                change=lambda before: isolating.discounted(before, action.isolation_id, by=action.by),
            )

    async def _taint(self, node: str, uid: str, ledger: NodeLedger) -> None:
        taint = Taint(TAINT_ISOLATED, "NoSchedule", _value(ledger))
        await self._writer.set_taint(node, uid=uid, taint=taint, present=True)

    async def _untaint(self, node: str, uid: str) -> None:
        if uid:
            taint = Taint(TAINT_ISOLATED, "NoSchedule")
            await self._writer.set_taint(node, uid=uid, taint=taint, present=False)


def _value(ledger: NodeLedger) -> str:
    """The taint's value: the bounded reason of the first isolation, for people who read the node."""
    return next((item.reason for item in ledger.isolations if item.taints), "")
