"""May we delete now? The gate between `isolate` and `stop`.

Seven things can hold a deletion that was already decided: a pause or window, the fleet brake, an owner that
acts first (guard), a peer that may just be lost, the time between attempts, the time that consumers need to
drop an instance gracefully (part of `not_before_s`), and others that go first (limits). Each has a name, so
that a waiting recovery can say what it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.recoveries import Recovery
from mindie_ha.policy import graceful, guards, turns
from mindie_ha.policy.holds import HELD_BY_PAUSE, HELD_BY_WINDOW
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs import peers
from mindie_ha.policy.verdicts import NODE_LOSS

HELD_BY_BRAKE = "HeldByBrake"
BACKING_OFF = "BackingOff"
STAYS_PUBLISHED = frozenset({HELD_BY_BRAKE, HELD_BY_PAUSE, HELD_BY_WINDOW})  # its pods may well be serving
HELD = STAYS_PUBLISHED | {turns.HELD_BY_LIMIT}


@dataclass(frozen=True, slots=True)
class Gate:
    """Open, or closed by a named condition."""

    condition: str = ""
    message: str = ""
    wake_at_s: float | None = None

    @property
    def open(self) -> bool:
        """Whether deletions may start."""
        return not self.condition


def gate(look: Look, recovery: Recovery) -> Gate:
    """The first thing that holds the deletions of `recovery`."""
    if look.hold.on:
        return Gate(look.hold.condition, look.hold.message, look.hold.wake_at_s)
    if look.brake.on and _asked_by_lost_nodes_only(look, recovery):
        return Gate(HELD_BY_BRAKE, "too many nodes were lost at once", look.brake.wake_at_s)
    for closed_by in (guard(look, recovery), _peer(look, recovery)):
        if not closed_by.open:
            return closed_by
    resetting_s = graceful.waits_until_s(look, recovery)
    if resetting_s is not None and look.now_s < resetting_s:
        return Gate(graceful.RESETTING, "the device plugin resets the card under the job", resetting_s)
    if look.now_s < recovery.not_before_s:
        return Gate(BACKING_OFF, "the next deletion has to wait", recovery.not_before_s)
    crowded = turns.judge(look.crowds, str(look.workload.key), now_s=look.now_s)
    return Gate(crowded.condition, crowded.message, crowded.wake_at_s)


def guard(look: Look, recovery: Recovery) -> Gate:
    """Whether somebody else is waited for, who may delete first."""
    acts_at_s = guards.acts_at_s(look, recovery)
    return Gate() if look.now_s >= acts_at_s else Gate(guards.GUARDING, guards.why(look), acts_at_s)


def _peer(look: Look, recovery: Recovery) -> Gate:
    """Whether it is not certain that a peer is left, which a deletion now would need."""
    doubt_s = peers.in_doubt_until_s(look, recovery)
    if doubt_s is None or look.now_s >= doubt_s:
        return Gate()
    return Gate(peers.WAITING_FOR_PEER, "the node of every peer is silent", doubt_s)


def _asked_by_lost_nodes_only(look: Look, recovery: Recovery) -> bool:
    if look.verdict.acting:
        return look.verdict.node_loss_only
    return recovery.intent.cause in NODE_LOSS
