"""May we turn to a wider rung, though it takes pods that serve? Only if their successors would find a place.

What is known of places is little: how many nodes of the fleet are open, and why the scheduler refuses a pod.
Each doubt counts for the peer that serves:

* a pod that is still being deleted keeps the whole gang from being placed;
* fewer open nodes than replicas are too few, since replicas stand apart;
* a replacement must be refused because of pod (anti-)affinity, so that a peer stands in its way, and some
  peer must ask for other nodes. Among pods that ask for the same, any two places for the job include one
  beside the peer, and the scheduler would have found it. Ranks of one job that are left serve nobody without
  the others, so for them this last doubt does not count.

Source: design §5.1 (place), §8 (3).
"""

from __future__ import annotations

import re

from mindie_ha.model.decisions import Notice
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Recovery
from mindie_ha.policy.looks import Look
from mindie_ha.policy.records import target_uids
from mindie_ha.policy.rungs.returning import replacements
from mindie_ha.policy.rungs.steps import Scope

NO_WIDER = "no wider rung: "  # begins the message of a recovery that waits on for that reason
RECHECK_S = 10.0  # nodes far away from the workload wake nobody
_APART = re.compile(r"pod (anti-)?affinity", re.IGNORECASE)


def why_not(look: Look, recovery: Recovery, scope: Scope, *, peers: tuple[Pod, ...]) -> str:
    """Why a wider rung could not be placed, "" where it may be tried. `peers` run and would be taken."""
    if not peers:
        return ""
    old = target_uids(recovery)
    stuck = [pod for pod in look.view.pods if pod.uid in old]
    if stuck:
        why = f"finalizer {', '.join(stuck[0].finalizers)}" if stuck[0].finalizers else "no finalizer"
        return f"{stuck[0].key.name} is still being deleted ({why}), and nothing is placed beside it"
    if look.fleet.open < look.workload.replicas:
        return f"{look.workload.replicas} pods on nodes of their own, and {look.fleet.open} nodes are open"
    return "" if look.lives_together else _no_way_around(look, recovery, scope, peers=peers)


def _no_way_around(look: Look, recovery: Recovery, scope: Scope, *, peers: tuple[Pod, ...]) -> str:
    homeless = [pod for pod in replacements(look, recovery, scope) if not pod.node]
    for pod in homeless:
        if not _APART.search(pod.unschedulable):
            return f"no peer stands in the way of {pod.key.name}"
        if all(peer.placement == pod.placement for peer in peers):
            return f"the peers of {pod.key.name} ask for the same nodes as it does"
    return ""


def told(look: Look, recovery: Recovery) -> tuple[Notice, ...]:
    """What people are told while a recovery goes on with another rung than it began with."""
    before = [record for record in recovery.history if record.rung != recovery.rung]
    if not before:
        return ()
    why = before[-1].exit or "the narrower one does not fit any more"
    message = f"{look.workload.key}: recovery {recovery.epoch} goes on with the {recovery.rung} rung: {why}"
    key = f"widened:{look.workload.uid}#{recovery.epoch}:{recovery.rung}"
    return (Notice("RungWidened", message, warning=True, key=key),)
