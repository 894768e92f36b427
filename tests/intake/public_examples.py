"""A valid message about public faults, to be varied, and the default table of codes."""

from __future__ import annotations

from importlib import resources
from typing import Any

from mindie_ha.intake import public_codes, public_messages
from mindie_ha.intake.public_messages import Message

CODES = public_codes.parse(
    resources.files("mindie_ha.intake").joinpath("data/public_codes.json").read_text(), where="defaults"
)
SERIALS = {"SN-0001": "node-by-serial"}
T0_MS = 1_739_866_717_000
ABSENT = object()


def fault(**changes: Any) -> dict[str, Any]:
    """One valid fault; ABSENT removes a field."""
    body = {
        "faultId": "fault-0001",
        "faultType": "NPU",
        "faultCode": "220001001",
        "faultTime": T0_MS,
        "assertion": "occur",
        "faultLocation": {"npuIp": "198.51.100.7"},
        "influence": [{"nodeName": "node-1", "deviceIds": [0, 1]}],
        "description": "a chip is broken",
    }
    return _changed(body, changes)


def body(*faults: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """One valid message."""
    frame = {
        "id": "message-0001",
        "timestamp": T0_MS,
        "version": "1.0",
        "resource": "CCAE",
        "faults": list(faults) or [fault()],
    }
    return _changed(frame, changes)


def message(*faults: dict[str, Any], **changes: Any) -> Message:
    """One message, read."""
    return public_messages.read(body(*faults, **changes), codes=CODES, serials=SERIALS, where="test")


def _changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**base, **changes}.items() if value is not ABSENT}
