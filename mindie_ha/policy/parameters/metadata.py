"""Parameters in labels, annotations and fields of a job.

Source: rescheduling contract §1.1, §4.2; training contract §3.1-3.3; motor contract §3.2, §4.1.
"""

from __future__ import annotations

from mindie_ha.policy.parameters.modes import STRATEGIES, Mode
from mindie_ha.policy.parameters.rows import Parameter, Place

PROCESS = frozenset({Mode.RECOVER, Mode.IN_PLACE, Mode.RETRY, Mode.ELASTIC})
KUBERNETES = frozenset({Mode.JOB, Mode.POD})
US = "mindie-ha"
VOLCANO = "Volcano"
OPERATOR = "Ascend Operator"
CLUSTERD = "ClusterD"

MINDIE_APPS = ("mindie-ms-controller", "mindie-ms-coordinator", "mindie-ms-server")
DEPLOY_LABELS = ("grt-group/deploy-server", "grt-server/deploy-server")

METADATA: tuple[Parameter, ...] = (
    Parameter(
        "fault-scheduling",
        Place.JOB_LABEL,
        "Master switch. `force` deletes with grace 0, `grace` lets the pods end first (for a checkpoint). "
        "`external-*`: Volcano deletes nothing and only marks pods. Without it a job is never rescheduled.",
        (VOLCANO, CLUSTERD, US),
        values=("grace", "force", "external-grace", "external-force", "off"),
        default="off",
        needed_by=KUBERNETES | PROCESS,
        conflicts="`force` must not meet `hostNetwork`; process-level recovery needs `grace`",
    ),
    Parameter(
        "pod-rescheduling",
        Place.JOB_LABEL,
        "Replace only the faulty pods first. Of MindIE only for Controller and Coordinator with a standby.",
        (VOLCANO, CLUSTERD, OPERATOR, US),
        values=("on", "off"),
        default="off",
        needed_by=frozenset({Mode.POD}),
        conflicts="a vcjob must have no `policies` block; no rank table from a ConfigMap",
    ),
    Parameter(
        "process-recover-enable",
        Place.JOB_LABEL,
        "Process-level recovery. Set to `on` by the operator wherever `recover-strategy` is; ClusterD and "
        "we "
        "set `pause` when it failed.",
        (VOLCANO, CLUSTERD, US),
        values=("on", "pause", "off"),
        default="off",
        needed_by=PROCESS,
        conflicts="graceful fault tolerance (`-hotReset=1`): with both, the job level is used",
        injected=True,
    ),
    Parameter(
        "recover-strategy",
        Place.JOB_ANNOTATION,
        "Process-level strategies, comma-separated without blanks. The order in which they are tried is "
        "fixed.",
        (OPERATOR, CLUSTERD, US),
        values=tuple(STRATEGIES),
        needed_by=PROCESS,
        conflicts="`elastic-training` not on a vcjob, and only for PyTorch; none for TensorFlow",
    ),
    Parameter(
        "wait-reschedule-timeout",
        Place.JOB_ANNOTATION,
        "Seconds that process-level recovery waits for the replaced pod before the next strategy.",
        (CLUSTERD, US),
        bounds=(30, 270),
        default="270",
    ),
    Parameter(
        "fault-retry-times",
        Place.JOB_LABEL,
        "How many software failures (exit code other than 0) are answered; 0: none. Never grows back.",
        (VOLCANO, OPERATOR, US),
        bounds=(0, 2_147_483_647),
        default="0",
        needed_by=KUBERNETES | {Mode.RECOVER, Mode.ELASTIC},
        conflicts="`restartPolicy` has to be Never; with `backoffLimit`, the lower one ends it",
    ),
    Parameter(
        "subHealthyStrategy",
        Place.JOB_LABEL,
        "What becomes of a job on hardware that is sick but works.",
        (VOLCANO, CLUSTERD, OPERATOR, US),
        values=("ignore", "graceExit", "forceExit", "hotSwitch"),
        default="ignore",
        needed_by=frozenset({Mode.HOT_SWITCH}),
    ),
    Parameter(
        "huawei.com/recover_policy_path",
        Place.POD_ANNOTATION,
        "How far recovery may widen; exactly `pod` forbids the job level. On the job, too.",
        (VOLCANO, US),
        values=("pod", "job", "pod,job"),
        default="pod,job",
    ),
    Parameter(
        "ProcessRecoverStrategy",
        Place.JOB_ANNOTATION,
        "Present with any value: Volcano deletes nothing. We set it to our name; another value means that a "
        "platform owns the job.",
        (VOLCANO, CLUSTERD, US),
        default="absent",
    ),
    Parameter(
        "mindie-ha.io/hccl-op-retry",
        Place.JOB_ANNOTATION,
        "What we cannot see in the container: `on`, `off`, or `MaxCnt:3, HoldTime:5000, IntervalTime:1000`.",
        (US,),
        default="unknown, no wait",
    ),
    Parameter(
        "huawei.com/schedule.filter.faultCode",
        Place.JOB_ANNOTATION,
        "Codes (`code` or `code:seconds`) that the job bears for a while; a code's window beats its level's.",
        (CLUSTERD, US),
        bounds=(0, 86_400),
        default="60 s where no time is given",
    ),
    Parameter(
        "huawei.com/schedule.filter.faultLevel",
        Place.JOB_ANNOTATION,
        "The same by level. A MindIE Server without it bears RestartRequest for 60 s.",
        (CLUSTERD, US),
        bounds=(0, 86_400),
        default="60 s where no time is given",
    ),
    Parameter(
        "framework",
        Place.JOB_LABEL,
        "Selects replica types and environment. Mandatory.",
        (OPERATOR,),
        values=("pytorch", "mindspore", "tensorflow"),
    ),
    Parameter(
        "app",
        Place.POD_LABEL,
        "Role of a job in a MindIE service; with `jobID` it makes the job an inference job.",
        (OPERATOR, VOLCANO, CLUSTERD, US),
        values=MINDIE_APPS,
    ),
    Parameter(
        "jobID",
        Place.POD_LABEL,
        "The same for every job, pod and ConfigMap of one service.",
        (OPERATOR, VOLCANO, CLUSTERD, US),
    ),
    Parameter(
        "ring-controller.atlas",
        Place.POD_LABEL,
        "Family of cards.",
        (OPERATOR, VOLCANO, "device plugin"),
        values=(
            "ascend-910",
            "ascend-910b",
            "ascend-310",
            "ascend-310P",
            "ascend-310p",
            "ascend-npu",
            "huawei.com.npu",
        ),
    ),
    Parameter(
        "grt-group/deploy-server",
        Place.RANK_TABLE,
        "Exactly one of this and `grt-server/deploy-server` stands beside `jobID`. ClusterD builds no "
        "table of "
        "the service while one ConfigMap has none or both; we publish one without it, and leave out one "
        "with both.",
        (CLUSTERD, US),
    ),
    Parameter(
        "mind-cluster/scaling-rule",
        Place.JOB_LABEL,
        "ConfigMap with the scaling rule; needs `mind-cluster/group-name` and `jobID`.",
        (OPERATOR,),
    ),
    Parameter(
        "mind-cluster/group-name",
        Place.JOB_LABEL,
        "Group of an instance in the scaling rule.",
        (OPERATOR,),
    ),
    Parameter(
        "scaleout-type",
        Place.JOB_LABEL,
        "Port type in a rank table of version 2.0.",
        (OPERATOR,),
        values=("ROCE", "UBOE"),
        default="by priority RoCE, UBoE, UBG",
    ),
    Parameter(
        "elastic-scheduling",
        Place.JOB_LABEL,
        "Retired elastic training of vcjobs; `on` makes Volcano forget the job instead of restarting it.",
        (VOLCANO,),
        values=("on", "off"),
        default="off",
    ),
    Parameter(
        "spec.schedulerName",
        Place.JOB_FIELD,
        "Who places the pods; gang scheduling and rescheduling are Volcano's.",
        (OPERATOR,),
        default="volcano",
    ),
    Parameter(
        "spec.successPolicy",
        Place.JOB_FIELD,
        "Checked, not used.",
        (OPERATOR,),
        values=("AllWorkers",),
        default="empty",
    ),
    Parameter(
        "spec.runPolicy.backoffLimit",
        Place.JOB_FIELD,
        "Rounds of re-creation, whatever the cause; 0 or absent: no limit.",
        (OPERATOR, US),
        default="no limit",
    ),
    Parameter(
        "spec.runPolicy.schedulingPolicy.queue",
        Place.JOB_FIELD,
        "Volcano queue; must be there wherever schedulingPolicy is.",
        (OPERATOR, VOLCANO),
        default="default",
    ),
    Parameter(
        "spec.runPolicy.schedulingPolicy.minAvailable",
        Place.JOB_FIELD,
        "Size of the gang, and Volcano's threshold of a recovery. Write the number of all pods.",
        (OPERATOR, VOLCANO),
        default="all pods",
    ),
    Parameter(
        "spec.replicaSpecs",
        Place.JOB_FIELD,
        "Replica types of the framework: Master, Scheduler or Chief with one pod, and Worker.",
        (OPERATOR, US),
    ),
    Parameter(
        "spec.replicaSpecs.*.replicas",
        Place.JOB_FIELD,
        "Pods of a replica type; exactly one of the leader's.",
        (OPERATOR, US),
        bounds=(0, 20_000),
        default="1",
    ),
    Parameter(
        "restartPolicy",
        Place.JOB_FIELD,
        "Of a replica type; beats that of the pod template. `fault-retry-times` needs Never. With "
        "ExitCode, exits "
        "1-127 are final.",
        (OPERATOR, "kubelet", US),
        values=("Never", "Always", "OnFailure", "ExitCode"),
        default="Never",
    ),
    Parameter(
        "spec.maxRetry",
        Place.JOB_FIELD,
        "vcjob: restarts by Volcano's job controller.",
        ("Volcano job controller",),
        default="3, also for 0",
    ),
    Parameter(
        "spec.policies",
        Place.JOB_FIELD,
        "vcjob: reactions of the job controller; must be absent with `pod-rescheduling`.",
        ("Volcano job controller",),
    ),
    Parameter(
        "terminationGracePeriodSeconds",
        Place.POD_FIELD,
        "With `grace`: time for a checkpoint. Above 0, below `grace-over-time`.",
        ("kubelet", US),
        bounds=(1, 899),
        default="30",
    ),
    Parameter(
        "hostNetwork",
        Place.POD_FIELD,
        "Pods in the network of their node: with `force` the new pod meets the ports of the old one.",
        ("kubelet",),
        values=("true", "false"),
        default="false",
        conflicts="`fault-scheduling: force`",
    ),
    Parameter(
        "container name",
        Place.CONTAINER,
        "Must be `ascend`; nothing is injected into any other.",
        (OPERATOR, US),
        values=("ascend",),
    ),
    Parameter(
        "taskd-port",
        Place.CONTAINER,
        "containerPort 9601 with this name in every pod: TaskD Manager and its agents.",
        ("TaskD",),
        bounds=(9601, 9601),
        default="none",
        needed_by=frozenset({Mode.POD, Mode.HOT_SWITCH, Mode.STRESS_TEST, Mode.LINK_SWITCH}) | PROCESS,
    ),
    Parameter(
        "rank table",
        Place.STORAGE,
        "From shared storage, not from a ConfigMap, in a large cluster (a ConfigMap reaches pods late); "
        "for pod, "
        "recover and retry in any.",
        ("training program",),
        needed_by=frozenset({Mode.POD, Mode.RECOVER, Mode.RETRY}),
        conflicts="a ConfigMap rank table with pod, recover or retry",
    ),
    Parameter(
        "grt-server/deploy-server",
        Place.RANK_TABLE,
        "In place of `grt-group/deploy-server`, never beside it.",
        (CLUSTERD, US),
    ),
    Parameter(
        "mx-consumer-cim",
        Place.RANK_TABLE,
        "`true`: ClusterD watches the ConfigMap.",
        (CLUSTERD,),
        values=("true",),
    ),
    Parameter(
        "spec.runPolicy.cleanPodPolicy",
        Place.JOB_FIELD,
        "Which pods of a finished job are removed.",
        (OPERATOR,),
        values=("None", "Running", "All"),
        default="None",
    ),
    Parameter(
        "spec.runPolicy.ttlSecondsAfterFinished",
        Place.JOB_FIELD,
        "A finished job is deleted after so long; the documents call it meaningless.",
        (OPERATOR,),
        default="never",
    ),
)
