"""Injected faults: what the Node annotation `sim.mindie-ha.io/faults` says.

A JSON list; each entry is a chip fault `{"device": "Ascend910-3", "code": "80E18005", "level":
"SeparateNPU"}` (optional `"network": true` for the parameter plane) or `{"node": "NotReady"}`. Empty or
absent heals. An entry that cannot be understood is left out and reported; the others count.
The health rules are those of the Device Plugin (fault inputs contract §2.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mindie_ha.sim.actors.documents import load_json, text

FAULTS = "sim.mindie-ha.io/faults"

SEVERITY = (
    "NormalNPU", "NotHandleFault", "SubHealthFault", "RestartRequest", "RestartBusiness", "FreeRestartNPU",
    "RestartNPU", "PreSeparateNPU", "SeparateNPU", "ManuallySeparateNPU",
)  # fmt: skip
"""Chip fault levels from mild to grave."""

NETWORK_CODES = frozenset({"81078603"})
_DEVICE = re.compile(r"[A-Za-z0-9]+-\d+")
_CODE = re.compile(r"[0-9A-F]{8,9}")


@dataclass(frozen=True, slots=True)
class ChipFault:
    """One active code on one card."""

    device: str
    code: str
    level: str
    network: bool = False


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """Everything injected on one node, and what could not be understood."""

    chips: tuple[ChipFault, ...] = ()
    not_ready: bool = False
    problems: tuple[str, ...] = ()


def parse_faults(raw: str) -> NodeFaults:
    """Read the annotation; never raises."""
    if not raw.strip():
        return NodeFaults()
    document = load_json(raw)
    if not isinstance(document, list):
        return NodeFaults(problems=(f"annotation {FAULTS} is not a JSON list; it is ignored",))
    chips: list[ChipFault] = []
    problems: list[str] = []
    not_ready = False
    for index, entry in enumerate(document):
        if isinstance(entry, dict) and entry.get("node") == "NotReady":
            not_ready = True
            continue
        fault = _chip(entry)
        if isinstance(fault, ChipFault):
            chips.append(fault)
        else:
            problems.append(f"entry {index} of annotation {FAULTS} is ignored: {fault}")
    return NodeFaults(tuple(dict.fromkeys(chips)), not_ready, tuple(problems))


def _chip(entry: object) -> ChipFault | str:
    device, code, level = (text(entry, key) for key in ("device", "code", "level"))
    code = code.upper()
    if not _DEVICE.fullmatch(device):
        return 'needs "device" such as "Ascend910-3", or "node": "NotReady"'
    if not _CODE.fullmatch(code):
        return 'needs "code" of 8 or 9 hexadecimal digits, such as "80E18005"'
    if level not in SEVERITY[1:]:
        return f'needs "level", one of {", ".join(SEVERITY[1:])}'
    network = entry.get("network") if isinstance(entry, dict) else None
    return ChipFault(device, code, level, network is True or code in NETWORK_CODES)


def gravest(levels: list[str]) -> str:
    """The maximum of some levels."""
    return max(levels, key=SEVERITY.index, default="NormalNPU")


def chip_is_unhealthy(level: str, *, in_use: bool) -> bool:
    """Whether a card with this level goes into the `-Unhealthy` list."""
    if level in {"NormalNPU", "NotHandleFault", "SubHealthFault"}:
        return False
    return not (level == "PreSeparateNPU" and in_use)


def network_is_unhealthy(level: str) -> bool:
    """Whether a card with this level of a parameter-plane fault goes into `-NetworkUnhealthy`."""
    return level not in {"NormalNPU", "NotHandleFault"}


__all__ = [
    "FAULTS", "SEVERITY", "ChipFault", "NodeFaults", "chip_is_unhealthy", "gravest", "network_is_unhealthy",
    "parse_faults",
]  # fmt: skip
