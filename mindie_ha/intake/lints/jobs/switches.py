"""Labels and annotations that switch rescheduling on and set its limits.

Source: rescheduling contract §1.1, §2.4-2.6; training contract §3.1; motor contract §3.2.
"""

from __future__ import annotations

import re

from mindie_ha.intake import silences
from mindie_ha.intake.jobs.descriptions import JobDescription, JobKind
from mindie_ha.intake.jobs.links import read_op_retry
from mindie_ha.intake.lints.jobs.rules import (
    ASCEND,
    ERROR,
    EVERY,
    VC,
    WARNING,
    Hit,
    Hits,
    JobRule,
    listed,
    quoted,
    unknown_word,
)
from mindie_ha.model.workloads import Role
from mindie_ha.policy import label_values
from mindie_ha.policy.ownership import STRATEGY_OURS
from mindie_ha.policy.parameters.catalogue import parameter

INTEGER = re.compile(r"[+-]?[0-9]{1,10}\Z")


def _judged(job: JobDescription, label: str) -> Hits:
    """In the words that log and Event have for the same value."""
    said = label_values.judge(label, job.raw_labels.get(label))
    if said.standing is not label_values.Standing.KNOWN:
        yield Hit(job.label(label), said.message, fix=said.advice)


def fault_scheduling_value(job: JobDescription) -> Hits:
    """A `fault-scheduling` that is none of its words."""
    return _judged(job, label_values.FAULT_SCHEDULING)


def fault_scheduling_absent(job: JobDescription) -> Hits:
    """A job that nobody restarts, though it is one that can be."""
    path = job.label("fault-scheduling")
    told = "fault-scheduling" in job.labels or job.mistaken(path)
    if not told and (job.cards or job.role is not Role.TRAINING):
        yield Hit(path, "is missing")


def pod_rescheduling_value(job: JobDescription) -> Hits:
    """A `pod-rescheduling` that is none of its words."""
    return _judged(job, label_values.POD_RESCHEDULING)


def pod_rescheduling_alone(job: JobDescription) -> Hits:
    """The pod level without the master switch."""
    if job.pod_level and "fault-scheduling" in job.labels and not job.rescheduled:
        yield Hit(job.label("pod-rescheduling"), f"is on, but fault-scheduling is {quoted(job.scheduling)}")


def force_host_network(job: JobDescription) -> Hits:
    """`force` with hostNetwork."""
    if job.scheduling in ("force", "external-force"):
        for task in job.tasks:
            if task.host_network:
                yield Hit(
                    (*task.pod_path, "hostNetwork"), f"is true while fault-scheduling is {job.scheduling}"
                )


def process_recover_enable_value(job: JobDescription) -> Hits:
    """A `process-recover-enable` that is none of its words."""
    return unknown_word(job, "process-recover-enable")


def process_recover_enable_alone(job: JobDescription) -> Hits:
    """`process-recover-enable` without a strategy."""
    if job.labels.get("process-recover-enable") == "on" and not job.strategies and not job.hot_switch:
        yield Hit(job.label("process-recover-enable"), "is on, but no known recover-strategy is given")


def sub_health_strategy(job: JobDescription) -> Hits:
    """A `subHealthyStrategy` that is none of its words."""
    return unknown_word(job, "subHealthyStrategy")


def recover_policy_path(job: JobDescription) -> Hits:
    """A `recover_policy_path` that is none of its words."""
    name = "huawei.com/recover_policy_path"
    known = parameter(name).values
    places = [(job.annotation(name), job.annotations)]
    places += [
        ((*task.template_path, "metadata", "annotations", name), task.annotations) for task in job.tasks
    ]
    for path, found in places:
        value = found.get(name)
        if value is not None and value not in known:
            yield Hit(path, f"is {quoted(value)}, none of {listed(known)}")


def platform_owned(job: JobDescription) -> Hits:
    """`ProcessRecoverStrategy` with somebody else's value."""
    value = job.annotations.get("ProcessRecoverStrategy")
    if value is not None and value != STRATEGY_OURS:
        yield Hit(job.annotation("ProcessRecoverStrategy"), f"is {quoted(value)}: a platform owns the job")


def grace_period(job: JobDescription) -> Hits:
    """With grace, a grace period of 0, or of 900 s and more."""
    if job.scheduling not in ("grace", "external-grace"):
        return
    row = parameter("terminationGracePeriodSeconds")
    for task in job.tasks:
        if task.grace_s is not None and not row.allows(task.grace_s):
            yield Hit((*task.pod_path, row.name), f"is {task.grace_s} with fault-scheduling {job.scheduling}")


def silence_window(job: JobDescription) -> Hits:
    """Silence windows that cannot be read."""
    for name in (silences.CODES, silences.LEVELS):
        findings: list[str] = []
        silences.parse_items(job.annotations.get(name, ""), where=name, findings=findings)
        for finding in findings:
            yield Hit(job.annotation(name), finding.removeprefix(f"{name}: "))


