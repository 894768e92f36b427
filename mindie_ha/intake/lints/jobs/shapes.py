"""What the API server and the Ascend Operator refuse, and what makes a gang that never comes together.

Source: rescheduling contract §4.2-4.3 (order and names of the operator's checks).
"""

from __future__ import annotations

import re

from mindie_ha.intake.jobs.descriptions import CONTAINER, Blame, JobDescription, JobKind
from mindie_ha.intake.lints.jobs.rules import (
    ASCEND,
    ERROR,
    EVERY,
    WARNING,
    Hit,
    Hits,
    JobRule,
    listed,
    quoted,
)
from mindie_ha.policy import label_values
from mindie_ha.policy.parameters.catalogue import parameter
from mindie_ha.policy.parameters.modes import LEADERS, WORKER, Framework

MAX_NAME = 63
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")


def not_a_string(job: JobDescription) -> Hits:
    """A label, annotation or variable that YAML reads as something else."""
    told = {job.label(name) for name in label_values.LABELS}  # by the rules of these labels
    for mistake in job.mistakes:
        if mistake.blame is Blame.NO_STRING and mistake.path not in told:
            yield Hit(mistake.path, mistake.what)


def label_syntax(job: JobDescription) -> Hits:
    """A label value with other characters, a blank at its end, or more than 63 characters."""
    for name, value in job.labels.items():
        if name not in label_values.LABELS and not _LABEL_VALUE.fullmatch(value):
            yield Hit(job.label(name), f"is {quoted(value)}")
    for task in job.tasks:
        for name, value in task.labels.items():
            path = (*task.template_path, "metadata", "labels", name)
            if not _LABEL_VALUE.fullmatch(value) and path != job.label(name):
                yield Hit(path, f"is {quoted(value)}")


def wrong_type(job: JobDescription) -> Hits:
    """A value of a wrong type, or far too many of them."""
    for mistake in job.mistakes:
        if mistake.blame is Blame.WRONG_TYPE:
            yield Hit(mistake.path, mistake.what)


def no_name(job: JobDescription) -> Hits:
    """No `metadata.name`."""
    if not job.name:
        yield Hit(("metadata", "name"), "is missing")


def bad_name(job: JobDescription) -> Hits:
    """A name from which no pod or Service name can be made."""
    if not job.name or job.kind is not JobKind.ASCEND_JOB:
        return
    if not _NAME.match(job.name):
        yield Hit(
            ("metadata", "name"), f"{quoted(job.name)} is no lower-case DNS label that begins with a letter"
        )
        return
    longest = max(
        (f"{job.name}-{task.kind.lower()}-{max(task.replicas - 1, 0)}" for task in job.tasks),
        key=len,
        default="",
    )
    if len(longest) > MAX_NAME:
        yield Hit(("metadata", "name"), f"makes the pod name {longest[:20]}… of {len(longest)} characters")


def no_pods(job: JobDescription) -> Hits:
    """No replica types, or no tasks."""
    if not job.tasks:
        yield Hit(job.tasks_path, "is missing or empty")


def empty_replica(job: JobDescription) -> Hits:
    """A replica type or task with nothing in it."""
    for task in job.tasks:
        if not task.written:
            yield Hit(task.path, "is empty")


def framework(job: JobDescription) -> Hits:
    """Label `framework` absent or unknown."""
    if job.framework is None and not job.mistaken(job.label("framework")):
        value = job.labels.get("framework")
        yield Hit(job.label("framework"), "is missing" if value is None else f"is {quoted(value)}")


def replica_type(job: JobDescription) -> Hits:
    """A replica type that the framework does not have."""
    if job.framework is None:
        return
    known = (LEADERS[job.framework], WORKER)
    for task in job.tasks:
        if task.kind not in known:
            yield Hit(
                task.path, f"{quoted(task.kind)} is none of {listed(known)}, the types of {job.framework}"
            )


def replicas_range(job: JobDescription) -> Hits:
    """`replicas` outside 0 to 20000."""
    row = parameter("spec.replicaSpecs.*.replicas")
    for task in job.tasks:
        if not row.allows(task.replicas):
            yield Hit((*task.path, "replicas"), f"is {task.replicas}")


def leader_replicas(job: JobDescription) -> Hits:
    """A leader type with more or less than one pod."""
    leader = job.leader
    if (
        leader is not None
        and leader.replicas != 1
        and parameter("spec.replicaSpecs.*.replicas").allows(leader.replicas)
    ):
        yield Hit((*leader.path, "replicas"), f"is {leader.replicas}; a job has one {leader.kind}")


def no_leader(job: JobDescription) -> Hits:
    """A job without a leader type."""
    if job.framework is None or not job.tasks or job.leader is not None:
        return
    if any(task.kind not in (LEADERS[job.framework], WORKER) for task in job.tasks):
        return  # said by replica_type
    if job.framework is Framework.MINDSPORE and job.cards <= 1:
        return
    yield Hit(job.tasks_path, f"has no {LEADERS[job.framework]}")


def container_ascend(job: JobDescription) -> Hits:
    """A pod without a container named `ascend`."""
    for task in job.tasks:
        if task.main is None and task.written:
            names = listed(quoted(one.name) for one in task.containers) or "none"
            yield Hit(
                (*task.pod_path, "containers"), f"has no container named {CONTAINER} (containers: {names})"
            )


def no_image(job: JobDescription) -> Hits:
    """Container `ascend` without an image."""
    for _, main in job.mains():
        if not main.image:
            yield Hit((*main.path, "image"), "is missing")


def restart_policy_unknown(job: JobDescription) -> Hits:
    """A `restartPolicy` that is none of its words."""
    known = parameter("restartPolicy").values
    for task in job.tasks:
        if task.restart_policy not in known:
            yield Hit(
                (*task.path, "restartPolicy"), f"is {quoted(task.restart_policy)}, none of {listed(known)}"
            )


def success_policy(job: JobDescription) -> Hits:
    """A `successPolicy` that is none of its words."""
    if job.success_policy not in ("", "AllWorkers"):
        yield Hit(("spec", "successPolicy"), f"is {quoted(job.success_policy)}")


def queue(job: JobDescription) -> Hits:
    """A scheduling policy without a queue."""
    if job.scheduling_policy and not job.queue:
        yield Hit(("spec", "runPolicy", "schedulingPolicy", "queue"), "is missing")


def scheduler(job: JobDescription) -> Hits:
    """Another scheduler than Volcano."""
    if job.scheduler not in ("", "volcano"):
        yield Hit(("spec", "schedulerName"), f"is {quoted(job.scheduler)}")


def min_available_high(job: JobDescription) -> Hits:
    """A gang larger than the job."""
    if job.complete and job.min_available is not None and job.min_available > job.replicas:
        yield Hit(_gang(job), f"is {job.min_available}; replicas of the job: {job.replicas}")


def min_available_low(job: JobDescription) -> Hits:
    """A gang smaller than the job."""
    if job.complete and job.min_available is not None and job.min_available < job.replicas:
        yield Hit(_gang(job), f"is {job.min_available} of {job.replicas} pods", fix=f"write {job.replicas}")


def scaling_rule(job: JobDescription) -> Hits:
    """A scaling rule without `group-name` or `jobID`."""
    if "mind-cluster/scaling-rule" in job.labels:
        missing = [name for name in ("mind-cluster/group-name", "jobID") if name not in job.labels]
        if missing:
            yield Hit(job.label("mind-cluster/scaling-rule"), f"stands without label {listed(missing)}")


def scaling_group(job: JobDescription) -> Hits:
    """A group without a rule."""
    if "mind-cluster/group-name" in job.labels and "mind-cluster/scaling-rule" not in job.labels:
        yield Hit(job.label("mind-cluster/group-name"), "stands without label mind-cluster/scaling-rule")


def scaleout_type(job: JobDescription) -> Hits:
    """A `scaleout-type` that is none of its words."""
    value = job.labels.get("scaleout-type")
    if value is not None and value.strip().upper() not in parameter("scaleout-type").values:
        yield Hit(job.label("scaleout-type"), f"is {quoted(value)}")


def _gang(job: JobDescription) -> tuple[str, ...]:
    if job.kind is JobKind.VC_JOB:
        return ("spec", "minAvailable")
    return ("spec", "runPolicy", "schedulingPolicy", "minAvailable")


RULES: tuple[JobRule, ...] = (
    JobRule(
        "not-a-string",
        ERROR,
        not_a_string,
        "labels, annotations and variables are strings; YAML reads an unquoted on, true or 1 as something "
        "else, and the API server refuses the object",
        "put the value in quotes",
        kinds=EVERY,
    ),
    JobRule(
        "label-syntax",
        ERROR,
        label_syntax,
        "the API server refuses it: a label value has letters, digits, -, _ and ., begins and ends with a "
        "letter or digit, and has at most 63 characters",
        "write another value",
        kinds=EVERY,
    ),
    JobRule(
        "wrong-type",
        ERROR,
        wrong_type,
        "the API server or the controller refuses a value of another type",
        "write a value of the right type",
        kinds=EVERY,
    ),
    JobRule("no-name", ERROR, no_name, "an object needs a name", "write metadata.name"),
    JobRule(
        "bad-name",
        ERROR,
        bad_name,
        "the operator makes pod and Service names of it: at most 63 characters, lower-case letters, digits "
        "and -",
        "choose a shorter or simpler name",
        kinds=ASCEND,
    ),
    JobRule(
        "no-pods",
        ERROR,
        no_pods,
        "the operator fails the job with InvalidSpecs",
        "write replicaSpecs (vcjob: tasks)",
        about=("spec.replicaSpecs",),
    ),
    JobRule(
        "empty-replica",
        ERROR,
        empty_replica,
        "the operator fails the job with InvalidReplicaSpec",
        "write replicas, restartPolicy and template, or remove it",
        about=("spec.replicaSpecs",),
    ),
    JobRule(
        "framework",
        ERROR,
        framework,
        "the operator fails the job with InvalidFramework: the label selects replica types and environment",
        "write one of pytorch, mindspore, tensorflow",
        about=("framework",),
        kinds=ASCEND,
    ),
    JobRule(
        "replica-type",
        ERROR,
        replica_type,
        "the operator fails the job with InvalidReplicaType",
        "rename the replica type",
        about=("spec.replicaSpecs", "framework"),
        kinds=ASCEND,
    ),
    JobRule(
        "replicas-range",
        ERROR,
        replicas_range,
        "the operator takes 0 to 20000 replicas",
        "write a number in that range",
        about=("spec.replicaSpecs.*.replicas",),
    ),
    JobRule(
        "leader-replicas",
        ERROR,
        leader_replicas,
        "the operator fails the job with InvalidReplicaSpec",
        "write replicas: 1 and put the other pods into Worker",
        about=("spec.replicaSpecs.*.replicas",),
        kinds=ASCEND,
    ),
    JobRule(
        "no-leader",
        ERROR,
        no_leader,
        "the operator fails a job without a leader (of MindSpore, one with more than one NPU)",
        "add the leader's replica type: Master, Scheduler or Chief",
        about=("spec.replicaSpecs",),
        kinds=ASCEND,
    ),
    JobRule(
        "container-ascend",
        ERROR,
        container_ascend,
        "the operator fails the job with InvalidContainer, and injects into no other container",
        "name the container ascend",
        about=("container name",),
        kinds=ASCEND,
    ),
    JobRule(
        "no-image",
        ERROR,
        no_image,
        "the operator fails the job with InvalidContainer",
        "write the image",
        kinds=ASCEND,
    ),
    JobRule(
        "restart-policy-unknown",
        ERROR,
        restart_policy_unknown,
        "no such policy",
        "write Never",
        about=("restartPolicy",),
        kinds=ASCEND,
    ),
    JobRule(
        "success-policy",
        ERROR,
        success_policy,
        "the operator fails the job with InvalidSuccessPolicy",
        "write AllWorkers or leave it out",
        about=("spec.successPolicy",),
        kinds=ASCEND,
    ),
    JobRule(
        "queue",
        ERROR,
        queue,
        "the operator fails a job with a schedulingPolicy but no queue (InvalidQueue)",
        "write queue: default",
        about=("spec.runPolicy.schedulingPolicy.queue",),
        kinds=ASCEND,
    ),
    JobRule(
        "scheduler",
        WARNING,
        scheduler,
        "gang scheduling and rescheduling are Volcano's; another scheduler knows no faults",
        "write schedulerName: volcano",
        about=("spec.schedulerName",),
    ),
    JobRule(
        "min-available-high",
        ERROR,
        min_available_high,
        "the gang can never come together, so no pod ever starts",
        "write the number of all pods",
        about=("spec.runPolicy.schedulingPolicy.minAvailable",),
    ),
    JobRule(
        "min-available-low",
        WARNING,
        min_available_low,
        "it is also the size of a recovery: replacements beyond it may stay away while the recovery counts "
        "as done",
        "write the number of all pods",
        about=("spec.runPolicy.schedulingPolicy.minAvailable",),
    ),
    JobRule(
        "scaling-rule",
        ERROR,
        scaling_rule,
        "the operator fails the job with InvalidScalingConfig",
        "add the missing label",
        about=("mind-cluster/scaling-rule",),
        kinds=ASCEND,
    ),
    JobRule(
        "scaling-group",
        WARNING,
        scaling_group,
        "the group is ignored without the rule",
        "add the rule, or remove the group",
        about=("mind-cluster/group-name",),
        kinds=ASCEND,
    ),
    JobRule(
        "scaleout-type",
        ERROR,
        scaleout_type,
        "the operator fails the job with InvalidScaleOutConfig",
        "write ROCE or UBOE",
        about=("scaleout-type",),
        kinds=ASCEND,
    ),
)
