"""Broken variants of clean manifests: one small change each; exactly that rule must find it."""

from __future__ import annotations

from tests.intake.job_patches import (
    GANG,
    MAIN,
    MASTER,
    NOTES,
    SCHEDULER,
    WORKER,
    Variant,
    all_of,
    command,
    label,
    note,
    options,
    plugin,
    put,
    rank_table,
    variable,
)

PROCESS, POD, ELASTIC = "pytorch_process", "pytorch_pod", "pytorch_elastic"
MINDSPORE, TENSORFLOW, VCJOB = "mindspore_process", "tensorflow_job", "vcjob_pod"
SERVER, COORDINATOR, PLUGIN, ENGINE = (
    "mindie_server",
    "mindie_coordinator",
    "device_plugin",
    "engine_deployment",
)

SHAPES = (
    Variant("label-syntax", PROCESS, label("team", "a b")),
    Variant("not-a-string", SERVER, label("fault-retry-times", 10000), "number"),
    Variant("not-a-string", PROCESS, variable("A", 1), "variable"),
    Variant("not-a-string", ENGINE, put("spec template metadata labels app", 3), "deployment", "Deployment"),
    Variant("wrong-type", PROCESS, put(f"{GANG} minAvailable", "4")),
    Variant("no-name", PROCESS, put("metadata name", None)),
    Variant("bad-name", PROCESS, put("metadata name", "Pretrain"), "upper-case"),
    Variant("bad-name", PROCESS, put("metadata name", "a" * 60), "too-long"),
    Variant("no-pods", VCJOB, all_of(put("spec tasks", []), put("spec minAvailable", None)), kind="Job"),
    Variant("empty-replica", COORDINATOR, put(WORKER, {}), "mapping"),
    Variant("framework", PROCESS, label("framework", "jax"), "unknown"),
    Variant("framework", PROCESS, label("framework", None), "absent"),
    Variant(
        "replica-type",
        PROCESS,
        lambda body: body["spec"]["replicaSpecs"].update(Slave=body["spec"]["replicaSpecs"].pop("Worker")),
    ),
    Variant(
        "replicas-range",
        PROCESS,
        all_of(put(f"{WORKER} replicas", 20_001), put(f"{GANG} minAvailable", 20_002)),
    ),
    Variant("leader-replicas", PROCESS, all_of(put(f"{MASTER} replicas", 2), put(f"{GANG} minAvailable", 5))),
    Variant("no-leader", PROCESS, all_of(put(MASTER, None), put(f"{GANG} minAvailable", 3)), "pytorch"),
    Variant(
        "no-leader", MINDSPORE, all_of(put(SCHEDULER, None), put(f"{GANG} minAvailable", 3)), "mindspore"
    ),
    Variant("container-ascend", COORDINATOR, put(f"{MAIN} name", "main")),
    Variant("no-image", PROCESS, put(f"{MAIN} image", None)),
    Variant("restart-policy-unknown", PROCESS, put(f"{WORKER} restartPolicy", "Sometimes")),
    Variant("success-policy", PROCESS, put("spec successPolicy", "Any")),
    Variant("queue", PROCESS, put(f"{GANG} queue", None)),
    Variant("scheduler", PROCESS, put("spec schedulerName", "default-scheduler")),
    Variant("min-available-high", PROCESS, put(f"{GANG} minAvailable", 5)),
    Variant("min-available-low", COORDINATOR, put(f"{GANG} minAvailable", 1)),
    Variant("min-available-low", VCJOB, put("spec minAvailable", 1), "vcjob", "Job"),
    Variant("scaling-rule", SERVER, label("mind-cluster/scaling-rule", "rule")),
    Variant("scaling-group", SERVER, label("mind-cluster/group-name", "group0")),
    Variant("scaleout-type", PROCESS, label("scaleout-type", "TCP")),
)

