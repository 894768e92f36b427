"""The pods that a rung leaves alone: who of them runs, and whether that is certain.

Promise: while a peer's node is silent, but not long enough to count as lost, a pod that may be the last one
to serve is not deleted. Within `faults.node_not_ready_s` the node is back and the peer goes on, or it is
lost, all replicas are hit, and a wider rung follows. Source: design §5 (pod rung), §8 (3).
"""

from __future__ import annotations

from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import RUNG_POD, Recovery
from mindie_ha.policy.looks import Look
from mindie_ha.policy.records import target_uids
from mindie_ha.policy.rungs import scopes
from mindie_ha.policy.rungs.steps import Scope

WAITING_FOR_PEER = "WaitingForPeer"


def spared(look: Look, scope: Scope) -> tuple[Pod, ...]:
    """Pods outside `scope` that run and are not hit: whoever of them is active goes on serving."""
    hit = look.verdict.pods_hit
    return tuple(pod for pod in look.alive if pod.uid not in scope.uids | hit and pod.runs)


def in_doubt_until_s(look: Look, recovery: Recovery) -> float | None:
    """When it is certain whether a peer of the pod rung's targets is left; None: it is, or it does not matter
    because no target serves."""
    if recovery.rung != RUNG_POD or look.lives_together:
        return None
    targets = target_uids(recovery)
    serving = [pod for pod in look.alive if pod.uid in targets and pod.runs and _silent_s(look, pod) is None]
    silences = [_silent_s(look, pod) for pod in spared(look, scopes.named(look))]
    since_s = [silent_s for silent_s in silences if silent_s is not None]
    if not serving or not silences or len(since_s) < len(silences):
        return None
    return min(since_s) + look.settings.faults.node_not_ready_s


def _silent_s(look: Look, pod: Pod) -> float | None:
    """Since when the pod's node is not Ready; None where it is."""
    view = look.nodes.get(pod.node)
    if view is None or view.node.ready:
        return None
    return look.now_s if view.node.not_ready_since_s is None else view.node.not_ready_since_s
