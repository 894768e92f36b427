"""What the switch, the board and the marks of a node have in common: they hit everybody on the node.

A trouble is the state of one source on one node: its faults (none when it is well) and its age. A source
that lists the node as unhealthy while none of its codes says why gets one fact that says so; otherwise the
codes decide, each by its own level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mindie_ha.intake import device_info
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.levels import Family, Level, worst
from mindie_ha.model.nodes import NodeTrouble
from mindie_ha.policy.effects import Placement, row_of


def trouble(
    node: str,
    *,
    source: FaultSource,
    cause: Cause,
    family: Family,
    facts: Iterable[CodeFact],
    listed: bool,
    updated_at_s: float,
    now_s: float,
    told_by: str,
) -> NodeTrouble:
    """The state of one source; at most one fault, which carries all codes."""
    details = list(facts)
    if listed and all(row_of(fact.family, fact.level).placement is Placement.OPEN for fact in details):
        details.append(CodeFact("", Level.UNEXPLAINED, family, listed=True, first_seen_s=now_s))
    if not details:
        return NodeTrouble(node=node, source=source, updated_at_s=updated_at_s)
    acting = [fact for fact in details if device_info.acts(fact)]
    level = worst(fact.level for fact in acting or details)
    fault = Fault(
        source=source,
        cause=cause,
        node=node,
        codes=tuple(dict.fromkeys(fact.code for fact in details if fact.code)),
        level="" if level is Level.UNEXPLAINED else level,
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=told_by,
        acts=bool(acting),
        details=tuple(details),
    )
    return NodeTrouble(node=node, source=source, faults=(fault,), updated_at_s=updated_at_s)


def continued(new: NodeTrouble, *, previous: NodeTrouble | None) -> NodeTrouble:
    """`new` with the first-seen times of what the earlier state already had."""
    earlier = previous.faults if previous is not None else ()
    return replace(new, faults=device_info.continued(new.faults, previous=earlier))
