"""Node objects -> faults: lost for long enough, or gone.

NotReady must last (a kubelet that pauses for seconds is no failure); until then the fault is recorded and
the time at which it would act is named. A Node object that vanished acts at once: nobody re-creates it for
a machine that merely paused. Source: design §5.3; fault input contract §5; cases 069, 073.
"""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.nodes import Node
from mindie_ha.model.settings import FaultSettings

UNHEALTHY_MARK = "UnHealthy"


def node_fault(node: Node, *, settings: FaultSettings, now_s: float) -> tuple[Fault | None, float | None]:
    """The node's fault, and when a fault that does not act yet will."""
    if not node.exists:
        return _fault(node, Cause.NODE_GONE, since_s=now_s, now_s=now_s, evidence="no Node object"), None
    if node.ready:
        return None, None
    since_s = now_s if node.not_ready_since_s is None else node.not_ready_since_s
    acts_at_s = since_s + settings.node_not_ready_s
    evidence = f"Node condition Ready is not True ({node.ready_reason or 'no reason given'})"
    acts = now_s >= acts_at_s
    fault = _fault(node, Cause.NODE_NOT_READY, since_s=since_s, now_s=now_s, evidence=evidence, acts=acts)
    return fault, None if acts else acts_at_s


def mark_fault(node: Node, *, now_s: float) -> Fault | None:
    """The fault that annotation `NodeHealthyStatus` stands for; it stays until a person removes it.

    Only the exact word counts: an annotation is free text, and a typing error must not empty a node.
    """
    if node.healthy_status != UNHEALTHY_MARK:
        return None
    evidence = f"Node annotation NodeHealthyStatus is {UNHEALTHY_MARK}; remove it once the node is well"
    fault = _fault(node, Cause.NODE_MARKED, since_s=now_s, now_s=now_s, evidence=evidence)
    fact = CodeFact("", Level.UNEXPLAINED, Family.NODE_MARK, listed=True, first_seen_s=now_s)
    return replace(fault, details=(fact,))


def _fault(
    node: Node, cause: Cause, *, since_s: float, now_s: float, evidence: str, acts: bool = True
) -> Fault:
    return Fault(
        source=FaultSource.NODE,
        cause=cause,
        node=node.name,
        first_seen_s=since_s,
        last_seen_s=now_s,
        evidence=evidence,
        acts=acts,
    )
