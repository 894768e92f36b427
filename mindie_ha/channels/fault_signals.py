"""What a fault message says, and its form on the wire.

Nodes stand in the order of their addresses, cards in the order of id and type, codes sorted with their
levels beside them: equal states are equal messages, and those are not sent twice. The uuid of a message is
drawn when it is sent and takes no part in that.

Source: rank table contract §5.1; fault input contract §4.7; motor contract §1.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from mindie_ha.model.health import Health, health_of, worst
from mindie_ha.wire import fault_pb2

CLUSTER_JOB_ID = "-1"


@dataclass(frozen=True, slots=True, order=True)
class FaultSubject:
    """Whose faults a stream tells: the cluster's, a service's (`<ns>/<jobID>`) or a job's (its UID)."""

    kind: Literal["cluster", "service", "job"]
    name: str = ""


CLUSTER = FaultSubject("cluster")


@dataclass(frozen=True, slots=True, order=True)
class CodeLevel:
    """One code and its level; an empty code is a fault that its source does not name."""

    code: str
    level: str


@dataclass(frozen=True, slots=True, order=True)
class SwitchCode:
    """One code of a switch, with the place on it; `time_s` is whole seconds, empty if unknown."""

    code: str
    chip: str
    port: str
    time_s: str
    level: str


@dataclass(frozen=True, slots=True, order=True)
class DeviceFaults:
    """What is wrong with one device; `device_id` is -1 for what has no number."""

    device_id: str
    device_type: str
    codes: tuple[CodeLevel, ...]
    switch: tuple[SwitchCode, ...] = ()

    @property
    def health(self) -> Health:
        """The worst of its codes."""
        return worst(health_of(each.level) for each in self.codes)


@dataclass(frozen=True, slots=True, order=True)
class NodeFaults:
    """What is wrong on one node."""

    ip: str
    name: str
    serial: str
    devices: tuple[DeviceFaults, ...]

    @property
    def health(self) -> Health:
        """The worst of its devices."""
        return worst(device.health for device in self.devices)


@dataclass(frozen=True, kw_only=True)
class FaultSignal:
    """One message, still without uuid. `generation` orders the messages of one stream."""

    job_id: str
    nodes: tuple[NodeFaults, ...]
    generation: int = 0

    @cached_property
    def digest(self) -> str:
        """Equal for messages that say the same."""
        return hashlib.sha256(self.to_wire("").SerializeToString(deterministic=True)).hexdigest()

    def to_wire(self, uuid: str) -> fault_pb2.FaultMsgSignal:
        """The message; `normal` where nothing is wrong."""
        kind = "fault" if self.nodes else "normal"
        signal = fault_pb2.FaultMsgSignal(uuid=uuid, jobId=self.job_id or CLUSTER_JOB_ID, signalType=kind)
        signal.nodeFaultInfo.extend(map(_node, self.nodes))
        return signal


class SignalPort(Protocol):
    """What the fault streams ask. Calls are cheap and never block."""

    def subject(self, job_id: str, peer_ip: str) -> FaultSubject | None:
        """Whose faults a client means; None while nobody can say."""
        ...

    def role_refusal(self, job_id: str, role: str) -> str:
        """Why `role` may not ask for this job, as a sentence; empty if it may."""
        ...

    def faults_of(self, subject: FaultSubject) -> tuple[NodeFaults, ...]:
        """What is wrong now, sorted."""
        ...


def _node(node: NodeFaults) -> fault_pb2.NodeFaultInfo:
    info = fault_pb2.NodeFaultInfo(
        nodeName=node.name, nodeIP=node.ip, nodeSN=node.serial, faultLevel=node.health
    )
    info.faultDevice.extend(map(_device, node.devices))
    return info


def _device(device: DeviceFaults) -> fault_pb2.DeviceFaultInfo:
    return fault_pb2.DeviceFaultInfo(
        deviceId=device.device_id,
        deviceType=device.device_type,
        faultCodes=[each.code for each in device.codes],
        faultLevel=device.health,
        faultLevels=[each.level for each in device.codes],
        switchFaultInfos=_switch(device.switch),
    )


def _switch(codes: Iterable[SwitchCode]) -> list[fault_pb2.SwitchFaultInfo]:
    return [
        fault_pb2.SwitchFaultInfo(
            faultCode=each.code,
            switchChipId=each.chip,
            switchPortId=each.port,
            faultTime=each.time_s,
            faultLevel=each.level,
        )
        for each in codes
    ]


__all__ = [
    "CLUSTER",
    "CLUSTER_JOB_ID",
    "CodeLevel",
    "DeviceFaults",
    "FaultSignal",
    "FaultSubject",
    "NodeFaults",
    "SignalPort",
    "SwitchCode",
]
