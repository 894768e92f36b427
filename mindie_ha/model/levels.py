"""Fault levels: one scale for the spellings of every writer.

The device plugin, its switch part, NodeD, ClusterD and public faults name the same few levels differently
(`SeparateNPU`, `Separate`, `SeparateFault`). Here each is one `Level`; what a level does is decided in
`policy/effects.py`, by family. A text that nobody defines is `UNKNOWN`, never "healthy".

`rank` is the severity order of the device plugin, in which PreSeparate stands above the restart levels; it
serves to merge levels as the writers do. It must not decide what is done: a PreSeparate code hides a
restart code beside it.

Source: fault input contract §1.5, §2.1; case 047.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Family(StrEnum):
    """What a level was said about."""

    CHIP = "chip"
    NETWORK = "network"  # the parameter-plane link of a chip
    PUBLIC = "public"  # a public fault, fused into the device list
    SWITCH = "switch"
    NODE = "node"  # NodeD: board, CPU, memory, fans, …
    POD_LABEL = "pod-label"  # label `fault-type`
    POD_STATUS = "pod-status"  # annotation `huawei.com/pod-status`
    RELATION = "relation"  # a network fault together with its trigger
    NODE_MARK = "node-mark"  # annotation `NodeHealthyStatus`


class Level(StrEnum):
    """A level, spelled as the device plugin does."""

    UNKNOWN = "Unknown"  # a text that no writer defines, or a code in no table
    UNEXPLAINED = "Unexplained"  # listed as unhealthy, and no code beside it says why
    NORMAL = "NormalNPU"
    NOT_HANDLE = "NotHandleFault"
    SUB_HEALTH = "SubHealthFault"
    RESTART_REQUEST = "RestartRequest"
    RESTART_BUSINESS = "RestartBusiness"
    FREE_RESTART = "FreeRestartNPU"
    RESTART_NPU = "RestartNPU"
    PRE_SEPARATE = "PreSeparateNPU"
    SEPARATE = "SeparateNPU"
    MANUALLY_SEPARATE = "ManuallySeparateNPU"
    SOFTWARE = "software"  # pod label: a process failed
    RETRY = "retry-fault"  # pod label: a process retries a step

    @property
    def rank(self) -> int:
        """Place in the severity order of the writers; higher is worse."""
        return _RANKS[self]


_RANKS = {level: rank for rank, level in enumerate(Level)}

_SPELLINGS = {
    "NotHandle": Level.NOT_HANDLE,
    "SubHealth": Level.SUB_HEALTH,
    "PreSeparate": Level.PRE_SEPARATE,
    "PreSeparateFault": Level.PRE_SEPARATE,
    "RestartRequestFault": Level.RESTART_REQUEST,
    "Separate": Level.SEPARATE,
    "SeparateFault": Level.SEPARATE,
    "Reset": Level.SEPARATE,  # old switch level, merged into Separate
    "ResetFault": Level.SEPARATE,
}
_OURS = (Level.UNKNOWN, Level.UNEXPLAINED)


def parse_level(text: str) -> Level:
    """The level that `text` names in any writer's spelling; UNKNOWN for everything else."""
    text = text.strip()
    if text in _SPELLINGS:
        return _SPELLINGS[text]
    try:
        level = Level(text)
    except ValueError:
        return Level.UNKNOWN
    return Level.UNKNOWN if level in _OURS else level


def worst(levels: Iterable[Level], *, default: Level = Level.NORMAL) -> Level:
    """The highest of `levels` in the writers' order."""
    return max(levels, key=lambda level: level.rank, default=default)
