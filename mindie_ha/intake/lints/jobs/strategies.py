"""Process-level strategies: which there are, what they need, what they must not meet.

Source: training contract §1.0.5, §3.1-3.4, §5; rescheduling contract §4.6.
"""

from __future__ import annotations

from mindie_ha.intake.jobs.descriptions import JobDescription, JobKind
from mindie_ha.intake.lints.jobs.rules import ASCEND, ERROR, NOTE, VC, WARNING, Hit, Hits, JobRule, quoted
from mindie_ha.policy.parameters.injected import names, recovery_environment
from mindie_ha.policy.parameters.modes import STRATEGIES, TITLES, Framework, Mode
from mindie_ha.policy.parameters.products import ACCELERATOR_TYPES, support

ANNOTATION = "recover-strategy"
RANK_TABLE_MODES = frozenset({Mode.RECOVER, Mode.RETRY})
RANK_TABLES = "rings-config-"


def recover_strategy_unknown(job: JobDescription) -> Hits:
    """A word in `recover-strategy` that names no strategy."""
    for item in job.recover_strategy.split(","):
        if item.strip() and item.strip() not in set(STRATEGIES):
            yield Hit(job.annotation(ANNOTATION), f"lists {quoted(item.strip())}")


def recover_strategy_blank(job: JobDescription) -> Hits:
    """A strategy that is lost because of a blank."""
    for item in job.recover_strategy.split(","):
        if item != item.strip() and item.strip() in set(STRATEGIES):
            yield Hit(
                job.annotation(ANNOTATION), f"has a blank at {item.strip()}, which is therefore not taken"
            )


def recover_strategy_empty(job: JobDescription) -> Hits:
    """A `recover-strategy` that says nothing."""
    if ANNOTATION in job.annotations and not job.recover_strategy.strip(", "):
        yield Hit(job.annotation(ANNOTATION), "is empty")


def process_needs_grace(job: JobDescription) -> Hits:
    """Process-level recovery without grace."""
    if job.strategies and job.is_training and job.scheduling in ("force", "off", "external-force"):
        yield Hit(
            job.label("fault-scheduling"),
            f"is {job.scheduling} beside recover-strategy {job.recover_strategy}",
        )


def elastic_on_vcjob(job: JobDescription) -> Hits:
    """Elastic training on a vcjob."""
    if job.kind is JobKind.VC_JOB and Mode.ELASTIC in job.strategies:
        yield Hit(job.annotation(ANNOTATION), "lists elastic-training on a vcjob")


def elastic_on_mindspore(job: JobDescription) -> Hits:
    """Elastic training with MindSpore."""
    if job.framework is Framework.MINDSPORE and Mode.ELASTIC in job.strategies:
        yield Hit(job.annotation(ANNOTATION), "lists elastic-training, framework is mindspore")


def strategy_on_tensorflow(job: JobDescription) -> Hits:
    """More than the job level with TensorFlow."""
    if job.framework is not Framework.TENSORFLOW:
        return
    if job.recover_strategy:
        yield Hit(job.annotation(ANNOTATION), "is given, framework is tensorflow")
    if job.pod_level:
        yield Hit(job.label("pod-rescheduling"), "is on, framework is tensorflow")


def process_on_inference(job: JobDescription) -> Hits:
    """A `recover-strategy` on a job of a MindIE service."""
    if job.is_inference and job.recover_strategy:
        yield Hit(job.annotation(ANNOTATION), "is given on a job of a MindIE service")


def hot_switch_on_vcjob(job: JobDescription) -> Hits:
    """Hot switching on a vcjob."""
    if job.kind is JobKind.VC_JOB and job.hot_switch:
        yield Hit(job.label("subHealthyStrategy"), "is hotSwitch on a vcjob")


def mode_on_product(job: JobDescription) -> Hits:
    """A mode that no product of the chosen generation has."""
    if not job.is_training:
        return
    for task in job.tasks:
        family = ACCELERATOR_TYPES.get(task.node_selector.get("accelerator-type", ""))
        for mode in dict.fromkeys(job.modes) if family is not None else ():
            if family not in support(mode).families:
                path = (*task.pod_path, "nodeSelector", "accelerator-type")
                yield Hit(path, f"chooses {family}, which have no {TITLES[mode].lower()} ({mode.value})")


def graceful_with_process(job: JobDescription) -> Hits:
    """Process-level recovery beside a device plugin with `-hotReset=1`."""
    if job.around.hot_reset == 1 and job.strategies:
        yield Hit(job.annotation(ANNOTATION), "is given while a device plugin in these files has -hotReset=1")


def injection_lost(job: JobDescription) -> Hits:
    """An own variable that the injected one of the same name replaces."""
    if job.kind is not JobKind.ASCEND_JOB:
        return
    made = set(names(job.framework, inference=job.is_inference))
    if job.framework is not None and not job.is_inference:
        made |= set(recovery(job))
    for task, main in job.mains():
        if not job.is_inference and not task.cards:
            continue
        for name in main.env_paths:
            if name in made:
                yield Hit(main.env_paths[name], f"sets {name}, which the Ascend Operator injects behind it")


