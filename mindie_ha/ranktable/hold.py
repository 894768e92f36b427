"""The peer hold: a newly complete instance waits until one P and one D are complete.

Why: MS Controller force-stops a new P whose group has no D, and the reverse. After a loss of both, the
first one back must therefore not be shown alone. The hold ends after `peer_hold_s`, counted from the
completion, so that a lone half is shown in the end; and it never takes back what is already published.

An instance of unknown role, or a hybrid, is never held. While such a one is complete it might be the
peer, so it ends the hold of the others too: delaying a recovery on a guess would be worse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mindie_ha.model.ranktables import PdRole

_PEER = {PdRole.PREFILL: PdRole.DECODE, PdRole.DECODE: PdRole.PREFILL}


@dataclass(frozen=True, slots=True)
class CompleteInstance:
    """An instance that passed its checks: since when (same time base as `now_s`), and whether it is shown."""

    key: str
    role: PdRole
    complete_since_s: float
    published: bool


@dataclass(frozen=True, slots=True)
class Held:
    """An instance to leave out until `until_s`, and the sentence for people."""

    key: str
    until_s: float
    reason: str


def peer_hold(
    instances: Iterable[CompleteInstance], *, now_s: float, peer_hold_s: float = 600.0
) -> tuple[Held, ...]:
    """The instances to leave out of the table now, by key.

    A completion that lies in the future (a clock that jumped) counts as now, so no hold is longer than
    `peer_hold_s`.
    """
    complete = sorted(instances, key=lambda instance: instance.key)
    roles = {instance.role for instance in complete}
    held = []
    for instance in complete:
        peer = _PEER.get(instance.role)
        if peer is None or instance.published or roles & {peer, PdRole.HYBRID, PdRole.UNKNOWN}:
            continue
        until_s = min(instance.complete_since_s, now_s) + peer_hold_s
        if now_s < until_s:
            reason = f"complete {instance.role} waits for a complete {peer}, the consumer would stop it alone"
            held.append(Held(key=instance.key, until_s=until_s, reason=reason))
    return tuple(held)


__all__ = ["CompleteInstance", "Held", "peer_hold"]