def elastic_scheduling(job: JobDescription) -> Hits:
    """The retired `elastic-scheduling` switched on."""
    if job.labels.get("elastic-scheduling") == "on":
        yield Hit(job.label("elastic-scheduling"), "is on")


def fault_retry_times_value(job: JobDescription) -> Hits:
    """A `fault-retry-times` that is no whole number."""
    value = job.labels.get("fault-retry-times")
    if value is not None and not (INTEGER.match(value) and int(value) >= 0):
        yield Hit(job.label("fault-retry-times"), f"is {quoted(value)}")


def fault_retry_times_absent(job: JobDescription) -> Hits:
    """Software failures that nobody answers."""
    path = job.label("fault-retry-times")
    wants = job.cards or job.role is Role.SERVER
    if not job.rescheduled or not wants or job.mistaken(path):
        return
    value = job.labels.get("fault-retry-times")
    if value is None or (INTEGER.match(value) and int(value) == 0):
        whom = " (needed by process-level recovery)" if job.strategies else ""
        yield Hit(path, ("is missing" if value is None else "is 0") + whom)


def restart_policy(job: JobDescription) -> Hits:
    """Another `restartPolicy` than Never beside `fault-retry-times`."""
    if not job.rescheduled or retry_times(job) <= 0:
        return
    for task in job.tasks:
        if task.restart_policy in ("Always", "OnFailure", "ExitCode") and task.replicas:
            place = task.path if job.kind is JobKind.ASCEND_JOB else task.pod_path
            yield Hit(
                (*place, "restartPolicy"), f"is {task.restart_policy}, but fault-retry-times is above 0"
            )


def backoff_limit_first(job: JobDescription) -> Hits:
    """A `backoffLimit` below `fault-retry-times`."""
    limit, times = job.backoff_limit, retry_times(job)
    if limit is not None and 0 < limit < times:
        yield Hit(("spec", "runPolicy", "backoffLimit"), f"is {limit}, but fault-retry-times is {times}")


def wait_reschedule_timeout(job: JobDescription) -> Hits:
    """A `wait-reschedule-timeout` outside 30 to 270."""
    row = parameter("wait-reschedule-timeout")
    value = job.annotations.get(row.name)
    if value is not None and not (INTEGER.match(value) and row.allows(int(value))):
        yield Hit(job.annotation(row.name), f"is {quoted(value)}")


def wait_reschedule_unread(job: JobDescription) -> Hits:
    """A timeout that nobody waits for."""
    name = "wait-reschedule-timeout"
    if name in job.annotations and not job.strategies:
        yield Hit(job.annotation(name), "is given without a known recover-strategy")


def op_retry_annotation(job: JobDescription) -> Hits:
    """A `mindie-ha.io/hccl-op-retry` that cannot be read."""
    name = "mindie-ha.io/hccl-op-retry"
    value = job.annotations.get(name)
    if value is not None and value not in ("on", "off") and read_op_retry(value) is None:
        yield Hit(job.annotation(name), f"is {quoted(value)}")


def vcjob_policies(job: JobDescription) -> Hits:
    """A vcjob with `policies` beside the pod level."""
    if job.pod_level and job.policies_path is not None:
        yield Hit(job.policies_path, "stands beside pod-rescheduling: on")


def vcjob_max_retry(job: JobDescription) -> Hits:
    """A vcjob's `maxRetry` below `fault-retry-times`."""
    limit = job.max_retry or 3
    if retry_times(job) > limit:
        what = f"is {limit}" if job.max_retry else "is not given, which means 3"
        yield Hit(("spec", "maxRetry"), f"{what}, but fault-retry-times is {retry_times(job)}")


def retry_times(job: JobDescription) -> int:
    """fault-retry-times as a number; 0 where it is none."""
    value = job.labels.get("fault-retry-times", "")
    return int(value) if INTEGER.match(value) else 0


