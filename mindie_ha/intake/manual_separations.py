"""The keys `ManuallySeparateNPU` and `UpgradeFaultReason` beside the device report.

The first is a person's word (or a counter's that only a person takes back): the card gets no new work. It is
not covered by the checksum and is read by itself, so it counts even where the report beside it is refused;
but it never restarts what runs: the plugin says so in the report when it means that. The second only
explains, and is treated as absent when malformed.

Source: fault input contract §1.5, §8.2 item 30; vector V32; case 031.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.intake import bodies, device_lists
from mindie_ha.intake.stamps import to_seconds
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.levels import Family, Level, parse_level

KEY = "ManuallySeparateNPU"
KEY_REASONS = "UpgradeFaultReason"
_ENDS_IN_ID = re.compile(r".+-[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class UpgradeReason:
    """Why a counter raised the level of a card. `kind`: FaultFrequency, FaultDuration, FaultAutofill."""

    device: str
    code: str
    level: Level
    kind: str
    at_s: float


def parse(node: str, data: Mapping[str, str], *, now_s: float) -> tuple[Fault, ...]:
    """One recorded fault for each named card. Raises InputError for malformed names."""
    where = f"mindx-dl-deviceinfo-{node}[{KEY}]"
    text = data.get(KEY, "")
    if not text.strip():
        return ()
    named = sorted(set(map(device_lists.physical_name, device_lists.split_names(text, where=where))))
    why = reasons(data.get(KEY_REASONS, ""), where=f"mindx-dl-deviceinfo-{node}[{KEY_REASONS}]")
    return tuple(_fault(node, device, why.get(device, ()), now_s=now_s) for device in named)


def reasons(text: str, *, where: str) -> dict[str, tuple[UpgradeReason, ...]]:
    """Reasons by card; empty where the text cannot be read as a whole."""
    if not text.strip():
        return {}
    try:
        root = bodies.parse_object(text, where=where)
    except InputError:
        return {}
    found: dict[str, tuple[UpgradeReason, ...]] = {}
    for device, items in list(root.items())[: device_lists.MAX_DEVICES]:
        if not _ENDS_IN_ID.match(device) or not isinstance(items, list):
            return {}
        found[device] = tuple(
            _reason(device, item) for item in items[: device_lists.MAX_CODES] if isinstance(item, dict)
        )
    return found


def _reason(device: str, item: Mapping[str, object]) -> UpgradeReason:
    def text(name: str) -> str:
        value = item.get(name)
        return value[:64] if isinstance(value, str) else ""

    return UpgradeReason(
        device=device,
        code=text("fault_code").strip(),
        level=parse_level(text("fault_level")),
        kind=text("upgrade_type"),
        at_s=to_seconds(item.get("upgrade_time")),
    )


def _fault(node: str, device: str, why: tuple[UpgradeReason, ...], *, now_s: float) -> Fault:
    told = ", ".join(f"{reason.code} by {reason.kind}" for reason in why[:3]) or "no reason given"
    return Fault(
        source=FaultSource.DEVICE,
        cause=Cause.CHIP_SEPARATED,
        node=node,
        device=device,
        codes=tuple(dict.fromkeys(reason.code for reason in why if reason.code)),
        level=Level.MANUALLY_SEPARATE,
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=f"ConfigMap mindx-dl-deviceinfo-{node}, key {KEY}: {told}",
        acts=False,
        details=(
            CodeFact(device_lists.MANUAL_CODE, Level.MANUALLY_SEPARATE, Family.CHIP, first_seen_s=now_s),
        ),
    )
