"""The body of `SwitchInfoCfg`: what the device plugin of an A3 server says about the switches in it (pure).

Each element of `FaultCode` is JSON in a string, and the key has no checksum. `NodeStatus` follows from the
gravest level. Source: fault inputs contract §1.5, §2.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindie_ha.sim.actors.deviceinfos import go_json
from mindie_ha.sim.actors.faults import SWITCH_SEVERITY, SwitchFault
from mindie_ha.sim.client import Object

STATUS = {
    "": "Healthy",
    "NotHandle": "Healthy",
    "SubHealthFault": "SubHealthy",
    "PreSeparate": "PreSeparate",
    "RestartRequest": "UnHealthy",
    "Separate": "UnHealthy",
}
_PEERS = {"cpu": 0, "npu": 1, "L2": 2, "na": 0xFFFF}
_MAJOR = 2
_OCCUR = 1

SwitchSeen = Mapping[SwitchFault, int]  # when each fault was first seen, in ms


def switch_info(faults: Sequence[SwitchFault], *, seen: SwitchSeen, update_time: int) -> str:
    """The text of the key."""
    level = max((fault.level for fault in faults), key=SWITCH_SEVERITY.index, default="")
    body: Object = {
        "FaultCode": [go_json(_event(fault, seen.get(fault, 0))) for fault in faults],
        "FaultLevel": level,
        "UpdateTime": update_time,
        "NodeStatus": STATUS[level],
        "FaultTimeAndLevelMap": {
            f"{fault.code}_{fault.chip}_{fault.port}": {
                "fault_time": seen.get(fault, 0),
                "fault_level": fault.level,
            }
            for fault in sorted(faults, key=lambda fault: (fault.code, fault.chip, fault.port))
        },
    }
    return go_json(body)


def _event(fault: SwitchFault, at_ms: int) -> Object:
    alarm, _, peer, _ = fault.code.strip("[]").split(",")
    return {
        "EventType": int(alarm, 16),
        "AssembledFaultCode": fault.code,
        "PeerPortDevice": _PEERS[peer],
        "PeerPortId": 0,
        "SwitchChipId": fault.chip,
        "SwitchPortId": fault.port,
        "Severity": _MAJOR,
        "Assertion": _OCCUR,
        "AlarmRaisedTime": at_ms,
    }


__all__ = ["STATUS", "SwitchSeen", "switch_info"]
