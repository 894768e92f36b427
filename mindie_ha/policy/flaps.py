"""Nodes that stop being Ready again and again, each time too shortly to be a fault.

Nothing is deleted because of a flap: NotReady has to last. But somebody should look at such a node, so
several losses in a row are told once; a long quiet time starts the count anew. Counts are kept in memory
only, since nothing but a notice depends on them.

Source: case 073.
"""

from __future__ import annotations

from dataclasses import replace

from mindie_ha.model.decisions import Notice
from mindie_ha.model.nodes import Losses, Node

TOLD_AFTER = 3
QUIET_S = 600.0  # so long without a loss ends a streak


def counted(old: Node | None, new: Node, *, now_s: float) -> Losses:
    """The losses of `new`, which follows `old` (another object of the same name counts anew)."""
    if old is None or old.uid != new.uid:
        return Losses()
    if new.ready or not old.ready:
        return old.losses
    if not old.losses.count or now_s - old.losses.last_s > QUIET_S:
        return Losses(1, now_s, now_s)
    return replace(old.losses, count=old.losses.count + 1, last_s=now_s)


def notices(node: Node, *, now_s: float) -> tuple[Notice, ...]:
    """What people are told of a node that flaps: one notice for a whole streak."""
    losses = node.losses
    if losses.count < TOLD_AFTER or now_s - losses.last_s > QUIET_S:
        return ()
    message = (
        f"{node.name}: stopped being Ready {TOLD_AFTER} times or more, {QUIET_S:g} s or less apart; nothing "
        "is deleted because of it, but the node should be looked at"
    )
    return (Notice("NodeFlaps", message, warning=True, key=f"flaps:{node.name}:{losses.since_s:.0f}"),)
