"""Pod objects -> faults: a program that ended, a pod that the platform ended, a crash loop.

A pod that terminates is nobody's fault: somebody already acts on it. Under `restartPolicy` Always or
OnFailure the kubelet restarts containers by itself; then only a crash loop is a fault, except that ranks
of one instance live and die together: one restarted container makes the whole instance new.
A pod of a service that ended with 0 serves no more; it acts while its owner still runs others, and is only
shown when everything ended, because then the owner is finished and makes no new pods.

Source: rescheduling contract D1-D6, §1.1; fault input contract §1.9; cases 067-077.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.workloads import Role, Workload

CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"

# status.reason of a pod that the platform ended: its program did not fail, so it costs no retry.
_ENDED_BY_PLATFORM = frozenset(
    {"Evicted", "Preempting", "NodeShutdown", "Terminated", "NodeLost", "NodeAffinity"}
    | {"UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods"}
)


def pod_faults(workload: Workload, pods: Iterable[Pod], *, now_s: float) -> tuple[Fault, ...]:
    """At most one fault for each pod of `workload`."""
    listed = tuple(pods)
    others_live = any(pod.alive for pod in listed)
    found = (_pod_fault(workload, pod, others_live=others_live, now_s=now_s) for pod in listed)
    return tuple(fault for fault in found if fault is not None)


def _pod_fault(workload: Workload, pod: Pod, *, others_live: bool, now_s: float) -> Fault | None:
    if pod.terminating:
        return None
    if pod.phase is PodPhase.FAILED:
        return _failed(pod, now_s=now_s)
    if pod.phase is PodPhase.SUCCEEDED:
        if workload.role is Role.TRAINING:
            return None
        evidence = f"pod {pod.key} ended with exit code 0" + (
            "" if others_live else "; its owner is finished and makes no new pods"
        )
        return _fault(pod, Cause.POD_FAILED, evidence, now_s=now_s, acts=others_live)
    if pod.waiting_reason == CRASH_LOOP_BACK_OFF:
        evidence = f"pod {pod.key} waits in {CRASH_LOOP_BACK_OFF} after {pod.restarts} restarts"
        return _fault(pod, Cause.CRASH_LOOP, evidence, now_s=now_s)
    return _container_fault(workload, pod, now_s=now_s)


def _failed(pod: Pod, *, now_s: float) -> Fault:
    if pod.status_reason in _ENDED_BY_PLATFORM:
        evidence = f"pod {pod.key} was ended by the platform: {pod.status_reason}"
        return _fault(pod, Cause.POD_EVICTED, evidence, now_s=now_s)
    code = "unknown" if pod.exit_code is None else str(pod.exit_code)
    evidence = f"pod {pod.key} is Failed, exit code {code} {pod.status_reason}".rstrip()
    return _fault(pod, Cause.POD_FAILED, evidence, now_s=now_s)


def _container_fault(workload: Workload, pod: Pod, *, now_s: float) -> Fault | None:
    """A container that ended while its pod goes on."""
    if workload.restart_policy in ("Always", "OnFailure"):
        together = workload.ranks_together and workload.replicas > 1
        if not (together and pod.restarts > 0):
            return None
        evidence = f"pod {pod.key} restarted a container; the ranks of an instance start together"
        return _fault(pod, Cause.POD_FAILED, evidence, now_s=now_s)
    if pod.exit_code in (None, 0):
        return None
    evidence = f"a container of pod {pod.key} ended with exit code {pod.exit_code}"
    return _fault(pod, Cause.POD_FAILED, evidence, now_s=now_s)


def _fault(pod: Pod, cause: Cause, evidence: str, *, now_s: float, acts: bool = True) -> Fault:
    return Fault(
        source=FaultSource.POD,
        cause=cause,
        node=pod.node,
        pod_uid=pod.uid,
        pod=pod.key.name,
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=evidence,
        acts=acts,
    )
