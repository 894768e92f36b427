"""The environment that the Ascend Operator injects into container `ascend` (pure).

A MindIE job (labels `app` and `jobID`) gets the inference set only; other jobs get the common set and, if
their pods request NPUs, the set of their framework and of their recover strategies. The strategy tables are
data. Entries are appended without looking for one of the same name: the later one wins in Kubernetes. Any
text in `recover-strategy` switches the watchdog off, known or not; blanks are not trimmed.
Source: rescheduling contract §4.6; training contract §3.4.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.sim.actors.ascendjobs import WORKER, JobSpec, Role
from mindie_ha.sim.client import Object

SERVER_DOMAIN = "clusterd-grpc-svc.mindx-dl.svc.cluster.local"
PORT_NAME = "ascendjob-port"
PORT = 2222

STRATEGY_FLAGS: dict[str, tuple[str, ...]] = {
    "retry": ("PROCESS_RECOVER", "ELASTIC"),
    "recover": ("PROCESS_RECOVER", "ELASTIC"),
    "recover-in-place": ("PROCESS_RECOVER", "ELASTIC", "RESTART_PROCESS"),
    "elastic-training": ("PROCESS_RECOVER",),
    "dump": ("PROCESS_RECOVER", "ELASTIC"),
    "exit": ("PROCESS_RECOVER", "ELASTIC"),
}
FLAG_VARIABLES = {
    "PROCESS_RECOVER": ("PROCESS_RECOVER", "on"),
    "ELASTIC": ("ELASTIC_PROCESS_RECOVER_ENABLE", "1"),
    "RESTART_PROCESS": ("ENABLE_RESTART_FAULT_PROCESS", "on"),
}
PYTORCH_AVAILABILITY = {
    "retry": "retry", "recover": "recover", "recover-in-place": "recover",
    "elastic-training": "elastic-training", "dump": "dump", "exit": "recover",
}  # fmt: skip
MINDSPORE_TFT = {
    "retry": ("UCE:1", "HCCE:1"), "recover": ("ARF:1",), "recover-in-place": ("ARF:1",), "dump": ("TTP:1",),
    "exit": ("ARF:1",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses that are known only in the cluster; a DNS name where there is no ClusterIP."""

    server: str
    leader: str


def injected(job: JobSpec, role: Role, index: int, addresses: Addresses) -> list[Object]:
    """The `env` entries to append."""
    if job.is_inference:
        return _plain(
            MINDX_TASK_ID=job.labels["jobID"],
            APP_TYPE=job.labels["app"],
            MINDX_SERVER_IP=addresses.server,
            MINDX_SERVER_DOMAIN=SERVER_DOMAIN,
        )
    if job.framework == "mindspore" and job.leader is None:
        return []
    resource, npus = role.npus
    common = _common(job, role, index, addresses, resource)
    if not npus:
        return common
    if job.framework == "pytorch":
        return common + _pytorch(job, role, index, addresses, npus)
    if job.framework == "mindspore":
        return common + _mindspore(job, role, index, addresses, npus)
    return common + _tensorflow(job, role, index, addresses, npus)


