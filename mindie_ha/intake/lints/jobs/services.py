"""Jobs of a MindIE service: their labels, and how many there may be of each.

Source: motor contract §3.1-3.2, §4.1, §4.4; rescheduling contract §3.1-3.5.
"""

from __future__ import annotations

from mindie_ha.intake.jobs.descriptions import JobDescription
from mindie_ha.intake.lints.jobs.rules import ERROR, WARNING, Hit, Hits, JobRule, listed, quoted
from mindie_ha.model.workloads import LABEL_APP, LABEL_JOB_ID, Role
from mindie_ha.policy.parameters.catalogue import parameter

MS = frozenset({Role.CONTROLLER, Role.COORDINATOR})
ATLAS = "ring-controller.atlas"
MAX_MS_PODS = 2
RANK_TABLES = "rings-config-"


def mindie_app(job: JobDescription) -> Hits:
    """A service's job without a known role."""
    known = parameter(LABEL_APP).values
    value = job.labels.get(LABEL_APP)
    wrong = value is not None and value not in known and value.lower().startswith("mindie-ms")
    if wrong or (LABEL_JOB_ID in job.labels and value not in known):
        yield Hit(
            job.label(LABEL_APP),
            "is missing" if value is None else f"is {quoted(value)}, none of {listed(known)}",
        )


def mindie_job_id(job: JobDescription) -> Hits:
    """A role without its service."""
    if job.role is not Role.TRAINING and not job.labels.get(LABEL_JOB_ID):
        what = "is missing" if LABEL_JOB_ID not in job.labels else "is empty"
        yield Hit(job.label(LABEL_JOB_ID), what)


def mindie_pod_labels(job: JobDescription) -> Hits:
    """Labels `app` and `jobID` of the pods that are not those of the job."""
    if job.role is Role.TRAINING:
        return
    for task in job.tasks if job.complete else ():
        path = (*task.template_path, "metadata", "labels")
        for name in (LABEL_APP, LABEL_JOB_ID):
            wanted, found = job.labels.get(name), task.labels.get(name)
            if wanted and found != wanted:
                yield Hit(
                    (*path, name),
                    "is missing" if found is None else f"is {quoted(found)}, on the job {quoted(wanted)}",
                )


def card_family(job: JobDescription) -> Hits:
    """Label `ring-controller.atlas` absent or unknown."""
    known = parameter(ATLAS).values
    value = job.labels.get(ATLAS)
    if value is None and job.cards and (job.role is Role.SERVER or job.is_training):
        yield Hit(job.label(ATLAS), "is missing")
    elif value is not None and value not in known:
        yield Hit(job.label(ATLAS), f"is {quoted(value)}, none of {listed(known)}")


def ms_without_pod_level(job: JobDescription) -> Hits:
    """A standby that is restarted with the active one."""
    path = job.label("pod-rescheduling")
    if job.role in MS and job.replicas > 1 and not job.pod_level and not job.mistaken(path):
        yield Hit(path, f"is not on, but the job has {job.replicas} pods")


def too_many_ms(job: JobDescription) -> Hits:
    """More than two Controller or Coordinator pods."""
    if job.role in MS and job.replicas > MAX_MS_PODS:
        yield Hit(job.tasks_path, f"asks for {job.replicas} {job.role} pods")


def pod_level_alone(job: JobDescription) -> Hits:
    """The pod level without a peer."""
    if job.pod_level and job.complete and job.replicas == 1 and job.role in MS:
        yield Hit(job.label("pod-rescheduling"), "is on, but the job has one pod")


def pod_level_on_server(job: JobDescription) -> Hits:
    """The pod level on a MindIE Server."""
    if job.role is Role.SERVER and "pod-rescheduling" in job.labels and job.pod_level:
        yield Hit(job.label("pod-rescheduling"), "is on, on a MindIE Server")


def server_without_cards(job: JobDescription) -> Hits:
    """A Server that asks for no NPU."""
    if job.role is Role.SERVER and job.complete and not any(task.cards for task in job.tasks):
        yield Hit(job.tasks_path, "asks for no NPU")


def rings_config_missing(job: JobDescription) -> Hits:
    """A Server without its rank table, in files that hold those of others."""
    wanted = f"{RANK_TABLES}{job.name}"
    theirs = {name for namespace, name in job.around.rings if namespace == job.namespace}
    if job.role is Role.SERVER and theirs and wanted not in theirs:
        yield Hit(("metadata", "name"), f"asks for ConfigMap {wanted}, which is not in these files")


RULES: tuple[JobRule, ...] = (
    JobRule(
        "mindie-app",
        ERROR,
        mindie_app,
        "a job of a service has one of three roles; with another it is in no rank table and has no ladder",
        "write mindie-ms-server, mindie-ms-controller or mindie-ms-coordinator",
        about=("app",),
    ),
    JobRule(
        "mindie-job-id",
        ERROR,
        mindie_job_id,
        "without it the job belongs to no service and gets the environment of a training job",
        "write the jobID of the service",
        about=("jobID",),
    ),
    JobRule(
        "mindie-pod-labels",
        ERROR,
        mindie_pod_labels,
        "ClusterD and Services find the pods by their own labels, and two values of one key are joined by "
        "a bar for Volcano",
        "write the label as on the job",
        about=("app", "jobID"),
    ),
    JobRule(
        "card-family",
        WARNING,
        card_family,
        "operator and device plugin choose the form of the rank table by it",
        "write ring-controller.atlas: ascend-910b, for example",
        about=("ring-controller.atlas",),
    ),
    JobRule(
        "ms-without-pod-level",
        ERROR,
        ms_without_pod_level,
        "a failure of one pod then restarts the standby too",
        'write pod-rescheduling: "on" and fault-scheduling: "force"',
        about=("pod-rescheduling",),
    ),
    JobRule(
        "too-many-ms",
        ERROR,
        too_many_ms,
        "active and standby are two; the Controller looks after its Coordinators only where there are "
        "exactly two",
        "write one Master and at most one Worker",
    ),
    JobRule(
        "pod-level-alone",
        WARNING,
        pod_level_alone,
        "without a peer there is nothing to keep: the job level is used",
        "add a standby, or remove the label",
        about=("pod-rescheduling",),
    ),
    JobRule(
        "pod-level-on-server",
        WARNING,
        pod_level_on_server,
        "a Server instance is rebuilt as a whole; the pod level is not supported for it",
        "remove the label",
        about=("pod-rescheduling",),
    ),
    JobRule(
        "rings-config-missing",
        WARNING,
        rings_config_missing,
        "the operator writes the rank table into it but never creates it: without it there is no table",
        "write the ConfigMap, named after the job",
    ),
    JobRule(
        "server-without-cards",
        ERROR,
        server_without_cards,
        "its rank table is never complete, so the instance is never published",
        "ask for huawei.com/Ascend910",
    ),
)
