"""Cards that we keep free by telling ClusterD of a public fault: the message that says so. Pure.

One ConfigMap for each node holds the whole truth: `occur` for every card that is to be kept free, `recover`
for those that were. ClusterD never takes an `occur` for a fault that it knows, so every new occurrence has a
name of its own; a deleted ConfigMap recovers nothing, so it stays, with the newest recoveries in it.

Source: fault input contract §3.1-3.3, §8.2 item 10.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set

from mindie_ha.intake import bodies
from mindie_ha.intake.public_messages import EARLIEST_MS, VERSION, Assertion
from mindie_ha.model.errors import InputError

MAX_RECOVERED = 40
Reported = dict[str, object]


def marked(
    text: str | None, *, node: str, devices: Set[str], resource: str, code: str, now_s: float
) -> str | None:
    """The message with exactly `devices` kept free, on top of the one that stands; None: it says so already.

    What stands and cannot be read is replaced.
    """
    known = _known(text)
    now_ms = max(EARLIEST_MS, int(now_s * 1000))
    numbers = {int(device.rpartition("-")[2]) for device in devices}
    standing = {number for number, one in known if one.get("assertion") == Assertion.OCCUR}
    if standing == numbers:
        return None
    after: list[Reported] = []
    for number, one in known:
        ends = one.get("assertion") == Assertion.OCCUR and number not in numbers
        after.append({**one, "assertion": str(Assertion.RECOVER)} if ends else one)
    after += [_occurrence(node, number, code=code, now_ms=now_ms) for number in sorted(numbers - standing)]
    recovered = [one for one in after if one.get("assertion") != Assertion.OCCUR]
    kept = [one for one in after if one.get("assertion") == Assertion.OCCUR]
    message = {
        "id": f"mindie-ha-{_short(node)}-{now_ms}",
        "timestamp": now_ms,
        "version": VERSION,
        "resource": resource,
        "faults": [*recovered[-MAX_RECOVERED:], *kept],
    }
    return json.dumps(message, separators=(",", ":"))


def _known(text: str | None) -> list[tuple[int, Reported]]:
    """The faults of the message that stands, by card."""
    try:
        body = bodies.parse_object(text or "{}", where="mark")
    except InputError:
        return []
    listed = body.get("faults")
    items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return [(number, item) for item in items if (number := _number(item)) is not None]


def _number(item: Mapping[str, object]) -> int | None:
    influence = item.get("influence")
    if not isinstance(influence, list) or len(influence) != 1 or not isinstance(influence[0], dict):
        return None
    ids = influence[0].get("deviceIds")
    return ids[0] if isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], int) else None


def _occurrence(node: str, number: int, *, code: str, now_ms: int) -> Reported:
    return {
        "faultId": f"mindie-ha-{_short(node)}-{number}-{now_ms}",
        "faultType": "NPU",
        "faultCode": code,
        "faultTime": now_ms,
        "assertion": str(Assertion.OCCUR),
        "influence": [{"nodeName": node, "deviceIds": [number]}],
        "description": "kept free by mindie-ha, see mindie-ha faults",
    }


def _short(node: str) -> str:
    return hashlib.sha256(node.encode()).hexdigest()[:10]
