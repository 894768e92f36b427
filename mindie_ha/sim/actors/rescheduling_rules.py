"""What Volcano's rescheduler concludes from labels, pods and hardware (pure).

Which pods are faulty and why, whether the job may be restarted, and which pods go. Played are generic and
super-pod jobs with the methods force, grace and external-*; not played are hot switch, sub-health strategies,
multilevel trees and the A5 variant, which no inference service uses.

Source: rescheduling contract §1.0, §2.2, §2.3, §2.5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mindie_ha.sim.actors.device_plugins import cards_of
from mindie_ha.sim.actors.documents import (
    annotations_of,
    dig,
    is_integer,
    is_terminating,
    items,
    labels_of,
    number,
    phase_of,
    text,
    uid_of,
)
from mindie_ha.sim.actors.job_objects import RANK
from mindie_ha.sim.client import Object

MODES = ("force", "grace", "external-force", "external-grace")
STRATEGY = "ProcessRecoverStrategy"
POLICY_PATH = "huawei.com/recover_policy_path"
SUPER_POD = "super-pod-rank"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
MS_APPS = frozenset({"mindie-ms-controller", "mindie-ms-coordinator"})
SUPER_POD_SESSIONS, JOB_SESSIONS = 6, 12  # sessions after which the scope widens


class FaultType(StrEnum):
    """Why a pod is faulty."""

    NODE = "NodeUnhealthy"
    CARD = "CardUnhealthy"
    RELATION = "RelationFaultSeparate"
    FAILED = "pod-failed"


@dataclass(frozen=True, slots=True)
class Hardware:
    """Nodes and cards in one session. `known`: Ready and in the device list; others count as broken."""

    known: frozenset[str] = frozenset()
    unhealthy: frozenset[str] = frozenset()
    bad_cards: Mapping[str, frozenset[str]] = field(default_factory=dict)
    first: bool = False  # the first session after a start takes no missing node for a broken one


@dataclass(frozen=True, slots=True)
class JobRules:
    """What a job's labels and annotations ask for, as they are read when its fault is first seen."""

    mode: str = ""  # one of `MODES`, or what else the label says
    retries: int = 0
    pod_limited: bool = False  # never more than the faulty pods
    pod_level: bool = False
    process_level: bool = False
    super_pods: bool = False
    by_platform: bool = False

    @property
    def external(self) -> bool:
        """Faults are only marked; somebody else deletes."""
        return self.mode.startswith("external-")

    @property
    def narrow(self) -> bool:
        """Not all pods have to be replaced for the deletion to be complete."""
        return self.pod_level or self.process_level

    @property
    def widens(self) -> bool:
        """Whether the scope grows while a replacement finds no place."""
        return self.pod_level and not self.pod_limited and not self.process_level


def rules_of(group: Object, pods: Iterable[Object]) -> JobRules:
    """The job's rules: labels of the PodGroup, then of the pods; two values of one label fit nothing."""
    found = dict(labels_of(group))
    notes = dict(annotations_of(group))
    for pod in pods:
        for key, value in labels_of(pod).items():
            if value not in found.setdefault(key, value).split("|"):
                found[key] = f"{found[key]}|{value}"
        if POLICY_PATH in annotations_of(pod):
            notes.setdefault(POLICY_PATH, annotations_of(pod)[POLICY_PATH])
        if "sp-block" in annotations_of(pod):
            notes.setdefault("sp-block", annotations_of(pod)["sp-block"])
    retries = found.get("fault-retry-times", "")
    return JobRules(
        mode=found.get("fault-scheduling", "off"),
        retries=int(retries) if is_integer(retries) else 0,
        pod_limited=found.get("app") in MS_APPS
        or "ome.io/inferenceservice" in found
        or notes.get(POLICY_PATH) == "pod",
        pod_level=found.get("pod-rescheduling") == "on",
        process_level=found.get("process-recover-enable") == "on",
        super_pods="sp-block" in notes,
        by_platform=STRATEGY in annotations_of(group),
    )


def fault_of(pod: Object, hardware: Hardware, rules: JobRules) -> FaultType | None:
    """Why the pod is faulty, by the first rule that fits."""
    node = text(pod, "spec", "nodeName")
    if not node:
        return None
    if node in hardware.unhealthy:
        return FaultType.NODE
    if hardware.bad_cards.get(node, frozenset()) & set(cards_of(pod)):
        return FaultType.CARD
    if node not in hardware.known and not hardware.first:
        return FaultType.NODE
    if rules.retries and has_failed(pod):
        return FaultType.FAILED
    return FaultType.RELATION if labels_of(pod).get("fault-type") == "Separate" else None


def has_failed(pod: Object) -> bool:
    """The pod is Failed, or a container of it ever ended with an exit code other than 0."""
    codes = (
        dig(status, "lastState", "terminated", "exitCode")
        for status in items(pod, "status", "containerStatuses")
    )
    return phase_of(pod) == "Failed" or any(isinstance(code, int) and code != 0 for code in codes)


def reason_of(types: Collection[FaultType]) -> FaultType:
    """What the job's restart is charged to: hardware before software."""
    return next((one for one in FaultType if one in types), FaultType.FAILED)


def refusal(rules: JobRules, reason: FaultType, *, left: int | None) -> str:
    """Why the job may not be restarted; empty where it may. `left`: retries, None without a record."""
    if rules.mode not in MODES:
        return f"fault-scheduling {rules.mode} is not supported"
    if rules.external:
        return ""
    if rules.by_platform:
        return f"annotation {STRATEGY} is present"
    spent = rules.retries == 0 or left is None or left <= 0
    return "no retry is left" if reason is FaultType.FAILED and spent else ""


def scope(
    pods: Collection[Object],
    faulty: Collection[str],
    rules: JobRules,
    *,
    sessions: int = 0,
    blocks: Collection[str] = (),
) -> tuple[Object, ...]:
    """The pods to delete. `faulty` are UIDs, `blocks` the logical super pods that they were in; `sessions`
    how long a replacement found no place."""
    hit = [pod for pod in pods if uid_of(pod) in faulty]
    if rules.pod_limited:
        return tuple(hit)
    wide = rules.super_pods and sessions >= SUPER_POD_SESSIONS
    near = [pod for pod in pods if wide and annotations_of(pod).get(SUPER_POD) in blocks]
    has_cards = any(cards_of(pod) for pod in pods)
    if has_cards and any(is_master(pod) for pod in (*hit, *near)):
        return tuple(pods)
    if rules.pod_level and sessions < JOB_SESSIONS:
        return tuple(pod for pod in pods if pod in hit or pod in near)
    return tuple(hit) if rules.process_level else tuple(pods)


def is_master(pod: Object) -> bool:
    """Rank 0 of a job with cards, unless its label says that it is a worker."""
    return number(annotations_of(pod), RANK, default=-1) == 0 and labels_of(pod).get(REPLICA_TYPE) != "worker"


def is_assigned(pod: Object) -> bool:
    """It has a node and stays."""
    return bool(text(pod, "spec", "nodeName")) and not is_terminating(pod) and phase_of(pod) != "Failed"


__all__ = [
    "JOB_SESSIONS",
    "SUPER_POD",
    "SUPER_POD_SESSIONS",
    "FaultType",
    "Hardware",
    "JobRules",
    "fault_of",
    "has_failed",
    "is_assigned",
    "reason_of",
    "refusal",
    "rules_of",
    "scope",
]