KEYS = (
    Variant("misplaced", TENSORFLOW, put(NOTES, {"subHealthyStrategy": "ignore"}), "label-as-annotation"),
    Variant("misplaced", PROCESS, label("wait-reschedule-timeout", "60"), "annotation-as-label"),
    Variant("misspelt", TENSORFLOW, label("pod_rescheduling", "on"), "label"),
    Variant("misspelt", TENSORFLOW, put(NOTES, {"recover-stratgy": "recover"}), "annotation"),
    Variant("plugin-skipped", PROCESS, note("huawei.com/skip-ascend-plugin", "enabled")),
)
SWITCHES = (
    Variant(
        "fault-scheduling-value",
        PROCESS,
        all_of(label("fault-scheduling", "On "), label("fault-retry-times", None)),
    ),
    Variant(
        "fault-scheduling-value",
        ENGINE,
        put("spec template metadata labels fault-scheduling", "Grace"),
        "deployment",
        "Deployment",
    ),
    Variant("fault-scheduling-absent", COORDINATOR, label("fault-scheduling", None)),
    *(
        Variant("pod-rescheduling-value", POD, label("pod-rescheduling", value), value.strip() or "blank")
        for value in ("true", "On ", "yes")
    ),
    Variant("pod-rescheduling-value", COORDINATOR, label("pod-rescheduling", True), "unquoted-on-of-ms"),
    Variant("pod-rescheduling-value", POD, label("pod-rescheduling", True), "unquoted-on"),
    Variant("fault-scheduling-value", COORDINATOR, label("fault-scheduling", False), "unquoted-off"),
    Variant("pod-rescheduling-alone", COORDINATOR, label("fault-scheduling", "off")),
    Variant("force-host-network", POD, put(f"{WORKER} template spec hostNetwork", True)),
    Variant("process-recover-enable-value", PROCESS, label("process-recover-enable", "true")),
    Variant("process-recover-enable-alone", TENSORFLOW, label("process-recover-enable", "on")),
    Variant("sub-health-strategy", PROCESS, label("subHealthyStrategy", "hotswitch")),
    Variant(
        "recover-policy-path",
        POD,
        put(f"{MASTER} template metadata annotations", {"huawei.com/recover_policy_path": "pods"}),
    ),
    Variant("platform-owned", PROCESS, note("ProcessRecoverStrategy", "")),
    Variant("grace-period", PROCESS, put(f"{MASTER} template spec terminationGracePeriodSeconds", 900)),
    Variant("silence-window", SERVER, note("huawei.com/schedule.filter.faultCode", "80E01801:90000"), "code"),
    Variant(
        "silence-window", SERVER, note("huawei.com/schedule.filter.faultLevel", "RestartRequest:x"), "level"
    ),
    Variant("elastic-scheduling", VCJOB, label("elastic-scheduling", "on"), kind="Job"),
    Variant("fault-retry-times-value", SERVER, label("fault-retry-times", "many")),
    Variant("fault-retry-times-absent", PROCESS, label("fault-retry-times", None), "process"),
    Variant("fault-retry-times-absent", TENSORFLOW, label("fault-retry-times", "0"), "zero"),
    Variant("restart-policy", SERVER, put(f"{MASTER} restartPolicy", "Always"), "ascendjob"),
    Variant(
        "restart-policy", VCJOB, put("spec tasks 0 template spec restartPolicy", "OnFailure"), "vcjob", "Job"
    ),
    Variant("backoff-limit-first", SERVER, put("spec runPolicy backoffLimit", 3)),
    *(
        Variant("wait-reschedule-timeout", ELASTIC, note("wait-reschedule-timeout", value), value)
        for value in ("29", "271", "5m")
    ),
    Variant("wait-reschedule-unread", POD, put(NOTES, {"wait-reschedule-timeout": "60"})),
    Variant("op-retry-annotation", PROCESS, note("mindie-ha.io/hccl-op-retry", "MaxCnt=3")),
    Variant(
        "vcjob-policies",
        VCJOB,
        put("spec policies", [{"event": "PodFailed", "action": "RestartJob"}]),
        kind="Job",
    ),
    Variant("vcjob-max-retry", VCJOB, label("fault-retry-times", "10"), kind="Job"),
)

