"""A pod, reduced to what decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mindie_ha.model.ids import ObjectKey, PodUID


class PodPhase(StrEnum):
    """`status.phase`."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod object. `devices` are the cards it really holds (annotation `huawei.com/AscendReal`)."""

    key: ObjectKey
    uid: PodUID
    owner_uid: str  # UID of the controlling owner
    phase: PodPhase = PodPhase.PENDING
    node: str = ""
    ip: str = ""
    host_ip: str = ""
    ready: bool = False
    terminating_since_s: float | None = None
    grace_s: float | None = None  # metadata.deletionGracePeriodSeconds, else the pod's own
    termination_grace_s: float = 30.0  # spec.terminationGracePeriodSeconds
    finalizers: tuple[str, ...] = ()
    rank: int | None = None  # annotation hccl/rankIndex
    devices: tuple[str, ...] = ()
    restarts: int = 0  # over all containers
    exit_code: int | None = None  # of the first container that ended with other than 0
    waiting_reason: str = ""  # CrashLoopBackOff, ImagePullBackOff, …
    status_reason: str = ""  # Evicted, …
    has_readiness_probe: bool = False
    unschedulable: str = ""  # message of PodScheduled=False
    placement: str = ""  # digest of nodeSelector and affinity: equal for pods that ask for the same nodes
    started_at_s: float | None = None  # when it became Running
    last_restart_at_s: float | None = None
    created_at_s: float = 0.0
    job_id: str = ""
    app: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def terminating(self) -> bool:
        """Whether it carries a deletion timestamp."""
        return self.terminating_since_s is not None

    @property
    def ended(self) -> bool:
        """Whether its containers will not run again."""
        return self.phase in (PodPhase.FAILED, PodPhase.SUCCEEDED)

    @property
    def runs(self) -> bool:
        """Whether it is Running and no container waits to be started again, as all do in a crash loop."""
        return self.phase is PodPhase.RUNNING and not self.waiting_reason

    @property
    def alive(self) -> bool:
        """Whether it counts as a member: neither ended nor terminating."""
        return not self.ended and not self.terminating
