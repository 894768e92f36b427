"""Which pods of a workload are not well: one judgement for the end of a recovery and for `status`.

A pod is well when it runs, no container of it waits to be started again, and its readinessProbe, if it has
one, passes. Coordinators differ: only the active one passes its probe, a standby answers 503 for good; so
they are well when all run and one is Ready. Without that a second replica would look broken for ever, and the
active one would be restarted for its sake.

Source: motor contract §2.3, §5; design §5.1, §5.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.workloads import Role

_ON_THE_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})


def unwell(role: Role, pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods that are waited for, in their order."""
    listed = tuple(pods)
    not_running = tuple(pod for pod in listed if not pod.runs)
    not_ready = tuple(pod for pod in listed if pod.has_readiness_probe and not pod.ready)
    if role is Role.COORDINATOR and len(not_ready) < len(listed):
        return not_running
    return tuple(pod for pod in listed if pod in not_running or pod in not_ready)


def goal(pod: Pod) -> str:
    """What an unwell pod has to become."""
    if pod.waiting_reason not in _ON_THE_WAY:
        return f"out of {pod.waiting_reason}"
    return "Ready" if pod.has_readiness_probe and pod.phase is PodPhase.RUNNING else "Running"