STRATEGIES = (
    Variant("recover-strategy-unknown", PROCESS, note("recover-strategy", "retry,recover,restart")),
    Variant("recover-strategy-blank", PROCESS, note("recover-strategy", "retry,recover, dump")),
    Variant("recover-strategy-empty", TENSORFLOW, put(NOTES, {"recover-strategy": ""})),
    Variant("process-needs-grace", PROCESS, label("fault-scheduling", "force")),
    Variant(
        "elastic-on-vcjob",
        VCJOB,
        all_of(
            put(NOTES, {"recover-strategy": "elastic-training"}),
            label("fault-scheduling", "grace"),
            put("spec tasks 0 template spec containers 0 command 2", "bash train_start.sh"),
            put(
                "spec tasks 0 template spec containers 0 env",
                [{"name": "MINDIO_WAIT_MINDX_TIME", "value": "60"}],
            ),
        ),
        kind="Job",
    ),
    Variant("elastic-on-mindspore", MINDSPORE, note("recover-strategy", "recover,elastic-training")),
    Variant(
        "strategy-on-tensorflow",
        TENSORFLOW,
        all_of(put(NOTES, {"recover-strategy": "recover"}), label("fault-scheduling", "grace")),
        "process",
    ),
    Variant("strategy-on-tensorflow", TENSORFLOW, label("pod-rescheduling", "on"), "pod"),
    Variant("process-on-inference", SERVER, note("recover-strategy", "recover")),
    Variant(
        "hot-switch-on-vcjob",
        VCJOB,
        all_of(
            label("subHealthyStrategy", "hotSwitch"),
            put("spec tasks 0 template spec containers 0 command 2", "bash train_start.sh"),
        ),
        kind="Job",
    ),
    Variant(
        "mode-on-product",
        PROCESS,
        put(f"{MASTER} template spec nodeSelector accelerator-type", "module"),
    ),
    Variant("injection-lost", PROCESS, variable("PROCESS_RECOVER", "off"), "recovery"),
    Variant("injection-lost", PROCESS, variable("MASTER_ADDR", "10.0.0.1"), "rendezvous"),
    Variant("injection-lost", SERVER, variable("APP_TYPE", "x"), "inference"),
    Variant("configmap-rank-table", PROCESS, rank_table("rings-config-pretrain"), "process"),
    Variant("configmap-rank-table", POD, rank_table("rings-config-pretrain-pod"), "pod"),
    Variant(
        "configmap-rank-table-advice",
        TENSORFLOW,
        put(
            f"{WORKER} template spec volumes 0",
            {"name": "ranktable", "configMap": {"name": "rings-config-resnet"}},
        ),
    ),
)

