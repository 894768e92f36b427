"""The objects that the Ascend Operator creates for a job (pure). Source: rescheduling contract §4.5."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from mindie_ha.sim.actors.ascendjobs import CONTAINER, WORKER, JobSpec, Role
from mindie_ha.sim.actors.documents import items, mapping, texts
from mindie_ha.sim.actors.job_envs import PORT, PORT_NAME, Addresses, injected
from mindie_ha.sim.client import Object

API_VERSION = "mindxdl.gitee.com/v1"
OPERATOR = "ascendjob-controller"
RANK = "hccl/rankIndex"
GROUP = "scheduling.k8s.io/group-name"
TASK = "volcano.sh/task-spec"
VERSION = "version"
_PREFIX = "training.kubeflow.org/"


def owner(job: JobSpec) -> list[Object]:
    """The ownerReferences of everything the job owns."""
    return [{
        "apiVersion": API_VERSION, "kind": "AscendJob", "name": job.name, "uid": job.uid,
        "controller": True, "blockOwnerDeletion": True,
    }]  # fmt: skip


def pod_name(job: JobSpec, role: Role, index: int) -> str:
    """`<job>-<role>-<index>`."""
    return f"{job.name}-{role.lower}-{index}"


def leader_service_name(job: JobSpec) -> str:
    """The Service of the leader pod, "" for a job without a leader."""
    return "" if job.leader is None else pod_name(job, job.leader, 0)


def pod_labels(job: JobSpec, role: Role, index: int) -> dict[str, str]:
    """The labels that the operator adds, without the version."""
    labels = {
        f"{_PREFIX}operator-name": OPERATOR,
        f"{_PREFIX}job-name": job.name,
        f"{_PREFIX}replica-type": role.lower,
        f"{_PREFIX}replica-index": str(index),
        "group-name": "mindxdl.gitee.com",
        "job-name": job.name,
        "replica-type": role.lower,
        "replica-index": str(index),
    }
    if role.kind != WORKER:
        labels[f"{_PREFIX}job-role"] = "master"
    return labels


def pod_object(job: JobSpec, role: Role, index: int, *, round_: int, addresses: Addresses) -> Object:
    """One pod of one round."""
    spec = deepcopy(mapping(role.template, "spec"))
    spec["restartPolicy"] = "Never" if role.restart_policy == "ExitCode" else role.restart_policy
    spec["schedulerName"] = job.scheduler_name
    for container in items(spec, "containers"):
        if container.get("name") != CONTAINER:
            continue
        container["env"] = [*items(container, "env"), *injected(job, role, index, addresses)]
        ports = items(container, "ports")
        if role.kind != WORKER and all(port.get("name") != PORT_NAME for port in ports):
            container["ports"] = [*ports, {"name": PORT_NAME, "containerPort": PORT}]
    meta = mapping(role.template, "metadata")
    return {
        "metadata": {
            "name": pod_name(job, role, index),
            "namespace": job.namespace,
            "labels": {**texts(meta, "labels"), **pod_labels(job, role, index), VERSION: str(round_)},
            "annotations": {
                **texts(meta, "annotations"),
                RANK: str(job.rank(role, index)),
                GROUP: job.group,
                TASK: role.lower,
            },
            "ownerReferences": owner(job),
        },
        "spec": spec,
    }


def group_object(job: JobSpec) -> Object:
    """The PodGroup; labels and annotations are those of the job at this moment."""
    labels = dict(job.labels)
    if "recover-strategy" in job.annotations:
        labels["process-recover-enable"] = "on"
    spec: Object = {
        "minMember": job.min_available,
        "minTaskMember": {role.lower: role.replicas for role in job.roles},
        "minResources": min_resources(job),
        "queue": job.queue,
    }
    if job.priority_class:
        spec["priorityClassName"] = job.priority_class
    return {
        "metadata": {
            "name": job.group,
            "namespace": job.namespace,
            "labels": labels,
            "annotations": dict(job.annotations),
            "ownerReferences": owner(job),
        },
        "spec": spec,
    }


def min_resources(job: JobSpec) -> dict[str, str]:
    """NPUs and pods of the whole job."""
    totals: dict[str, int] = {"pods": job.replicas}
    for role in job.roles:
        resource, count = role.npus
        if resource:
            totals[resource] = totals.get(resource, 0) + count * role.replicas
    return {name: str(count) for name, count in totals.items()}


def leader_service(job: JobSpec, leader: Role) -> Object:
    """The ClusterIP Service in front of the leader pod."""
    labels = pod_labels(job, leader, 0)
    selector: Mapping[str, str] = {
        key: labels[key] for key in ("group-name", "job-name", "replica-type", "replica-index")
    }
    return {
        "metadata": {
            "name": pod_name(job, leader, 0),
            "namespace": job.namespace,
            "labels": labels,
            "ownerReferences": owner(job),
        },
        "spec": {
            "type": "ClusterIP",
            "selector": dict(selector),
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }
