"""What an AscendJob says, and what its operator has to conclude from it (pure).

`read_job` turns the object into a `JobSpec`; `validate` gives the first violated rule in the operator's
order; `next_condition` is the status machine. Source: rescheduling contract §4.2, §4.3 and §4.7.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.sim.actors.documents import (
    annotations_of,
    condition,
    dig,
    is_integer,
    items,
    labels_of,
    load_json,
    mapping,
    name_of,
    namespace_of,
    number,
    text,
    uid_of,
)
from mindie_ha.sim.client import Object

LEADERS = {"pytorch": "Master", "tensorflow": "Chief", "mindspore": "Scheduler"}
WORKER = "Worker"
CONTAINER = "ascend"
MAX_REPLICAS = 20_000
SCALING_RULE = "mind-cluster/scaling-rule"
GROUP_NAME = "mind-cluster/group-name"


class Status(StrEnum):
    """Condition types of an AscendJob."""

    CREATED = "Created"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Role:
    """One entry of `replicaSpecs`."""

    kind: str
    replicas: int
    restart_policy: str
    template: Object

    @property
    def lower(self) -> str:
        """The role as it appears in pod names."""
        return self.kind.lower()

    @property
    def npus(self) -> tuple[str, int]:
        """Name and number of the NPUs that each pod requests; `("", 0)` for none."""
        return npus_of(mapping(self.template, "spec"))


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A valid AscendJob with the defaults filled in; the leader role comes first."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    framework: str
    roles: tuple[Role, ...]
    min_available: int
    queue: str
    priority_class: str
    scheduler_name: str
    clean_pod_policy: str

    @property
    def leader(self) -> Role | None:
        """The leader role, if the job has one."""
        return next((role for role in self.roles if role.kind != WORKER), None)

    @property
    def replicas(self) -> int:
        """All pods together."""
        return sum(role.replicas for role in self.roles)

    @property
    def is_inference(self) -> bool:
        """Labels `app` and `jobID` make it a MindIE job."""
        return "app" in self.labels and "jobID" in self.labels

    @property
    def group(self) -> str:
        """Name of the PodGroup."""
        return f"{self.name}-{self.uid}"

    def rank(self, role: Role, index: int) -> int:
        """`hccl/rankIndex`: the index, moved by one for workers behind a leader that has NPUs."""
        leader = self.leader
        return index + (1 if role.kind == WORKER and leader is not None and leader.npus[1] else 0)


def npus_of(pod_spec: Object) -> tuple[str, int]:
    """Name and number of the NPUs that a pod spec requests."""
    for container in items(pod_spec, "containers"):
        for part in ("requests", "limits"):
            for name in mapping(container, "resources", part):
                count = number(container, "resources", part, name)
                if name.startswith("huawei.com/") and count:
                    return name, count
    return "", 0


def read_job(job: Object) -> JobSpec:
    """The job with defaults; call it after `validate`."""
    specs = mapping(job, "spec", "replicaSpecs")
    roles = tuple(
        _role(kind, specs[kind]) for kind in sorted(specs, key=lambda kind: kind.lower() == "worker")
    )
    policy = mapping(job, "spec", "runPolicy", "schedulingPolicy")
    total = sum(role.replicas for role in roles)
    return JobSpec(
        namespace=namespace_of(job),
        name=name_of(job),
        uid=uid_of(job),
        labels=labels_of(job),
        annotations=annotations_of(job),
        framework=labels_of(job).get("framework", ""),
        roles=roles,
        min_available=number(policy, "minAvailable", default=total),
        queue=text(policy, "queue") or "default",
        priority_class=text(policy, "priorityClass"),
        scheduler_name=text(job, "spec", "schedulerName") or "volcano",
        clean_pod_policy=text(job, "spec", "runPolicy", "cleanPodPolicy") or "None",
    )


def _role(kind: str, spec: Object) -> Role:
    return Role(
        kind=kind.capitalize(),
        replicas=number(spec, "replicas", default=1),
        restart_policy=text(spec, "restartPolicy") or "Never",
        template=mapping(spec, "template"),
    )


def validate(job: Object, *, queues: Collection[str]) -> tuple[str, str] | None:
    """The sub-reason and message of the first violated rule, or None."""
    found = labels_of(job)
    if SCALING_RULE in found and not (GROUP_NAME in found and "jobID" in found):
        return "InvalidScalingConfig", f"label {SCALING_RULE} needs labels {GROUP_NAME} and jobID"
    specs = dig(job, "spec", "replicaSpecs")
    if not isinstance(specs, dict) or not specs:
        return "InvalidSpecs", "spec.replicaSpecs is missing"
    policy = dig(job, "spec", "successPolicy")
    if policy not in (None, "", "AllWorkers"):
        return "InvalidSuccessPolicy", f"spec.successPolicy {policy!r} is neither empty nor AllWorkers"
    scheduling = dig(job, "spec", "runPolicy", "schedulingPolicy")
    queue = text(scheduling, "queue")
    if scheduling is not None and queue not in queues:
        return "InvalidQueue", f"queue {queue!r} does not exist"
    framework = found.get("framework", "")
    if framework not in LEADERS:
        return (
            "InvalidFramework",
            f"label framework must be one of {', '.join(sorted(LEADERS))}, got {framework!r}",
        )
    return _validate_roles(framework, specs)


def _validate_roles(framework: str, specs: Object) -> tuple[str, str] | None:
    leader = LEADERS[framework]
    kinds = {kind: kind.capitalize() for kind in specs}
    for kind, proper in kinds.items():
        if proper not in (leader, WORKER):
            return "InvalidReplicaType", f"replica type {kind} is not valid for framework {framework}"
    for check in (_replica_problem, _container_problem):
        for kind in specs:
            problem = check(kinds[kind], specs[kind], kinds[kind] == leader)
            if problem:
                return problem
    if leader in kinds.values():
        return None
    if framework != "mindspore":
        return "InvalidReplicaType", f"framework {framework} needs replica type {leader}"
    if sum(_role(kind, spec).npus[1] * _role(kind, spec).replicas for kind, spec in specs.items()) > 1:
        return "InvalidReplicaSpec", "without a Scheduler the Workers may request one NPU in total"
    return None


def _replica_problem(kind: str, spec: object, is_leader: bool) -> tuple[str, str] | None:
    if not isinstance(spec, dict):
        return "InvalidReplicaSpec", f"replicaSpecs.{kind} is empty"
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or not 0 <= replicas <= MAX_REPLICAS:
        return (
            "InvalidReplicaSpec",
            f"replicaSpecs.{kind}.replicas must be 0 to {MAX_REPLICAS}, got {replicas!r}",
        )
    if is_leader and replicas != 1:
        return "InvalidReplicaSpec", f"replicaSpecs.{kind}.replicas must be 1, got {replicas}"
    if not items(spec, "template", "spec", "containers"):
        return "InvalidReplicaSpec", f"replicaSpecs.{kind} has no container"
    return None


def _container_problem(kind: str, spec: object, _is_leader: bool) -> tuple[str, str] | None:
    for container in items(spec, "template", "spec", "containers"):
        if container.get("name") == CONTAINER and text(container, "image"):
            return None
    return "InvalidContainer", f"replicaSpecs.{kind} has no container named {CONTAINER} with an image"


def backoff_limit(job: Object) -> int | None:
    """Rounds allowed (-1: no limit), or None where `fault-retry-times` is no number and decides."""
    limit = dig(job, "spec", "runPolicy", "backoffLimit")
    if isinstance(limit, int):
        return limit
    raw = labels_of(job).get("fault-retry-times")
    if raw is None:
        return -1
    return int(raw) if is_integer(raw) else None


def remaining_retries(config: Object | None, job: JobSpec) -> int:
    """What `vcjob-fault-npu-cm` leaves to a job; 0 where it says nothing readable."""
    table = load_json(text(config or {}, "data", "remain-retry-times"))
    return number(table, f"{job.namespace}/{job.name}-{job.uid}", "Times")


@dataclass(frozen=True, slots=True)
class Tally:
    """Pods of a job by phase; terminating failed ones are not counted."""

    active: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


def tally(pods: Collection[Object]) -> Tally:
    """Count the pods of a job or of one role."""
    phases = [
        text(pod, "status", "phase") for pod in pods
        if text(pod, "status", "phase") != "Failed" or dig(pod, "metadata", "deletionTimestamp") is None
    ]  # fmt: skip
    return Tally(
        active=sum(phase in {"Pending", "Running", ""} for phase in phases),
        running=phases.count("Running"),
        succeeded=phases.count("Succeeded"),
        failed=phases.count("Failed"),
    )


def next_condition(counts: Tally, *, total: int, restarting: bool, retry_left: bool) -> Status | None:
    """The condition that the pods call for, None for no change."""
    if counts.failed:
        return Status.RESTARTING if restarting or retry_left else Status.FAILED
    if counts.running:
        return Status.RUNNING
    if counts.succeeded:
        return Status.SUCCEEDED
    return Status.SUCCEEDED if total == 0 else None


def is_terminal(job: Object) -> bool:
    """The job is Failed or Succeeded for good."""
    return any(condition(job, kind).get("status") == "True" for kind in (Status.FAILED, Status.SUCCEEDED))


def conditions_with(job: Object, status: Status, *, reason: str, message: str, now: str) -> list[Object]:
    """The job's conditions after a new one; Running and Restarting displace each other."""
    old = items(job, "status", "conditions")
    displaced = {Status.RUNNING, Status.RESTARTING} if status is not Status.CREATED else set()
    kept = []
    for entry in old:
        if entry.get("type") == status:
            continue
        if text(entry, "type") in displaced and status in displaced:
            continue
        over = entry.get("type") == Status.RUNNING and status in {Status.FAILED, Status.SUCCEEDED}
        ended = {"status": "False", "lastTransitionTime": now, "lastUpdateTime": now}
        kept.append({**entry, **ended} if over else entry)
    known = condition(job, status)
    same = known.get("status") == "True" and known.get("reason") == reason
    fresh: Object = {
        "type": str(status), "status": "True", "reason": reason, "message": message, "lastUpdateTime": now,
        "lastTransitionTime": known.get("lastTransitionTime", now) if same else now,
    }  # fmt: skip
    return [*kept, fresh]