PROGRAMS = (
    Variant(
        "taskd-port", PROCESS, put(f"{WORKER} template spec containers 0 ports", None), "one-pod-without"
    ),
    Variant("taskd-port", POD, put(f"{MAIN} ports 0 containerPort", 9602), "other-number"),
    Variant("taskd-port-name", PROCESS, put(f"{MAIN} ports 0 name", "taskd")),
    Variant("taskd-process-enable", PROCESS, command('export TASKD_PROCESS_ENABLE="off"'), "process"),
    Variant(
        "taskd-process-enable",
        POD,
        all_of(put(f"{MAIN} args", ["bash train_start.sh"]), variable("TASKD_PROCESS_ENABLE", "on")),
        "pod",
    ),
    Variant("taskd-process-enable-unseen", POD, put(f"{MAIN} args", ["bash train_start.sh"])),
    Variant("taskd-manager", PROCESS, put(f"{MAIN} args", ["torchrun --nnodes 4 pretrain_gpt.py"])),
    Variant("ld-preload", PROCESS, command("export LD_PRELOAD=/usr/lib/libjemalloc.so")),
    Variant("mindio-wait-time", ELASTIC, variable("MINDIO_WAIT_MINDX_TIME", "30"), "low"),
    Variant("mindio-wait-time", ELASTIC, put(f"{MAIN} env", None), "absent"),
    Variant("variable-range", PROCESS, variable("MINDIO_WAIT_MINDX_TIME", "3601"), "mindio"),
    Variant("variable-range", PROCESS, command("export TASKD_PROCESS_INTERVAL=50"), "exported"),
    Variant("high-availability-pair", PROCESS, options("--enable-hbmfault-repair --enable-worker-reboot")),
    Variant(
        "strategy-switch", PROCESS, options("--enable-high-availability --enable-hbmfault-repair"), "lacks"
    ),
    Variant(
        "strategy-switch",
        ELASTIC,
        options("--enable-high-availability --enable-elastic-training --enable-worker-reboot"),
        "too-many",
    ),
    Variant(
        "hccl-op-retry-enable",
        TENSORFLOW,
        command('export HCCL_OP_RETRY_ENABLE="L0=0,L1=1"', leader="x Chief"),
    ),
    Variant(
        "hccl-op-retry-params",
        TENSORFLOW,
        command(
            'export HCCL_OP_RETRY_ENABLE="L0:0, L1:1"',
            'export HCCL_OP_RETRY_PARAMS="MaxCnt:three"',
            leader="x Chief",
        ),
    ),
    Variant(
        "hccl-op-retry-unused",
        TENSORFLOW,
        command('export HCCL_OP_RETRY_PARAMS="MaxCnt:3"', leader="x Chief"),
    ),
    Variant("watchdog", PROCESS, command("export HCCL_ASYNC_ERROR_HANDLING=1")),
    Variant("ms-enable-tft", MINDSPORE, command('export MS_ENABLE_TFT="{TTP:1}"', leader=SCHEDULER)),
    Variant("mindspore-watchdog", MINDSPORE, note("recover-strategy", "retry")),
    Variant("max-restarts", ELASTIC, options("--max_restarts none"), "word"),
    Variant("max-restarts", POD, options("--max_restarts=40000"), "too-many"),
    Variant("monitor-interval", PROCESS, options("--monitor_interval 0")),
    Variant("npu-memory-caching", PROCESS, variable("PYTORCH_NO_NPU_MEMORY_CACHING", "1")),
)

SERVICES = (
    Variant(
        "mindie-app",
        SERVER,
        all_of(label("app", "mindie-ms-servers"), note("huawei.com/schedule_policy", "chip2-node16-sp")),
    ),
    Variant("mindie-job-id", COORDINATOR, label("jobID", None)),
    Variant(
        "mindie-pod-labels", COORDINATOR, put(f"{WORKER} template metadata labels jobID", "other"), "differs"
    ),
    Variant("mindie-pod-labels", SERVER, put(f"{MASTER} template metadata labels app", None), "absent"),
    Variant("card-family", SERVER, label("ring-controller.atlas", None), "absent"),
    Variant("card-family", PROCESS, label("ring-controller.atlas", "ascend-920"), "unknown"),
    Variant("ms-without-pod-level", COORDINATOR, label("pod-rescheduling", "off")),
    Variant("too-many-ms", COORDINATOR, all_of(put(f"{WORKER} replicas", 2), put(f"{GANG} minAvailable", 3))),
    Variant("pod-level-alone", COORDINATOR, all_of(put(WORKER, None), put(f"{GANG} minAvailable", 1))),
    Variant("pod-level-on-server", SERVER, label("pod-rescheduling", "on")),
    Variant(
        "server-without-cards",
        SERVER,
        all_of(put(f"{MAIN} resources", None), put(f"{WORKER} template spec containers 0 resources", None)),
    ),
)

