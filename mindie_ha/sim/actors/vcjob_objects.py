"""What a Volcano job says, and the objects that its controller makes of it (pure).

Source: rescheduling contract §1.1 (maxRetry, policies), §1.2; Volcano's batch API, `v1alpha1`.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass

from mindie_ha.sim.actors.ascendjobs import npus_of
from mindie_ha.sim.actors.documents import (
    annotations_of,
    items,
    labels_of,
    mapping,
    name_of,
    namespace_of,
    number,
    text,
    texts,
    uid_of,
)
from mindie_ha.sim.client import Object

API_VERSION = "batch.volcano.sh/v1alpha1"
MAX_RETRY = 3
JOB_NAME = "volcano.sh/job-name"
JOB_VERSION = "volcano.sh/job-version"
TASK_SPEC = "volcano.sh/task-spec"
RANK = "hccl/rankIndex"
GROUP = "scheduling.k8s.io/group-name"
RESTART_JOB = "RestartJob"


@dataclass(frozen=True, slots=True)
class Task:
    """One entry of `spec.tasks`."""

    name: str
    replicas: int
    template: Object
    policies: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class VolcanoJob:
    """A job with the defaults filled in."""

    namespace: str
    name: str
    uid: str
    labels: dict[str, str]
    annotations: dict[str, str]
    tasks: tuple[Task, ...]
    min_available: int
    max_retry: int
    queue: str
    scheduler_name: str
    policies: tuple[Object, ...]

    @property
    def replicas(self) -> int:
        """All pods together."""
        return sum(task.replicas for task in self.tasks)

    @property
    def group(self) -> str:
        """Name of the PodGroup."""
        return f"{self.name}-{self.uid}"

    def places(self) -> Iterable[tuple[str, Task, int, int]]:
        """Every pod: its name, its task, its index in the task and its rank in the job."""
        rank = 0
        for task in self.tasks:
            for index in range(task.replicas):
                yield f"{self.name}-{task.name}-{index}", task, index, rank
                rank += 1

    def action(self, task: str, *, event: str, exit_code: int | None = None) -> str:
        """What the policies say to an event; those of the task come first. "" for nothing."""
        own = next((one.policies for one in self.tasks if one.name == task), ())
        for policy in (*own, *self.policies):
            events = {text(policy, "event"), *(one for one in policy.get("events") or () if one)} - {""}
            by_code = exit_code is not None and number(policy, "exitCode", default=0) == exit_code != 0
            if by_code or events & {event, "*"}:
                return text(policy, "action")
        return ""


def read(job: Object) -> VolcanoJob:
    """The job with defaults."""
    tasks = tuple(
        Task(
            name=text(task, "name") or f"default{number_}",
            replicas=number(task, "replicas", default=1),
            template=mapping(task, "template"),
            policies=tuple(items(task, "policies")),
        )
        for number_, task in enumerate(items(job, "spec", "tasks"))
    )
    total = sum(task.replicas for task in tasks)
    return VolcanoJob(
        namespace=namespace_of(job),
        name=name_of(job),
        uid=uid_of(job),
        labels=labels_of(job),
        annotations=annotations_of(job),
        tasks=tasks,
        min_available=number(job, "spec", "minAvailable", default=total) or total,
        max_retry=number(job, "spec", "maxRetry", default=MAX_RETRY) or MAX_RETRY,
        queue=text(job, "spec", "queue") or "default",
        scheduler_name=text(job, "spec", "schedulerName") or "volcano",
        policies=tuple(items(job, "spec", "policies")),
    )


def owner(job: VolcanoJob) -> list[Object]:
    """The ownerReferences of everything the job owns."""
    return [{
        "apiVersion": API_VERSION, "kind": "Job", "name": job.name, "uid": job.uid,
        "controller": True, "blockOwnerDeletion": True,
    }]  # fmt: skip


def group_object(job: VolcanoJob) -> Object:
    """The PodGroup; labels and annotations are those of the job at this moment."""
    resources: dict[str, int] = {"pods": job.replicas}
    for task in job.tasks:
        name, count = npus_of(mapping(task.template, "spec"))
        if name:
            resources[name] = resources.get(name, 0) + count * task.replicas
    return {
        "metadata": {
            "name": job.group,
            "namespace": job.namespace,
            "labels": dict(job.labels),
            "annotations": dict(job.annotations),
            "ownerReferences": owner(job),
        },
        "spec": {
            "minMember": job.min_available,
            "minTaskMember": {task.name: task.replicas for task in job.tasks},
            "minResources": {name: str(count) for name, count in resources.items()},
            "queue": job.queue,
        },
    }


def pod_object(job: VolcanoJob, *, name: str, task: Task, index: int, rank: int, version: int) -> Object:
    """One pod of one version of the job."""
    spec = deepcopy(mapping(task.template, "spec"))
    spec["schedulerName"] = job.scheduler_name
    spec.setdefault("restartPolicy", "OnFailure")
    for container in items(spec, "containers"):
        numbered = [{"name": key, "value": str(index)} for key in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
        container["env"] = [*items(container, "env"), *numbered]
    meta = mapping(task.template, "metadata")
    marks = {JOB_NAME: job.name, TASK_SPEC: task.name, "volcano.sh/task-index": str(index)}
    return {
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {
                **texts(meta, "labels"),
                **marks,
                "volcano.sh/job-namespace": job.namespace,
                "volcano.sh/queue-name": job.queue,
            },
            "annotations": {
                **texts(meta, "annotations"),
                **marks,
                RANK: str(rank),
                GROUP: job.group,
                JOB_VERSION: str(version),
                "volcano.sh/template-uid": f"{job.name}-{task.name}",
            },
            "ownerReferences": owner(job),
        },
        "spec": spec,
    }
