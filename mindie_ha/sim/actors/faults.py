"""Injected faults: what the Node annotation `sim.mindie-ha.io/faults` says.

A JSON list; each entry is one of

* `{"device": "Ascend910-3", "code": "80E18005", "level": "SeparateNPU"}`, a card (optional `"network": true`
  for the parameter plane);
* `{"switch": "[0x08520003,na,npu,na]", "level": "Separate"}`, a switch in an A3 server (optional:
  `chip`, `port`);
* `{"board": "PSU", "code": "0300000D", "level": "NotHandleFault"}`, what the BMC tells NodeD (optional:
  `id`);
* `{"node": "NotReady"}`.

Empty or absent heals. An entry that cannot be understood is left out and reported; the others count.
The words for levels are those of each writer: they differ (fault inputs contract §1.5, §1.7, §2.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mindie_ha.sim.actors.documents import dig, load_json, number, text

FAULTS = "sim.mindie-ha.io/faults"

SEVERITY = (
    "NormalNPU", "NotHandleFault", "SubHealthFault", "RestartRequest", "RestartBusiness", "FreeRestartNPU",
    "RestartNPU", "PreSeparateNPU", "SeparateNPU", "ManuallySeparateNPU",
)  # fmt: skip
"""Chip fault levels from mild to grave."""

SWITCH_SEVERITY = ("", "NotHandle", "SubHealthFault", "RestartRequest", "PreSeparate", "Separate")
"""Switch fault levels from mild to grave."""

BOARD_SEVERITY = ("NotHandleFault", "PreSeparateFault", "SeparateFault")
"""Levels of NodeD from mild to grave."""

NETWORK_CODES = frozenset({"81078603"})
MAX_INDEX = 0xFFFFFFFF
_DEVICE = re.compile(r"[A-Za-z0-9]+-\d+")
_CODE = re.compile(r"[0-9A-F]{8,9}")
_SWITCH_CODE = re.compile(r"\[0x[0-9a-f]{8},(\d{1,10}|na),(cpu|npu|L2|na),na\]")
_BOARD = re.compile(r"[A-Za-z][A-Za-z0-9 ]{0,31}")
_BOARD_CODE = re.compile(r"[0-9A-Za-z]{8}")


@dataclass(frozen=True, slots=True)
class ChipFault:
    """One active code on one card."""

    device: str
    code: str
    level: str
    network: bool = False


@dataclass(frozen=True, slots=True)
class SwitchFault:
    """One active event of a switch in the server; `port` 0xFFFFFFFF is the whole chip."""

    code: str
    level: str
    chip: int = 0
    port: int = 0


@dataclass(frozen=True, slots=True)
class BoardFault:
    """One alarm of the BMC."""

    device: str
    code: str
    level: str
    id: int = 0


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """Everything injected on one node, and what could not be understood."""

    chips: tuple[ChipFault, ...] = ()
    not_ready: bool = False
    problems: tuple[str, ...] = ()
    switches: tuple[SwitchFault, ...] = ()
    boards: tuple[BoardFault, ...] = ()


@dataclass(slots=True)
class _Found:
    chips: list[ChipFault] = field(default_factory=list)
    switches: list[SwitchFault] = field(default_factory=list)
    boards: list[BoardFault] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    not_ready: bool = False


def parse_faults(raw: str) -> NodeFaults:
    """Read the annotation; never raises."""
    if not raw.strip():
        return NodeFaults()
    document = load_json(raw)
    if not isinstance(document, list):
        return NodeFaults(problems=(f"annotation {FAULTS} is not a JSON list; it is ignored",))
    found = _Found()
    for index, entry in enumerate(document):
        fault = _entry(entry)
        match fault:
            case ChipFault():
                found.chips.append(fault)
            case SwitchFault():
                found.switches.append(fault)
            case BoardFault():
                found.boards.append(fault)
            case None:
                found.not_ready = True
            case str():
                found.problems.append(f"entry {index} of annotation {FAULTS} is ignored: {fault}")
    return NodeFaults(
        chips=tuple(dict.fromkeys(found.chips)),
        not_ready=found.not_ready,
        problems=tuple(found.problems),
        switches=tuple(dict.fromkeys(found.switches)),
        boards=tuple(dict.fromkeys(found.boards)),
    )


def _entry(entry: object) -> ChipFault | SwitchFault | BoardFault | str | None:
    """The fault of one entry, None for a lost node, a text for what cannot be understood."""
    if text(entry, "node") == "NotReady":
        return None
    if text(entry, "switch"):
        return _switch(entry)
    if text(entry, "board"):
        return _board(entry)
    return _chip(entry)


def _chip(entry: object) -> ChipFault | str:
    device, code, level = (text(entry, key) for key in ("device", "code", "level"))
    code = code.upper()
    if not _DEVICE.fullmatch(device):
        return 'needs "device" such as "Ascend910-3", or "switch", or "board", or "node": "NotReady"'
    if not _CODE.fullmatch(code):
        return 'needs "code" of 8 or 9 hexadecimal digits, such as "80E18005"'
    if level not in SEVERITY[1:]:
        return f'needs "level", one of {", ".join(SEVERITY[1:])}'
    return ChipFault(device, code, level, dig(entry, "network") is True or code in NETWORK_CODES)


def _switch(entry: object) -> SwitchFault | str:
    code, level = text(entry, "switch"), text(entry, "level")
    if not _SWITCH_CODE.fullmatch(code):
        return 'needs "switch" with a code such as "[0x08520003,na,npu,na]"'
    if level not in SWITCH_SEVERITY[1:]:
        return f'needs "level", one of {", ".join(SWITCH_SEVERITY[1:])}'
    chip, port = number(entry, "chip"), number(entry, "port")
    if not (0 <= chip <= MAX_INDEX and 0 <= port <= MAX_INDEX):
        return f'needs "chip" and "port" between 0 and {MAX_INDEX}'
    return SwitchFault(code, level, chip, port)


def _board(entry: object) -> BoardFault | str:
    device, code, level = text(entry, "board"), text(entry, "code"), text(entry, "level")
    if not _BOARD.fullmatch(device):
        return 'needs "board" with a part such as "PSU"'
    if not _BOARD_CODE.fullmatch(code):
        return 'needs "code" of 8 letters and digits, such as "2C000031"'
    if level not in BOARD_SEVERITY:
        return f'needs "level", one of {", ".join(BOARD_SEVERITY)}'
    return BoardFault(device, code.upper(), level, max(0, number(entry, "id")))


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
    "BOARD_SEVERITY", "FAULTS", "SEVERITY", "SWITCH_SEVERITY", "BoardFault", "ChipFault", "NodeFaults",
    "SwitchFault", "chip_is_unhealthy", "gravest", "network_is_unhealthy", "parse_faults",
]  # fmt: skip
