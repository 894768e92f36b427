"""Slim objects become the model's facts: the only place that knows where a fact is written on an object.

Values inside annotations are hostile text: what cannot be read counts as absent (a rank that is no number is
no rank), because the object itself is sound. Sources: rescheduling contract §1.2, §4.2; motor contract §4.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import orjson

from mindie_ha.cluster.slim import (
    Condition,
    ContainerStatus,
    PodSpec,
    SlimConfigMap,
    SlimNode,
    SlimObject,
    SlimPod,
    SlimPodGroup,
)
from mindie_ha.model.ids import PodUID
from mindie_ha.model.nodes import Node, Taint
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.workloads import LABEL_APP, LABEL_JOB_ID, PodGroup, RingsConfig
from mindie_ha.ranktable.hccl import HCCL_KEY
from mindie_ha.ranktable.waits import REAL_CARDS

MAIN_CONTAINER = "ascend"
ANNOTATION_RANK = "hccl/rankIndex"
ANNOTATION_HEALTHY_STATUS = "NodeHealthyStatus"
ANNOTATIONS_ASKED = (
    "huawei.com/Ascend910",
    "huawei.com/npu",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310",
)
ANNOTATION_SERIAL = "product-serial-number"
MAX_RANK = 1_000_000
OWNER_KINDS = ("AscendJob", "Job", "StatefulSet", "ReplicaSet")


def owner_uid(item: SlimObject) -> str:
    """UID of the controlling owner; without the flag, of the first owner of a kind that makes pods."""
    owners = item.metadata.owner_references
    for owner in owners:
        if owner.controller:
            return owner.uid
    return next((owner.uid for owner in owners if owner.kind in OWNER_KINDS), "")


def pod(item: SlimPod) -> Pod:
    """A Pod."""
    meta, spec, status = item.metadata, item.spec, item.status
    containers = status.container_statuses
    grace_s = meta.deletion_grace_period_seconds
    terminating_s = meta.deletion_timestamp
    if terminating_s is not None and grace_s is not None:
        terminating_s -= grace_s  # the API writes when the grace ends, not when the deletion was asked for
    scheduled = condition(status.conditions, "PodScheduled")
    ready = condition(status.conditions, "Ready")
    phase = PodPhase(status.phase) if status.phase in set(PodPhase) else PodPhase.UNKNOWN
    return Pod(
        key=item.key,
        uid=PodUID(meta.uid),
        owner_uid=owner_uid(item),
        phase=phase if status.phase else PodPhase.PENDING,
        node=spec.node_name,
        ip=status.pod_ip,
        host_ip=status.host_ip,
        ready=ready is not None and ready.status == "True",
        terminating_since_s=terminating_s,
        grace_s=spec.termination_grace_period_seconds if grace_s is None else grace_s,
        termination_grace_s=spec.termination_grace_period_seconds,
        finalizers=meta.finalizers,
        rank=_rank(meta.annotations.get(ANNOTATION_RANK)),
        devices=_devices(meta.annotations),
        restarts=sum(max(0, one.restart_count) for one in containers),
        exit_code=_exit_code((*status.init_container_statuses, *containers)),
        waiting_reason=_waiting_reason((*status.init_container_statuses, *containers)),
        status_reason=status.reason,
        has_readiness_probe=_probed(spec),
        unschedulable=_refusal(scheduled),
        placement=_placement(spec),
        started_at_s=_started_at_s(containers) if phase is PodPhase.RUNNING else None,
        last_restart_at_s=_last_restart_at_s(containers),
        created_at_s=meta.creation_timestamp or 0.0,
        job_id=meta.labels.get(LABEL_JOB_ID, ""),
        app=meta.labels.get(LABEL_APP, ""),
        labels=meta.labels,
        annotations=meta.annotations,
    )


def node(item: SlimNode, *, not_ready_since_s: float | None = None) -> Node:
    """A Node; when it stopped being Ready is the caller's own observation."""
    ready = condition(item.status.conditions, "Ready")
    is_ready = ready is not None and ready.status == "True"
    return Node(
        name=item.metadata.name,
        uid=item.metadata.uid,
        ready=is_ready,
        ready_reason="NoReadyCondition" if ready is None else ready.reason,
        not_ready_since_s=None if is_ready else not_ready_since_s,
        unschedulable=item.spec.unschedulable,
        taints=tuple(Taint(one.key, one.effect, one.value) for one in item.spec.taints),
        addresses=tuple(one.address for one in item.status.addresses if one.address),
        capacity_npu=_npus(item.status.capacity),
        healthy_status=item.metadata.annotations.get(ANNOTATION_HEALTHY_STATUS, ""),
        serial=item.metadata.annotations.get(ANNOTATION_SERIAL, "").strip()[:128],
        resource_version=item.metadata.resource_version,
    )


