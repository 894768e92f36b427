"""The normalised fault record: the one shape that every source is brought to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.model.ids import PodUID
from mindie_ha.model.levels import Family, Level


class FaultSource(StrEnum):
    """Who said so."""

    DEVICE = "device"  # device plugin ConfigMap
    SWITCH = "switch"
    NODE_INFO = "node-info"  # NodeD
    NODE = "node"  # Node object
    POD = "pod"  # Pod object
    POD_MARK = "pod-mark"  # label fault-type
    POD_STATUS = "pod-status"  # annotation huawei.com/pod-status
    PUBLIC = "public"
    RELATION = "relation"  # a network fault and its trigger, put together by us
    SERVICE = "service"  # a condition of a whole service
    PERSON = "person"  # somebody asked for a recovery
    MEMBER = "member"  # a member vanished or was replaced without us


class Cause(StrEnum):
    """Bounded reasons; the vocabulary of metrics, Events and `why`."""

    CHIP_UNHEALTHY = "ChipUnhealthy"
    CHIP_FAULT_LISTED = "ChipFaultListed"  # recorded, not acted on
    NETWORK_UNHEALTHY = "NetworkUnhealthy"  # recorded, not acted on
    PUBLIC_FAULT = "PublicFault"
    CHIP_SEPARATED = "ChipManuallySeparated"  # by a person or a counter; recorded, not acted on
    CHIP_RESETTING = "ChipResetting"
    SWITCH_UNHEALTHY = "SwitchUnhealthy"
    NODE_HARDWARE = "NodeHardware"  # NodeD: CPU, memory, fans, …
    NODE_MARKED = "NodeMarked"  # annotation NodeHealthyStatus
    CORRELATED = "CorrelatedFaults"  # a network fault and what it did to a process
    NODE_NOT_READY = "NodeNotReady"
    NODE_GONE = "NodeGone"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"  # ended by the platform, not by its program
    CRASH_LOOP = "CrashLoop"
    POD_MARKED = "PodMarked"  # label fault-type, annotation huawei.com/pod-status
    MEMBER_REPLACED = "MemberReplaced"
    CONTROLLER_UNSUBSCRIBED = "ControllerUnsubscribed"  # it had our tables, and stays away
    CONTROLLER_STATE_LOST = "ControllerStateLost"  # rebuilt, it does not know its servers any more
    PEER_UNLINKED = "PeerUnlinked"  # it has no link to a peer that was rebuilt
    REQUESTED = "Requested"  # a person asked for it


@dataclass(frozen=True, slots=True)
class CodeFact:
    """One code of a fault, with the level that was told for exactly this code. Wall time in seconds.

    `part` tells equal codes on one card or node apart (`chip 3 port 17`, `PSU 4`). `listed`: the writer
    itself counts the card or node as unhealthy. `told_at_s`: when it was raised, 0 if unknown.
    """

    code: str
    level: Level
    family: Family
    part: str = ""
    listed: bool = False
    first_seen_s: float = 0.0
    told_at_s: float = 0.0

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two reports of a card or node the same code."""
        return (self.family, self.part, self.code)


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
    details: tuple[CodeFact, ...] = ()  # per code; empty where the source has no codes

    @property
    def software(self) -> bool:
        """Whether answering it is paid from `fault-retry-times`."""
        return self.cause in (Cause.POD_FAILED, Cause.CRASH_LOOP)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes two reports the same fault."""
        return (self.source, self.node, self.device or (self.pod_uid or ""), self.cause)
