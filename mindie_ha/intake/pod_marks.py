"""Marks that others leave on a pod: label `fault-type` and annotation `huawei.com/pod-status`.

`Separate` and `SubHealth` come from correlated faults and are found nowhere else. `software` and
`retry-fault` belong to the layer of processes. The annotation is Volcano's own conclusion from nodes, cards
and exits that are read here too: it is shown, and answering it again would evade the patience with which
those are judged. Only for workloads of the infer-operator it is an order: with `external-*` Volcano marks so
that somebody else acts. A lost node stays ours to judge there too, with its patience and the fleet brake, and
a program that failed is paid from `fault-retry-times` (I2, I6).

Source: fault input contract §1.9, §4.6; rescheduling contract §1.2, §2.2; vectors D16, D17, I1, I2, I6.
"""

from __future__ import annotations

from collections.abc import Iterator

from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.levels import Family, Level, parse_level
from mindie_ha.model.pods import Pod
from mindie_ha.policy.effects import Effect, row_of

LABEL = "fault-type"
ANNOTATION = "huawei.com/pod-status"
_STATUS_PREFIX = "Unhealthy"
_NODE, _FAILED = "NodeUnhealthy", "pod-failed"
_MAX_TEXT = 63


def mark_faults(pod: Pod, *, now_s: float, conclusive: bool = False) -> Iterator[Fault]:
    """The faults that marks on one living pod stand for. `conclusive`: the annotation is an order."""
    if not pod.alive:
        return
    label = pod.labels.get(LABEL, "")
    if label:
        yield _fault(pod, Family.POD_LABEL, parse_level(label), f"label {LABEL}", label, now_s=now_s)
    status = pod.annotations.get(ANNOTATION, "")
    if not status.startswith(_STATUS_PREFIX):
        return
    if conclusive and not status.endswith(_NODE):
        yield _order(pod, status, now_s=now_s)
    else:
        yield _fault(pod, Family.POD_STATUS, Level.UNKNOWN, f"annotation {ANNOTATION}", status, now_s=now_s)


def _order(pod: Pod, status: str, *, now_s: float) -> Fault:
    return Fault(
        source=FaultSource.POD_STATUS,
        cause=Cause.POD_FAILED if status.endswith(_FAILED) else Cause.POD_MARKED,
        node=pod.node,
        pod_uid=pod.uid,
        pod=pod.key.name,
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=f"pod {pod.key}: annotation {ANNOTATION} is {status[:_MAX_TEXT]!r}",
    )


def _fault(pod: Pod, family: Family, level: Level, place: str, text: str, *, now_s: float) -> Fault:
    effect = row_of(family, level).inference
    return Fault(
        source=FaultSource.POD_MARK if family is Family.POD_LABEL else FaultSource.POD_STATUS,
        cause=Cause.POD_MARKED,
        node=pod.node,
        pod_uid=pod.uid,
        pod=pod.key.name,
        level="" if level is Level.UNKNOWN else level,
        first_seen_s=now_s,
        last_seen_s=now_s,
        evidence=f"pod {pod.key}: {place} is {text[:_MAX_TEXT]!r}",
        acts=effect is Effect.ACT,
        details=(CodeFact("", level, family, part=place, first_seen_s=now_s),),
    )
