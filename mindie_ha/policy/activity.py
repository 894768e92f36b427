"""Which pods of an MS workload are active: facts in, one word for each pod out. Pure.

Controller: the pod from whose address a rank table stream is open, on a node that is Ready; only the leader
connects. Nobody subscribed says something only where a pod of this workload had subscribed before, and only
when we have listened long enough for it to come back. Coordinator: what its own endpoints answered; where
nothing answers, that it is Ready with a readinessProbe (a standby never passes it). PyMotor tells of both
roles by its endpoints. A pod that does not run, and one on a lost node, is neither.

Source: motor contract §1.3, §2.3, §2.7-2.8, §3.1, §9 (4); design §5.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mindie_ha.model.ids import PodUID
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.recoveries import Phase
from mindie_ha.model.roles import Activity, Inquiry, PodRole, Streams, Told
from mindie_ha.model.settings import Flavor
from mindie_ha.model.views import WorkloadView
from mindie_ha.model.workloads import Role

MS_ROLES = frozenset({Role.CONTROLLER, Role.COORDINATOR})
NOT_ASKED = Told(Activity.UNKNOWN, "nobody asked it yet", reached=False)


@dataclass(frozen=True, slots=True)
class Sources:
    """What one judgement is made from. `subscribed_before`: a pod of this workload once held a stream."""

    nodes: Mapping[str, Node]
    told: Mapping[PodUID, Told]
    streams: Streams
    subscribed_before: bool
    patience_s: float  # so long after we began to listen, silence says something
    now_s: float


def judge(role: Role, pods: Iterable[Pod], sources: Sources) -> dict[PodUID, Told]:
    """One word for each pod of an MS workload; nothing for other roles."""
    listed = tuple(pods)
    if role not in MS_ROLES:
        return {}
    return {pod.uid: _word(role, pod, listed, sources) for pod in listed}


def _word(role: Role, pod: Pod, pods: tuple[Pod, ...], sources: Sources) -> Told:
    if pod.phase is not PodPhase.RUNNING or pod.terminating:
        return Told(Activity.UNKNOWN, "it does not run", reached=False)
    if _lost(pod, sources):
        return Told(Activity.UNKNOWN, f"its node {pod.node} is lost", reached=False)
    told = sources.told.get(pod.uid, NOT_ASKED)
    if role is Role.COORDINATOR:
        return _coordinator(pod, told)
    subscribed = bool(pod.ip) and pod.ip in sources.streams.ips
    if told.reached and told.activity is not Activity.UNKNOWN:
        return replace(told, subscribed=subscribed)
    return replace(_controller(pod, pods, sources), healthy=told.healthy, subscribed=subscribed)


def _coordinator(pod: Pod, told: Told) -> Told:
    if not told.reached and pod.ready and pod.has_readiness_probe:
        return Told(Activity.ACTIVE, "it is Ready")
    return told


def _controller(pod: Pod, pods: tuple[Pod, ...], sources: Sources) -> Told:
    ips = sources.streams.ips
    if pod.ip and pod.ip in ips:
        return Told(Activity.ACTIVE, "its rank table stream is open")
    holders = [other for other in pods if other.ip and other.ip in ips]
    if holders:
        return Told(Activity.STANDBY, f"the rank table stream is that of {holders[0].key.name}")
    if ips:
        return Told(Activity.UNKNOWN, "a rank table stream is open, from an address of none of its pods")
    if not sources.subscribed_before:
        return Told(Activity.UNKNOWN, "no Controller of this job has subscribed yet", reached=False)
    if sources.now_s < sources.streams.listening_since_s + sources.patience_s:
        return Told(Activity.UNKNOWN, "we have not listened long enough for it to subscribe", reached=False)
    return Told(Activity.STANDBY, "it does not subscribe")


def _lost(pod: Pod, sources: Sources) -> bool:
    node = sources.nodes.get(pod.node)
    return node is None or not node.exists or not node.ready


def inquiry(workload: WorkloadView, *, flavor: Flavor) -> Inquiry | None:
    """What the pods of a workload are asked, None: nothing. A Controller of MindIE-Motor is asked only
    whether it is well, and only while it matters."""
    role, recovery = workload.workload.role, workload.ledger.recovery
    if role not in MS_ROLES:
        return None
    if flavor is Flavor.PYMOTOR:
        return Inquiry.LEADS
    if role is Role.COORDINATOR:
        return Inquiry.SERVES
    return Inquiry.LIVES if recovery is not None and recovery.phase is Phase.SETTLE else None


# --- readings of a judgement -------------------------------------------------------------------------------


def running(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Those that run and are not on their way out."""
    return tuple(pod for pod in pods if pod.alive and pod.phase is PodPhase.RUNNING)


def active(pods: Iterable[Pod], roles: Mapping[PodUID, PodRole]) -> tuple[Pod, ...]:
    """The active ones."""
    return tuple(pod for pod in running(pods) if _is(pod, roles, Activity.ACTIVE))


def nobody_since_s(pods: Iterable[Pod], roles: Mapping[PodUID, PodRole]) -> float | None:
    """Since when certainly nobody is active: every pod that runs is a standby. None: not certain."""
    listed = running(pods)
    if not listed or not all(_is(pod, roles, Activity.STANDBY) for pod in listed):
        return None
    return max(roles[pod.uid].since_s for pod in listed)


def _is(pod: Pod, roles: Mapping[PodUID, PodRole], activity: Activity) -> bool:
    role = roles.get(pod.uid)
    return role is not None and role.activity is activity


__all__ = ["MS_ROLES", "Sources", "active", "inquiry", "judge", "nobody_since_s", "running"]
