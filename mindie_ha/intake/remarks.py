"""What people should be told about one workload beside its faults: notices that decide nothing.

A sub-health strategy that is not served as it is named, silence windows that cannot be read, nodes whose
device report is too old. Each notice has a key, so that it is told once while it stands.

Source: fault input contract §1.6, §4.4; rescheduling contract §2.4; cases 029, 049, 141.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mindie_ha.model.decisions import Notice
from mindie_ha.model.faults import Fault
from mindie_ha.model.levels import Level
from mindie_ha.model.views import NodeView
from mindie_ha.model.workloads import Workload
from mindie_ha.policy.effects import (
    FORCE_EXIT,
    GRACE_EXIT,
    HOT_SWITCH,
    IGNORE,
    LABEL_STRATEGY,
    Effect,
    row_of,
)

MAX_FINDINGS = 3
_KNOWN = ("", IGNORE, GRACE_EXIT, FORCE_EXIT, HOT_SWITCH)


def remarks(
    workload: Workload, *, findings: Iterable[str], faults: Iterable[Fault], nodes: Mapping[str, NodeView]
) -> tuple[Notice, ...]:
    """All notices; `findings` are those of its silence windows, `nodes` those under its pods."""
    return (
        *_silences(workload, tuple(findings)),
        *_strategy(workload, sick=any(map(_is_sub_health, faults))),
        *_unreported(workload, nodes),
    )


def _silences(workload: Workload, findings: tuple[str, ...]) -> Iterator[Notice]:
    if findings:
        message = f"{workload.key}: {'; '.join(findings[:MAX_FINDINGS])}"
        yield Notice("SilenceWindowRefused", message, warning=True, key=f"silence:{workload.uid}")


def _strategy(workload: Workload, *, sick: bool) -> Iterator[Notice]:
    strategy = workload.labels.get(LABEL_STRATEGY, "")
    label = f"{workload.key}: label {LABEL_STRATEGY} is {strategy[:63]!r}"
    if strategy not in _KNOWN:
        message = f"{label}: no known strategy; sub-health is only recorded, as with {IGNORE}"
        yield Notice("SubHealthStrategyUnknown", message, warning=True, key=f"strategy:{workload.uid}")
    elif strategy == HOT_SWITCH and sick:
        message = (
            f"{label}: hot switching is not served yet; the sub-health is only recorded, as with {IGNORE}"
        )
        yield Notice("HotSwitchNotServed", message, warning=True, key=f"strategy:{workload.uid}")


def _unreported(workload: Workload, nodes: Mapping[str, NodeView]) -> Iterator[Notice]:
    for name, view in sorted(nodes.items()):
        if view.unreported and view.node.exists:
            message = f"{workload.key}: node {name} is unreported: {view.unreported.partition(';')[0]}"
            yield Notice("NodeUnreported", message, warning=True, key=f"unreported:{workload.uid}:{name}")


def _is_sub_health(fault: Fault) -> bool:
    return any(
        fact.level is Level.SUB_HEALTH and row_of(fact.family, fact.level).inference is Effect.STRATEGY
        for fact in fault.details
    )