def _common(job: JobSpec, role: Role, index: int, addresses: Addresses, resource: str) -> list[Object]:
    env = _plain(
        MINDX_TASK_ID=job.uid,
        MINDX_SERVER_IP=addresses.server,
        MINDX_SERVER_DOMAIN=SERVER_DOMAIN,
        HostNetwork="true" if role.template.get("spec", {}).get("hostNetwork") is True else "false",
        REPLICA_TYPE=role.kind,
    )
    block = job.annotations.get("sp-block", "")
    if resource and block.isdecimal() and int(block):
        env += _plain(HCCL_LOGIC_SUPERPOD_ID=str(job.rank(role, index) * role.npus[1] // int(block)))
    if resource:
        env.append(_field("ASCEND_VISIBLE_DEVICES", f"metadata.annotations['{resource}']"))
    return env


def _pytorch(job: JobSpec, role: Role, index: int, addresses: Addresses, npus: int) -> list[Object]:
    env = _plain(
        MASTER_ADDR=addresses.leader,
        MASTER_PORT=str(PORT),
        WORLD_SIZE=str(npus * _npu_pods(job)),
        RANK=str(job.rank(role, index)),
        LOCAL_WORLD_SIZE=str(npus),
        LOCAL_RANK=",".join(str(rank) for rank in range(npus)),
    )
    chosen = strategies(job)
    availability = {PYTORCH_AVAILABILITY[item] for item in chosen}
    flags = [flag for item in chosen for flag in STRATEGY_FLAGS[item]]
    if job.labels.get("subHealthyStrategy") == "hotSwitch":
        availability.add("recover")
        flags += STRATEGY_FLAGS["recover"]
    asked = bool(job.annotations.get("recover-strategy"))
    if availability or asked:
        env += _plain(HIGH_AVAILABILITY=",".join(sorted(availability)))
    if asked:
        env += _plain(HCCL_ASYNC_ERROR_HANDLING="0")
    return env + _flags(flags)


def _mindspore(job: JobSpec, role: Role, index: int, addresses: Addresses, npus: int) -> list[Object]:
    workers = _npu_pods(job)
    env = _plain(
        MS_SCHED_PORT=str(PORT),
        MS_ROLE="MS_WORKER" if role.kind == WORKER else "MS_SCHED",
        MS_NODE_RANK=str(job.rank(role, index)),
        MS_SERVER_NUM="0",
        MS_WORKER_NUM=str(npus * workers),
        MS_LOCAL_WORKER=str(npus),
        NPU_POD="true",
    )
    own = _field("MS_SCHED_HOST", "status.podIP")
    env += [own] if role.kind != WORKER else _plain(MS_SCHED_HOST=addresses.leader)
    chosen = [item for item in strategies(job) if item in MINDSPORE_TFT]
    features = {feature for item in chosen for feature in MINDSPORE_TFT[item]}
    flags = [flag for item in chosen for flag in STRATEGY_FLAGS[item]]
    if job.labels.get("subHealthyStrategy") == "hotSwitch":
        features.add("ARF:1")
        flags += STRATEGY_FLAGS["recover"]
    asked = bool(job.annotations.get("recover-strategy"))
    if features or asked:
        env += _plain(MINDIO_FOR_MINDSPORE="1")
    if asked:
        env += _plain(MS_ENABLE_THM="{HCCL_WATCHDOG:0}")
    if job.labels.get("pod-rescheduling") == "on":
        features.add("RSC:1")
    if features or asked:
        env += _plain(MS_ENABLE_TFT="{" + ",".join(sorted(features)) + "}")
    return env + _flags(flags)


def _tensorflow(job: JobSpec, role: Role, index: int, addresses: Addresses, npus: int) -> list[Object]:
    return [
        *_plain(
            CM_CHIEF_IP=addresses.leader,
            CM_CHIEF_PORT=str(PORT),
            CM_CHIEF_DEVICE="0",
            CM_RANK=str(job.rank(role, index)),
            CM_WORKER_SIZE=str(npus * _npu_pods(job)),
            CM_LOCAL_WORKER=str(npus),
        ),
        _field("CM_WORKER_IP", "status.podIP"),
    ]


def strategies(job: JobSpec) -> list[str]:
    """The known items of annotation `recover-strategy`, in order; one with a blank is unknown."""
    listed = job.annotations.get("recover-strategy", "").split(",")
    return [item for item in dict.fromkeys(listed) if item in STRATEGY_FLAGS]


def _npu_pods(job: JobSpec) -> int:
    return sum(role.replicas for role in job.roles if role.npus[1])


def _flags(flags: list[str]) -> list[Object]:
    return _plain(**dict(FLAG_VARIABLES[flag] for flag in dict.fromkeys(flags)))


def _plain(**values: str) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
