"""The normalised fault record: the one shape that every source is brought to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.model.ids import PodUID


class FaultSource(StrEnum):
    """Who said so."""

    DEVICE = "device"  # device plugin ConfigMap
    SWITCH = "switch"
    NODE_INFO = "node-info"  # NodeD
    NODE = "node"  # Node object
    POD = "pod"  # Pod object
    PUBLIC = "public"
    MEMBER = "member"  # a member vanished or was replaced without us


class Cause(StrEnum):
    """Bounded reasons; the vocabulary of metrics, Events and `why`."""

    CHIP_UNHEALTHY = "ChipUnhealthy"
    CHIP_FAULT_LISTED = "ChipFaultListed"  # recorded, not acted on
    NETWORK_UNHEALTHY = "NetworkUnhealthy"  # recorded, not acted on
    PUBLIC_FAULT = "PublicFault"
    NODE_NOT_READY = "NodeNotReady"
    NODE_GONE = "NodeGone"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"  # ended by the platform, not by its program
    CRASH_LOOP = "CrashLoop"
    MEMBER_REPLACED = "MemberReplaced"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. Times are wall time in seconds."""

    source: FaultSource
    cause: Cause
    node: str = ""
    device: str = ""
    pod_uid: PodUID | None = None
    pod: str = ""
    codes: tuple[str, ...] = ()
    level: str = ""
    first_seen_s: float = 0.0
    last_seen_s: float = 0.0
    evidence: str = ""  # one line a person can check, naming the object it was read from
    acts: bool = True  # False: recorded and shown only

    @property
    def software(self) -> bool:
        """Whether answering it is paid from `fault-retry-times`."""
        return self.cause in (Cause.POD_FAILED, Cause.CRASH_LOOP)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes two reports the same fault."""
        return (self.source, self.node, self.device or (self.pod_uid or ""), self.cause)
