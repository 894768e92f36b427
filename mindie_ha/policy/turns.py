"""How many recoveries may delete at the same time, of one service and of the cluster. Pure.

A recovery takes a place from its first deletion until it closes, waits under a named condition, or its phase
is overdue; so a place always comes free, whatever became of who took it. Who wants one queues up in its
ledger (`HeldByLimit`), and the oldest goes first. A recovery that waits for something else does not queue, so
it keeps nobody waiting.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mindie_ha.model.recoveries import Phase, Recovery
from mindie_ha.model.views import Turn
from mindie_ha.policy.holds import Hold

HELD_BY_LIMIT = "HeldByLimit"
LOOK_AGAIN_S = 10.0  # an owner that takes its workload away tells nobody who waits
PATIENCE_S = 600.0  # a phase without a deadline holds its place for so long
_BEFORE = (Phase.ISOLATE, Phase.BACKOFF)
_DELETING = (Phase.STOP, Phase.GONE)


@dataclass(frozen=True, slots=True)
class Crowd:
    """The open recoveries among which at most `limit` may delete."""

    limit: int
    turns: tuple[Turn, ...]
    where: str


def turn_of(workload: str, recovery: Recovery) -> Turn:
    """An open recovery as the limits see it."""
    moves = recovery.phase in _DELETING or not recovery.condition
    until_s = recovery.deadline_s if recovery.deadline_s is not None else recovery.phase_since_s + PATIENCE_S
    return Turn(
        workload=workload,
        opened_at_s=recovery.opened_at_s,
        acts_until_s=until_s if moves and recovery.phase not in _BEFORE else None,
        queues=recovery.condition == HELD_BY_LIMIT,
    )


def judge(crowds: Iterable[Crowd], workload: str, *, now_s: float) -> Hold:
    """What keeps the deletions of `workload` waiting for a place. Who is not recorded as queueing has to be
    first: two that open at the same time could not see each other."""
    for crowd in crowds:
        others = [turn for turn in crowd.turns if turn.workload != workload]
        own = next((turn for turn in crowd.turns if turn.workload == workload and turn.queues), None)
        ends = [
            turn.acts_until_s
            for turn in others
            if turn.acts_until_s is not None and turn.acts_until_s > now_s
        ]
        older = [turn for turn in others if own is not None and turn.queues and _order(turn) < _order(own)]
        if own is None or len(ends) + len(older) >= crowd.limit:
            message = f"at most {crowd.limit} at the same time in {crowd.where}, the oldest first"
            return Hold(HELD_BY_LIMIT, message, min((*ends, now_s + LOOK_AGAIN_S)))
    return Hold()


def _order(turn: Turn) -> tuple[float, str]:
    return turn.opened_at_s, turn.workload
