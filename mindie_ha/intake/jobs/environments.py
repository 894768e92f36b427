"""The environment of one pod's container `ascend` as the Ascend Operator will make it.

What is only known in the cluster stands in angle brackets. A test compares it with what the embedded operator
injects, variable by variable.

Source: rescheduling contract §4.6.
"""

from __future__ import annotations

from mindie_ha.intake.jobs.descriptions import JobDescription, JobKind, Task
from mindie_ha.policy.parameters import injected
from mindie_ha.policy.parameters.modes import WORKER, Framework

PORT = "2222"
SERVER = "<address of Service mindx-dl/clusterd-grpc-svc>"
OWN_ADDRESS = "<address of the pod>"
JOB_UID = "<UID of the job>"


def environment(job: JobDescription, task: Task, index: int = 0) -> dict[str, str]:
    """Variables of pod `index` of `task`; empty for what the operator does not make."""
    if job.kind is not JobKind.ASCEND_JOB or task.main is None:
        return {}
    if job.is_inference:
        return {
            "MINDX_TASK_ID": job.labels["jobID"],
            "APP_TYPE": job.labels["app"],
            "MINDX_SERVER_IP": SERVER,
            "MINDX_SERVER_DOMAIN": injected.SERVER_DOMAIN,
        }
    if job.framework is None or (job.framework is Framework.MINDSPORE and job.leader is None):
        return {}
    found = _common(job, task, index)
    if task.cards:
        found |= _RENDEZVOUS[job.framework](job, task, index)
        found |= injected.recovery_environment(
            job.framework,
            recover_strategy=job.recover_strategy,
            pod_level=job.pod_level,
            hot_switch=job.hot_switch,
        )
    return found


def rank(job: JobDescription, task: Task, index: int) -> int:
    """Annotation hccl/rankIndex: workers come behind a leader that has cards."""
    leader = job.leader
    return index + (1 if task.kind == WORKER and leader is not None and leader.cards else 0)


def _common(job: JobDescription, task: Task, index: int) -> dict[str, str]:
    found = {
        "MINDX_TASK_ID": JOB_UID,
        "MINDX_SERVER_IP": SERVER,
        "MINDX_SERVER_DOMAIN": injected.SERVER_DOMAIN,
        "HostNetwork": "true" if task.host_network else "false",
        "REPLICA_TYPE": task.kind,
    }
    block = job.annotations.get("sp-block", "")
    if task.cards and block.isdecimal() and block.isascii() and len(block) < 10 and int(block):
        found["HCCL_LOGIC_SUPERPOD_ID"] = str(rank(job, task, index) * task.cards // int(block))
    resource = task.main.card_resource if task.main is not None else ""
    if resource:
        found["ASCEND_VISIBLE_DEVICES"] = f"<annotation {resource} of the pod>"
    return found


def _pytorch(job: JobDescription, task: Task, index: int) -> dict[str, str]:
    return {
        "MASTER_ADDR": _leader_address(job),
        "MASTER_PORT": PORT,
        "WORLD_SIZE": str(task.cards * _pods_with_cards(job)),
        "RANK": str(rank(job, task, index)),
        "LOCAL_WORLD_SIZE": str(task.cards),
        "LOCAL_RANK": ",".join(str(number) for number in range(min(task.cards, 1000))),
    }


def _mindspore(job: JobDescription, task: Task, index: int) -> dict[str, str]:
    works = task.kind == WORKER
    return {
        "MS_SCHED_PORT": PORT,
        "MS_ROLE": "MS_WORKER" if works else "MS_SCHED",
        "MS_NODE_RANK": str(rank(job, task, index)),
        "MS_SERVER_NUM": "0",
        "MS_WORKER_NUM": str(task.cards * _pods_with_cards(job)),
        "MS_LOCAL_WORKER": str(task.cards),
        "NPU_POD": "true",
        "MS_SCHED_HOST": _leader_address(job) if works else OWN_ADDRESS,
    }


def _tensorflow(job: JobDescription, task: Task, index: int) -> dict[str, str]:
    return {
        "CM_CHIEF_IP": _leader_address(job),
        "CM_CHIEF_PORT": PORT,
        "CM_CHIEF_DEVICE": "0",
        "CM_RANK": str(rank(job, task, index)),
        "CM_WORKER_SIZE": str(task.cards * _pods_with_cards(job)),
        "CM_LOCAL_WORKER": str(task.cards),
        "CM_WORKER_IP": OWN_ADDRESS,
    }


_RENDEZVOUS = {
    Framework.PYTORCH: _pytorch,
    Framework.MINDSPORE: _mindspore,
    Framework.TENSORFLOW: _tensorflow,
}


def _leader_address(job: JobDescription) -> str:
    leader = job.leader
    return f"<address of Service {job.name}-{leader.kind.lower()}-0>" if leader is not None else ""


def _pods_with_cards(job: JobDescription) -> int:
    return sum(task.replicas for task in job.tasks if task.cards)
