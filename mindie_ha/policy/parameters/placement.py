"""Parameters of placement: blocks of cards, policies, gangs.

Source: rescheduling contract §1.1, §4.2; rank table contract §6.1, §6.4.
"""

from __future__ import annotations

from mindie_ha.policy.parameters.metadata import CLUSTERD, OPERATOR, US, VOLCANO
from mindie_ha.policy.parameters.rows import Parameter, Place

SCHEDULE_POLICIES = (
    "chip4-node8", "chip1-node2", "chip4-node4", "chip8-node8", "chip8-node16", "chip2-node8", "chip2-node16",
    "chip2-node8-sp", "chip2-node16-sp", "chip4-node16", "chip1-node8", "chip1-node16", "chip8-node8-sp",
    "chip8-node8-ra64-sp", "chip1-softShareDev", "multilevel",
)  # fmt: skip
SUPER_POD_POLICIES = ("chip2-node16-sp", "chip2-node8-sp", "multilevel")
"""The only schedule policies under which the rank table gets a super-pod list (rank table contract §6.1)."""

PLACEMENT: tuple[Parameter, ...] = (
    Parameter(
        "tor-affinity",
        Place.JOB_LABEL,
        "Placement by switches.",
        (VOLCANO,),
        values=("large-model-schema", "normal-schema", "null"),
        default="null",
    ),
    Parameter(
        "sp-block",
        Place.JOB_ANNOTATION,
        "Cards in a logical super-pod: a multiple of the cards of a pod, and a divisor of those of the "
        "job. Of a "
        "MindIE instance, all its cards.",
        (VOLCANO, OPERATOR, CLUSTERD, US),
        bounds=(1, 1_000_000),
        default="all cards of the job",
    ),
    Parameter(
        "ra-block",
        Place.JOB_ANNOTATION,
        "Cards in a rack block; the pod level widens to it first.",
        (VOLCANO, CLUSTERD, US),
        values=("1", "2", "4", "8", "16", "32", "64"),
    ),
    Parameter(
        "super-pod-affinity",
        Place.JOB_LABEL,
        "`soft` lets a job use nodes that are left over.",
        (VOLCANO, OPERATOR),
        values=("soft", "hard"),
        default="hard",
    ),
    Parameter(
        "huawei.com/schedule_policy",
        Place.JOB_ANNOTATION,
        "Layout of cards. Only " + ", ".join(SUPER_POD_POLICIES) + " give the rank table a super-pod list.",
        (VOLCANO, OPERATOR),
        values=SCHEDULE_POLICIES,
        default="by accelerator-type",
    ),
    Parameter(
        "huawei.com/affinity-config",
        Place.JOB_ANNOTATION,
        "Block sizes of a `multilevel` job in pods, `level1=2,level2=4`; each a multiple of the last.",
        (VOLCANO, OPERATOR),
    ),
    Parameter(
        "accelerator-type",
        Place.POD_FIELD,
        "Node selector: the product.",
        (VOLCANO, OPERATOR),
    ),
    Parameter(
        "sp-fit",
        Place.JOB_ANNOTATION,
        "`idlest` chooses the emptiest physical super-pod; anything else fills one first.",
        (VOLCANO,),
        default="fill first",
    ),
    Parameter(
        "huawei.com/schedule_minAvailable",
        Place.JOB_ANNOTATION,
        "Size of the gang of a workload whose PodGroup has none (MinMember 1).",
        (VOLCANO,),
        bounds=(1, 20_000),
        default="all pods",
    ),
    Parameter(
        "huawei.com/skip-ascend-plugin",
        Place.JOB_ANNOTATION,
        "`enabled`: Volcano's Ascend plugin ignores the job, its faults too.",
        (VOLCANO,),
        values=("enabled",),
        default="absent",
    ),
    Parameter(
        "huawei.com/infer_service_schedule",
        Place.JOB_ANNOTATION,
        "`true`: the jobs of a service, told by label `inferserviceid`, are placed together.",
        (VOLCANO,),
        values=("true",),
        default="absent",
    ),
    Parameter(
        "inferserviceid",
        Place.JOB_LABEL,
        "The service of `huawei.com/infer_service_schedule`.",
        (VOLCANO,),
    ),
    Parameter(
        "huawei.com/schedule_enable_dequeue",
        Place.JOB_ANNOTATION,
        "`on`: a PodGroup that is queued but cannot be placed goes back to Pending after 5 minutes.",
        (VOLCANO,),
        values=("on",),
        default="off",
    ),
    Parameter(
        "podgroup-sched-enable",
        Place.JOB_LABEL,
        "Batch scheduling of openFuyao.",
        (VOLCANO,),
        values=("true", "false"),
        default="false",
    ),
    Parameter(
        "ome.io/inferenceservice",
        Place.JOB_LABEL,
        "Marks a service of OME: Volcano never widens beyond the faulty pods.",
        (VOLCANO,),
        default="absent",
    ),
    Parameter(
        "distributed",
        Place.JOB_LABEL,
        "300I Duo: whether several cards work together.",
        (VOLCANO,),
        values=("true", "false"),
    ),
    Parameter("duo", Place.JOB_LABEL, "300I Duo.", (VOLCANO,), values=("true", "false")),
    Parameter(
        "npu-310-strategy",
        Place.JOB_LABEL,
        "300I Duo: place whole cards or single chips.",
        (VOLCANO,),
        values=("card", "chip"),
    ),
    Parameter(
        "minReplicas",
        Place.JOB_LABEL,
        "Of the retired elastic training of vcjobs; nobody reads it today.",
        ("Resilience Controller",),
    ),
    Parameter(
        "spec.runPolicy.schedulingPolicy.minResources",
        Place.JOB_FIELD,
        "Least resources of the gang.",
        (OPERATOR, VOLCANO),
        default="the sum of all pods",
    ),
    Parameter(
        "spec.runPolicy.schedulingPolicy.priorityClass",
        Place.JOB_FIELD,
        "Priority of the gang.",
        (OPERATOR, VOLCANO),
    ),
)