BLOCKS = (
    Variant("sp-block-value", PROCESS, note("sp-block", "all")),
    Variant("sp-block-arithmetic", PROCESS, note("sp-block", "12"), "not-whole-pods"),
    Variant("sp-block-arithmetic", PROCESS, note("sp-block", "24"), "not-whole-blocks"),
    Variant(
        "sp-block-arithmetic",
        TENSORFLOW,
        all_of(
            put("spec replicaSpecs Worker", None),
            put(f"{GANG} minAvailable", 1),
            put(NOTES, {"sp-block": "16"}),
        ),
        "one-pod",
    ),
    Variant("sp-block-instance", SERVER, note("sp-block", "16")),
    Variant("schedule-policy-value", PROCESS, note("huawei.com/schedule_policy", "chip2-node17")),
    Variant("schedule-policy-no-list", SERVER, note("huawei.com/schedule_policy", "chip2-node16")),
    Variant("ra-block", PROCESS, note("ra-block", "3")),
    Variant(
        "affinity-config", PROCESS, note("huawei.com/affinity-config", "level1=2,level2=3"), "no-multiple"
    ),
    Variant("affinity-config", PROCESS, note("huawei.com/affinity-config", "level2=2"), "not-in-order"),
    Variant("affinity-config", PROCESS, note("huawei.com/affinity-config", "2,4"), "no-levels"),
    Variant("multilevel-alone", PROCESS, note("huawei.com/schedule_policy", "multilevel")),
    Variant("super-pod-affinity", PROCESS, label("super-pod-affinity", "Soft")),
    Variant("tor-affinity", PROCESS, label("tor-affinity", "large")),
    Variant(
        "small-smp-pod",
        TENSORFLOW,
        all_of(
            put("spec replicaSpecs Chief template spec nodeSelector accelerator-type", "module"),
            put(
                "spec replicaSpecs Chief template spec containers 0 resources",
                {"limits": {"huawei.com/Ascend910": 2}},
            ),
        ),
    ),
)

CONFIG_MAPS = (
    Variant("rings-label-no-string", SERVER, label("grt-group/deploy-server", 1), kind="ConfigMap"),
    Variant("rings-no-deploy-label", SERVER, label("grt-group/deploy-server", None), kind="ConfigMap"),
    Variant("rings-both-deploy-labels", SERVER, label("grt-server/deploy-server", "0"), kind="ConfigMap"),
    Variant("rings-not-consumed", SERVER, label("mx-consumer-cim", None), kind="ConfigMap"),
    Variant("rings-card-family", SERVER, label("ring-controller.atlas", None), kind="ConfigMap"),
    Variant("rings-bad-table", SERVER, put("data hccl.json", "{"), "no-json", "ConfigMap"),
    Variant("rings-bad-table", SERVER, put("data hccl.json", None), "absent", "ConfigMap"),
    Variant("rings-bad-table", SERVER, put("data hccl.json", '{"status": "init"}'), "status", "ConfigMap"),
)


RESETS = (
    Variant("reset-no-label", "reset_config", label("reset", None), kind="ConfigMap"),
    Variant("reset-bad-json", "reset_config", put("data reset.json", "[]"), "list", "ConfigMap"),
    Variant("reset-bad-json", "reset_config", put("data reset.json", "{"), "no-json", "ConfigMap"),
    Variant("reset-bad-json", "reset_config", put("data reset.json", None), "absent", "ConfigMap"),
)
PLUGINS = (
    Variant("hot-reset-value", PLUGIN, plugin("-hotReset=2", "-hotReset=3"), kind="DaemonSet"),
    Variant("hot-reset-deprecated", PLUGIN, plugin("-hotReset=2", "-hotReset=1"), kind="DaemonSet"),
    Variant("volcano-type", PLUGIN, plugin("-volcanoType=true", ""), kind="DaemonSet"),
    Variant("auto-stowing", PLUGIN, plugin("-autoStowing=true", "-autoStowing=false"), kind="DaemonSet"),
    Variant(
        "list-watch-period", PLUGIN, plugin("-listWatchPeriod=5", "-listWatchPeriod=2"), "low", "DaemonSet"
    ),
    Variant(
        "list-watch-period",
        PLUGIN,
        plugin("-listWatchPeriod=5", "-listWatchPeriod=1801"),
        "high",
        "DaemonSet",
    ),
)

VARIANTS = (
    *SHAPES,
    *KEYS,
    *SWITCHES,
    *STRATEGIES,
    *PROGRAMS,
    *SERVICES,
    *BLOCKS,
    *CONFIG_MAPS,
    *RESETS,
    *PLUGINS,
)
BASES = tuple(dict.fromkeys((variant.base, variant.kind) for variant in VARIANTS))