def podgroup(item: SlimPodGroup) -> PodGroup:
    """A PodGroup."""
    meta = item.metadata
    return PodGroup(
        key=item.key,
        uid=meta.uid,
        phase=item.status.phase,
        annotations=meta.annotations,
        resource_version=meta.resource_version,
    )


def rings_config(item: SlimConfigMap, *, changed_at_s: float) -> RingsConfig:
    """A `rings-config-*` ConfigMap."""
    text = item.data.get(HCCL_KEY)
    return RingsConfig(item.key, text, labels=item.metadata.labels, changed_at_s=changed_at_s)


def condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    return next((one for one in conditions if one.type == kind), None)


def _placement(spec: PodSpec) -> str:
    """Equal for pods that ask for the same nodes and distance; "" where nothing readable is asked."""
    if not (spec.node_selector or spec.affinity):
        return ""
    try:
        text = orjson.dumps([spec.node_selector, spec.affinity], option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # nested too deep, or a number too large
        return ""
    return hashlib.sha256(text).hexdigest()[:12]


def _rank(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 7):
        return None
    rank = int(text)
    return rank if rank <= MAX_RANK else None


def _devices(annotations: Mapping[str, str]) -> tuple[str, ...]:
    for name in (REAL_CARDS, *ANNOTATIONS_ASKED):
        text = annotations.get(name)
        if text:
            return tuple(part.strip() for part in text.split(",") if part.strip())
    return ()


def _exit_code(statuses: Iterable[ContainerStatus]) -> int | None:
    """Of the first container that ended with other than 0; a restarted one that runs again has none."""
    for one in statuses:
        ended = one.state.terminated or (one.last_state.terminated if one.state.waiting else None)
        if ended is not None and ended.exit_code != 0:
            return ended.exit_code
    return None


def _waiting_reason(statuses: Iterable[ContainerStatus]) -> str:
    reasons = [one.state.waiting.reason for one in statuses if one.state.waiting is not None]
    troubles = [reason for reason in reasons if reason not in ("", "ContainerCreating", "PodInitializing")]
    return (troubles or reasons or [""])[0]


def _probed(spec: PodSpec) -> bool:
    main = [one for one in spec.containers if one.name == MAIN_CONTAINER] or spec.containers
    return any(one.readiness_probe is not None for one in main)


def _refusal(scheduled: Condition | None) -> str:
    if scheduled is None or scheduled.status != "False":
        return ""
    return scheduled.message or scheduled.reason or "PodScheduled is False"


def _started_at_s(statuses: Iterable[ContainerStatus]) -> float | None:
    starts = [one.state.running.started_at for one in statuses if one.state.running is not None]
    return min((start for start in starts if start is not None), default=None)


def _last_restart_at_s(statuses: Iterable[ContainerStatus]) -> float | None:
    ends = [
        one.last_state.terminated.finished_at for one in statuses if one.last_state.terminated is not None
    ]
    return max((end for end in ends if end is not None), default=None)


def _npus(capacity: Mapping[str, str | int]) -> int:
    counts = [
        int(value)
        for name, value in capacity.items()
        if name.startswith(("huawei.com/Ascend", "huawei.com/npu")) and str(value).isdecimal()
    ]
    return max(counts, default=0)


__all__ = ["node", "owner_uid", "pod", "podgroup", "rings_config"]
