"""Which pods a rung replaces, when it replaces less than all: those of a set of names.

While an attempt is chosen the set is what the targets are called and what is hit now, as far as the rung
widens it; from then on it is what the targets are called, since the owner gives a name again.
"""

from __future__ import annotations

from collections.abc import Callable

from mindie_ha.model.faults import Cause
from mindie_ha.model.recoveries import Phase
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs.steps import Scope

CHOOSING = (Phase.ISOLATE, Phase.BACKOFF)
Widen = Callable[[Look, set[str]], set[str]]


def named(look: Look, *, widen: Widen = lambda _, names: names, rejoins: bool = False) -> Scope:
    """The pods of these names, and as many must stand afterwards."""
    recovery = look.view.ledger.recovery
    names = {target.name for target in recovery.targets} if recovery is not None else set()
    if recovery is None or recovery.phase in CHOOSING:
        hit = look.verdict.pods_hit
        names |= {pod.key.name for pod in look.view.pods if pod.uid in hit}
        names |= {fault.pod for fault in look.verdict.acting if fault.cause is Cause.MEMBER_REPLACED}
        names = widen(look, names)
    return Scope(
        uids=frozenset(pod.uid for pod in look.view.pods if pod.key.name in names),
        expected=len(names),
        names=frozenset(names),
        rejoins=rejoins,
    )