def configmap_rank_table(job: JobDescription) -> Hits:
    """A rank table from a ConfigMap, with pod, recover or retry."""
    modes = [
        *(mode for mode in job.strategies if mode in RANK_TABLE_MODES),
        *([Mode.POD] if job.pod_level else []),
    ]
    if job.is_training and modes:
        for path, name in _rank_tables(job):
            yield Hit(path, f"mounts the rank table from ConfigMap {name}, with {', '.join(modes)}")


def configmap_rank_table_advice(job: JobDescription) -> Hits:
    """A rank table from a ConfigMap, at the job level."""
    if (
        job.is_training
        and job.rescheduled
        and not job.pod_level
        and not RANK_TABLE_MODES & set(job.strategies)
    ):
        for path, name in _rank_tables(job):
            yield Hit(path, f"mounts the rank table from ConfigMap {name}")


def recovery(job: JobDescription) -> dict[str, str]:
    """What the operator injects for its strategies (Table 3)."""
    if job.framework is None or not job.is_training:
        return {}
    return recovery_environment(
        job.framework,
        recover_strategy=job.recover_strategy,
        pod_level=job.pod_level,
        hot_switch=job.hot_switch,
    )


def _rank_tables(job: JobDescription) -> list[tuple[tuple[str | int, ...], str]]:
    return [
        ((*task.pod_path, "volumes"), name)
        for task in job.tasks
        for name in dict.fromkeys(task.config_map_volumes.values())
        if name.startswith(RANK_TABLES) and task.cards
    ]


RULES: tuple[JobRule, ...] = (
    JobRule(
        "recover-strategy-unknown",
        ERROR,
        recover_strategy_unknown,
        "an unknown word is dropped",
        "write some of retry, recover, recover-in-place, elastic-training, dump, exit",
        about=("recover-strategy",),
    ),
    JobRule(
        "recover-strategy-blank",
        ERROR,
        recover_strategy_blank,
        "operator and ClusterD do not trim: the word is unknown to them",
        "separate by commas alone",
        about=("recover-strategy",),
    ),
    JobRule(
        "recover-strategy-empty",
        WARNING,
        recover_strategy_empty,
        "the operator still switches process-level recovery on, so healthy pods are kept from rescheduling",
        "name a strategy, or remove the annotation",
        about=("recover-strategy", "process-recover-enable"),
    ),
    JobRule(
        "process-needs-grace",
        ERROR,
        process_needs_grace,
        "process-level recovery needs grace: the pods must live until their processes were told",
        'write fault-scheduling: "grace"',
        about=("fault-scheduling", "recover-strategy"),
    ),
    JobRule(
        "elastic-on-vcjob",
        ERROR,
        elastic_on_vcjob,
        "elastic training is for AscendJobs only",
        "leave elastic-training out",
        about=("recover-strategy",),
        kinds=VC,
    ),
    JobRule(
        "elastic-on-mindspore",
        ERROR,
        elastic_on_mindspore,
        "elastic training is for PyTorch only; nothing is injected for it",
        "leave elastic-training out",
        about=("recover-strategy", "framework"),
    ),
    JobRule(
        "strategy-on-tensorflow",
        ERROR,
        strategy_on_tensorflow,
        "TensorFlow jobs have the job level only",
        "remove it",
        about=("recover-strategy", "pod-rescheduling", "framework"),
    ),
    JobRule(
        "process-on-inference",
        ERROR,
        process_on_inference,
        "an inference job gets the inference environment only, and has no process level",
        "remove it",
        about=("recover-strategy",),
    ),
    JobRule(
        "hot-switch-on-vcjob",
        ERROR,
        hot_switch_on_vcjob,
        "hot switching is for AscendJobs only",
        "write ignore, graceExit or forceExit",
        about=("subHealthyStrategy",),
        kinds=VC,
    ),
    JobRule(
        "mode-on-product",
        WARNING,
        mode_on_product,
        "the mode is documented for other products only",
        "see the table of products in docs/jobs.md",
        about=("accelerator-type",),
    ),
    JobRule(
        "graceful-with-process",
        ERROR,
        graceful_with_process,
        "graceful tolerance and process-level recovery exclude each other: with both, the job level is used",
        "set -hotReset=2 or -1 on the device plugin",
        about=("hotReset", "recover-strategy"),
    ),
    JobRule(
        "injection-lost",
        WARNING,
        injection_lost,
        "of two variables with one name the later counts, and injected ones come later",
        "remove it, or export it in the start script",
        about=(
            "HIGH_AVAILABILITY",
            "PROCESS_RECOVER",
            "ELASTIC_PROCESS_RECOVER_ENABLE",
            "ENABLE_RESTART_FAULT_PROCESS",
            "MINDIO_FOR_MINDSPORE",
            "MS_ENABLE_THM",
        ),
        kinds=ASCEND,
    ),
    JobRule(
        "configmap-rank-table",
        ERROR,
        configmap_rank_table,
        "a ConfigMap reaches the pods late and not at the same time: survivors and replacements read "
        "different tables",
        "mount the rank table from shared storage",
        about=("rank table", "pod-rescheduling", "recover-strategy"),
    ),
    JobRule(
        "configmap-rank-table-advice",
        NOTE,
        configmap_rank_table_advice,
        "in a large cluster the delay of a ConfigMap cannot be controlled",
        "use shared storage for the rank table in a large cluster",
        about=("rank table",),
    ),
)