RULES: tuple[JobRule, ...] = (
    JobRule(
        "fault-scheduling-value",
        ERROR,
        fault_scheduling_value,
        "it counts as if the label were absent, and nothing is guessed",
        "write force or grace, in quotes",
        about=("fault-scheduling",),
        kinds=EVERY,
    ),
    JobRule(
        "fault-scheduling-absent",
        WARNING,
        fault_scheduling_absent,
        "without it nobody reschedules the job",
        'write fault-scheduling: "force" (or "grace", or "off" if that is meant)',
        about=("fault-scheduling",),
    ),
    JobRule(
        "pod-rescheduling-value",
        ERROR,
        pod_rescheduling_value,
        "it counts as if the label were absent, and nothing is guessed",
        'write "on" in quotes, or remove the label',
        about=("pod-rescheduling",),
    ),
    JobRule(
        "pod-rescheduling-alone",
        ERROR,
        pod_rescheduling_alone,
        "the pod level works only where fault-scheduling does",
        'write fault-scheduling: "force" or "grace"',
        about=("pod-rescheduling", "fault-scheduling"),
    ),
    JobRule(
        "force-host-network",
        ERROR,
        force_host_network,
        "with grace 0 the new pod may start while the old one still holds its ports on the node",
        "use grace, or do without hostNetwork",
        about=("hostNetwork", "fault-scheduling"),
        kinds=EVERY,
    ),
    JobRule(
        "process-recover-enable-value",
        WARNING,
        process_recover_enable_value,
        "any other value means off",
        "remove the label: the operator sets it wherever recover-strategy is",
        about=("process-recover-enable",),
    ),
    JobRule(
        "process-recover-enable-alone",
        WARNING,
        process_recover_enable_alone,
        "without a strategy nothing is injected, and healthy pods are kept from rescheduling for a "
        "recovery that never comes",
        "write the annotation recover-strategy, or remove the label",
        about=("process-recover-enable", "recover-strategy"),
    ),
    JobRule(
        "sub-health-strategy",
        WARNING,
        sub_health_strategy,
        "any other value means ignore",
        "write ignore, graceExit, forceExit or hotSwitch",
        about=("subHealthyStrategy",),
    ),
    JobRule(
        "recover-policy-path",
        WARNING,
        recover_policy_path,
        "only exactly pod limits recovery; any other value permits widening",
        "write pod, job or pod,job",
        about=("huawei.com/recover_policy_path",),
    ),
    JobRule(
        "platform-owned",
        WARNING,
        platform_owned,
        "with this annotation Volcano deletes nothing, and a value that is not ours says that a platform "
        "does",
        "remove the annotation to hand the job over",
        about=("ProcessRecoverStrategy",),
    ),
    JobRule(
        "grace-period",
        WARNING,
        grace_period,
        "with grace the pods need time for their checkpoint, and after grace-over-time (900 s) they are "
        "deleted anyway",
        "write 1 to 899",
        about=("terminationGracePeriodSeconds", "grace-over-time"),
    ),
    JobRule(
        "silence-window",
        ERROR,
        silence_window,
        "what cannot be read counts as 60 s",
        "write code:seconds with 0 to 86400",
        about=("huawei.com/schedule.filter.faultCode", "huawei.com/schedule.filter.faultLevel"),
    ),
    JobRule(
        "elastic-scheduling",
        WARNING,
        elastic_scheduling,
        "Volcano then forgets the job instead of restarting it",
        "remove it; elastic training is a recover-strategy today",
        about=("elastic-scheduling",),
    ),
    JobRule(
        "fault-retry-times-value",
        ERROR,
        fault_retry_times_value,
        "Volcano counts it as 0, and the operator drops the job's creation: no limit and no rank table",
        'write a whole number in quotes, "3"',
        about=("fault-retry-times",),
        kinds=EVERY,
    ),
    JobRule(
        "fault-retry-times-absent",
        WARNING,
        fault_retry_times_absent,
        "software failures (exit code other than 0) are then never answered",
        'write how many are to be answered, fault-retry-times: "3"',
        about=("fault-retry-times",),
    ),
    JobRule(
        "restart-policy",
        ERROR,
        restart_policy,
        "software failures count only where the container really ends; otherwise the kubelet restarts it "
        "alone (or, with ExitCode, exits 1-127 are final)",
        "write restartPolicy: Never",
        about=("restartPolicy", "fault-retry-times"),
    ),
    JobRule(
        "backoff-limit-first",
        WARNING,
        backoff_limit_first,
        "the lower limit ends rescheduling, and it counts every cause",
        "raise backoffLimit, or leave it out",
        about=("spec.runPolicy.backoffLimit", "fault-retry-times"),
        kinds=ASCEND,
    ),
    JobRule(
        "wait-reschedule-timeout",
        ERROR,
        wait_reschedule_timeout,
        "any other value counts as 270",
        "write 30 to 270, in quotes",
        about=("wait-reschedule-timeout",),
    ),
    JobRule(
        "wait-reschedule-unread",
        WARNING,
        wait_reschedule_unread,
        "only process-level recovery reads it",
        "remove it, or write recover-strategy",
        about=("wait-reschedule-timeout", "recover-strategy"),
    ),
    JobRule(
        "op-retry-annotation",
        ERROR,
        op_retry_annotation,
        "it is not understood, so a link fault is answered without a wait",
        "write on, off, or MaxCnt:3, HoldTime:5000, IntervalTime:1000",
        about=("mindie-ha.io/hccl-op-retry",),
    ),
    JobRule(
        "vcjob-policies",
        ERROR,
        vcjob_policies,
        "Volcano's job controller then restarts the whole job before the pod level can act",
        "remove spec.policies",
        about=("spec.policies", "pod-rescheduling"),
        kinds=VC,
    ),
    JobRule(
        "vcjob-max-retry",
        WARNING,
        vcjob_max_retry,
        "Volcano's job controller gives up first",
        "write maxRetry as large as fault-retry-times",
        about=("spec.maxRetry", "fault-retry-times"),
        kinds=VC,
    ),
)
