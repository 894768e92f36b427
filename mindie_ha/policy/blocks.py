"""Blocks of a training job that are placed, and replaced, together: racks, logical super-pods, levels.

`ra-block` and `sp-block` count chips, `huawei.com/affinity-config` counts pods (`level1=2,level2=8`). A block
is a run of ranks that begins at a multiple of its size. A size that is no multiple of a pod's chips, or not
above one pod, makes no block. Source: rescheduling contract §1.1, §2.5, S10-S25.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mindie_ha.model.pods import Pod

RA_BLOCK = "ra-block"
SP_BLOCK = "sp-block"
AFFINITY = "huawei.com/affinity-config"
MAX_CHIPS = 1_000_000


def pods_per_block(annotations: Mapping[str, str], name: str, pods: Iterable[Pod]) -> int:
    """How many pods a block of chips takes; 0 where there are no such blocks."""
    per_pod = max((len(pod.devices) for pod in pods), default=0)
    return pods_of_chips(annotations, name, per_pod=per_pod)


def pods_of_chips(annotations: Mapping[str, str], name: str, *, per_pod: int) -> int:
    """The same where the chips of a pod are known without one."""
    chips = _number(annotations.get(name, ""))
    if not chips or not per_pod or chips % per_pod:
        return 0
    size = chips // per_pod
    return size if size > 1 else 0


def pods_per_level(annotations: Mapping[str, str], level: int) -> int:
    """How many pods a block of a level takes; 0 where the level is not set or makes no block."""
    for part in annotations.get(AFFINITY, "").split(","):
        name, _, size = part.strip().partition("=")
        if name.strip() == f"level{level}":
            number = _number(size)
            return number if number > 1 else 0
    return 0


def members(pods: Iterable[Pod], names: set[str], *, size: int) -> set[str]:
    """Everybody in a block with one of `names`; pods without a rank are in no block."""
    known = [pod for pod in pods if pod.rank is not None]
    hit = {pod.rank // size for pod in known if pod.key.name in names and pod.rank is not None}
    return {pod.key.name for pod in known if pod.rank is not None and pod.rank // size in hit} | names


def _number(text: str) -> int:
    text = text.strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else 0
    return number if number <= MAX_CHIPS else 0
