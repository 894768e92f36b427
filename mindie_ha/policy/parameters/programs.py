"""Parameters outside the job's metadata: environment, scripts, programs, images and components.

Many of them stand in a script inside the image, where nobody but its author sees them; lint reads what a
container's env, command and args show and does not guess the rest.

Source: training contract §1.0.4, §1.10, §1.14, §3.2-3.5; rescheduling contract §1.4.
"""

from __future__ import annotations

from mindie_ha.policy.parameters.metadata import CLUSTERD, KUBERNETES, OPERATOR, PROCESS, US, VOLCANO
from mindie_ha.policy.parameters.modes import Framework, Mode
from mindie_ha.policy.parameters.rows import Parameter, Place

TASKD = "TaskD"
MINDIO = "MindIO"
CANN = "CANN"
PLUGIN = "device plugin"
LLM = "MindSpeed-LLM"
RESTARTING = frozenset({Mode.POD, Mode.RECOVER, Mode.IN_PLACE, Mode.RETRY})
PYTORCH = frozenset({Framework.PYTORCH})
MINDSPORE = frozenset({Framework.MINDSPORE})
WITH_MANAGER = PROCESS | {Mode.POD, Mode.LINK_SWITCH, Mode.STRESS_TEST, Mode.HOT_SWITCH}

ENVIRONMENT: tuple[Parameter, ...] = (
    Parameter(
        "PROCESS_RECOVER",
        Place.ENVIRONMENT,
        "Switch of process-level recovery in TaskD.",
        (TASKD,),
        values=("on", "off"),
        default="off",
        needed_by=PROCESS,
        injected=True,
    ),
    Parameter(
        "ELASTIC_PROCESS_RECOVER_ENABLE",
        Place.ENVIRONMENT,
        "Switch in Elastic Agent, which is retired at the end of 2026.",
        ("Elastic Agent",),
        values=("1",),
        default="off",
        needed_by=frozenset({Mode.RECOVER, Mode.IN_PLACE, Mode.RETRY}),
        injected=True,
    ),
    Parameter(
        "ENABLE_RESTART_FAULT_PROCESS",
        Place.ENVIRONMENT,
        "Restart only the processes that failed.",
        (TASKD, "Elastic Agent"),
        values=("on",),
        default="off",
        needed_by=frozenset({Mode.IN_PLACE}),
        injected=True,
    ),
    Parameter(
        "HIGH_AVAILABILITY",
        Place.ENVIRONMENT,
        "Read by MindSpeed-LLM 2.3.0 in place of the `--enable-*` arguments; `elastic-training` in it also "
        "by TaskD.",
        (LLM, TASKD),
        injected=True,
        frameworks=PYTORCH,
    ),
    Parameter(
        "HCCL_ASYNC_ERROR_HANDLING",
        Place.ENVIRONMENT,
        "Watchdog of PyTorch; 0 switches it off.",
        ("torch_npu",),
        values=("0", "1"),
        default="1",
        conflicts="1 with recover, retry, elastic training, hot switching or operator retry",
        injected=True,
        frameworks=PYTORCH,
    ),
    Parameter(
        "MINDIO_FOR_MINDSPORE",
        Place.ENVIRONMENT,
        "MindIO works for MindSpore.",
        (MINDIO,),
        values=("1",),
        injected=True,
        frameworks=MINDSPORE,
    ),
    Parameter(
        "MS_ENABLE_TFT",
        Place.ENVIRONMENT,
        "Features of MindSpore: `{TTP:1,UCE:1,HCCE:1,ARF:1,TSP:1,RSC:1}`. An `export` in the script "
        "replaces what "
        "the operator injected as a whole. RSC: pod level, TTP: dying gasp, UCE and HCCE: retry, ARF: "
        "recover, "
        "TSP: link switch and stress test.",
        ("MindSpore",),
        injected=True,
        conflicts="an own value that lacks what the strategies of the job need",
        frameworks=MINDSPORE,
    ),
    Parameter(
        "MS_ENABLE_THM",
        Place.ENVIRONMENT,
        "`{HCCL_WATCHDOG:0}` switches the watchdog of MindSpore off.",
        ("MindSpore",),
        injected=True,
        frameworks=MINDSPORE,
    ),
    Parameter(
        "MINDIO_WAIT_MINDX_TIME",
        Place.ENVIRONMENT,
        "Seconds that MindIO waits for the next order. 60 or more for elastic training without recover.",
        (MINDIO, CLUSTERD, US),
        bounds=(1, 3600),
        default="30",
        needed_by=frozenset({Mode.ELASTIC}),
    ),
    Parameter(
        "HCCL_OP_RETRY_ENABLE",
        Place.ENVIRONMENT,
        "Collectives are run again after a link error: `L0:0, L1:1, L2:1` (in a server, in a super-pod, "
        "between).",
        (CANN, US),
        default="off",
        needed_by=frozenset({Mode.OPERATOR_RETRY, Mode.RETRY, Mode.LINK_SWITCH}),
        conflicts="MC2; a watchdog",
    ),
    Parameter(
        "HCCL_OP_RETRY_PARAMS",
        Place.ENVIRONMENT,
        "`MaxCnt:3, HoldTime:5000, IntervalTime:1000`: times, ms before the first, ms between two.",
        (CANN, US),
        needed_by=frozenset({Mode.OPERATOR_RETRY}),
    ),
    Parameter(
        "TASKD_PROCESS_ENABLE",
        Place.ENVIRONMENT,
        "`off` for the pod level without any recover-strategy or hot switching, else `on`.",
        (TASKD,),
        values=("on", "off"),
        default="on",
        needed_by=WITH_MANAGER,
    ),
    Parameter(
        "PYTORCH_NO_NPU_MEMORY_CACHING",
        Place.ENVIRONMENT,
        "Must not be set with retry.",
        ("torch_npu",),
        default="absent",
        conflicts="retry",
        frameworks=PYTORCH,
    ),
    Parameter(
        "TTP_PORT",
        Place.ENVIRONMENT,
        "Port of MindIO's controller.",
        (TASKD, MINDIO),
        bounds=(1024, 65_535),
    ),
    Parameter(
        "TASKD_PROCESS_INTERVAL",
        Place.ENVIRONMENT,
        "Milliseconds between two looks of TaskD Manager.",
        (TASKD,),
        bounds=(100, 1000),
        default="100",
    ),
    Parameter(
        "TASKD_REPORT_FAULT_TIMEOUT",
        Place.ENVIRONMENT,
        "Seconds after which an agent whose failure is not answered exits with 1.",
        (TASKD,),
        bounds=(300, 600),
        default="never",
    ),
    Parameter(
        "LOCAL_PROXY_ENABLE",
        Place.ENVIRONMENT,
        "`on`: TaskD reaches ClusterD through 127.0.0.1.",
        (TASKD,),
        values=("on", "off"),
        default="off",
    ),
    Parameter(
        "HCCL_CONNECT_TIMEOUT",
        Place.ENVIRONMENT,
        "Seconds for the links to be built; TaskD waits 2.5 times as long, at most 7200, before a pause "
        "ends.",
        (CANN, TASKD),
        bounds=(1, 7200),
        default="120",
    ),
    Parameter(
        "HCCL_BUFFSIZE",
        Place.ENVIRONMENT,
        "MB; elastic training takes up to 18 times as much memory more.",
        (CANN,),
        bounds=(1, 65_536),
        default="200",
    ),
    Parameter(
        "LD_PRELOAD",
        Place.SCRIPT,
        "Path of libtaskd.so, in front of what is there (with stress test and links also libmspti.so).",
        (TASKD,),
        needed_by=WITH_MANAGER,
    ),
)

SCRIPTS: tuple[Parameter, ...] = (
    Parameter(
        "max_restarts",
        Place.SCRIPT,
        "`--max_restarts`: faults that a container bears; then its process ends. TaskD makes 32767 of 0.",
        ("torchrun", TASKD),
        bounds=(0, 32_767),
        default="32767",
        needed_by=RESTARTING,
        frameworks=PYTORCH,
    ),
    Parameter(
        "monitor_interval",
        Place.SCRIPT,
        "`--monitor_interval`: seconds between two looks at the processes.",
        ("torchrun", TASKD),
        bounds=(1, 3600),
        default="5",
        needed_by=RESTARTING,
        frameworks=PYTORCH,
    ),
    Parameter(
        "manager.py",
        Place.SCRIPT,
        "Starts TaskD Manager beside rank 0 (MindSpore: on the host of the scheduler) with job_id, "
        "node_nums and "
        "proc_per_node; the folder of its error log must exist.",
        (TASKD,),
        needed_by=WITH_MANAGER,
    ),
    Parameter(
        "init_taskd_worker",
        Place.PROGRAM,
        '`init_taskd_worker(rank, 5000, "pt" | "ms")` and `start_taskd_worker()` once the rank is known.',
        (TASKD,),
        needed_by=frozenset({Mode.LINK_SWITCH, Mode.STRESS_TEST}),
    ),
    Parameter(
        "--enable-high-availability",
        Place.TRAINING,
        "Last words; the other switches need it.",
        (LLM,),
        default="off",
        needed_by=PROCESS,
        frameworks=PYTORCH,
    ),
    Parameter(
        "--enable-hbmfault-repair",
        Place.TRAINING,
        "Online recovery of on-chip memory.",
        (LLM,),
        default="off",
        needed_by=frozenset({Mode.RETRY}),
        conflicts="without `--enable-high-availability`",
        frameworks=PYTORCH,
    ),
    Parameter(
        "--enable-worker-reboot",
        Place.TRAINING,
        "Process-level rescheduling.",
        (LLM,),
        default="off",
        needed_by=frozenset({Mode.RECOVER, Mode.IN_PLACE}),
        conflicts="without `--enable-high-availability`",
        frameworks=PYTORCH,
    ),
    Parameter(
        "--enable-elastic-training",
        Place.TRAINING,
        "Elastic training.",
        (LLM,),
        default="off",
        needed_by=frozenset({Mode.ELASTIC}),
        frameworks=PYTORCH,
    ),
    Parameter(
        "hccl_watchdog",
        Place.MODEL,
        "`context.ascend_config.hccl_watchdog: False` in the model YAML of MindSpore.",
        ("MindFormers",),
        values=("False", "True"),
        default="True",
        needed_by=frozenset({Mode.RETRY}),
        frameworks=MINDSPORE,
    ),
    Parameter(
        "TaskD package",
        Place.IMAGE,
        "`pip3 install $TASKD_WHL`.",
        (TASKD,),
        needed_by=WITH_MANAGER,
    ),
    Parameter(
        "MindIO package",
        Place.IMAGE,
        "`pip3 install $MINDIO_TTP_PKG`; for MindSpore in the same path as MindSpore.",
        (MINDIO,),
        needed_by=PROCESS | {Mode.HOT_SWITCH, Mode.GRACEFUL, Mode.STRESS_TEST, Mode.LINK_SWITCH},
    ),
    Parameter(
        "patch of torch.distributed.run",
        Place.IMAGE,
        "PyTorch: `import taskd.python.adaptor.patch` before `import os` in torch/distributed/run.py, in "
        "the image "
        "or in the script.",
        (TASKD,),
        needed_by=WITH_MANAGER,
        frameworks=PYTORCH,
    ),
    Parameter(
        "MindSpore package",
        Place.IMAGE,
        "`pip3 install $MINDSPORE_WHL`.",
        ("MindSpore",),
        needed_by=frozenset({Mode.HOT_SWITCH}),
        frameworks=MINDSPORE,
    ),
)

COMPONENTS: tuple[Parameter, ...] = (
    Parameter(
        "hotReset",
        Place.DEVICE_PLUGIN,
        "-1: no reset; 0: inference; 1: graceful fault tolerance, refused by the device plugins of today; "
        "2: offline "
        "reset of idle cards, right with process-level recovery.",
        (PLUGIN, US),
        values=("-1", "0", "1", "2"),
        default="-1",
        needed_by=frozenset({Mode.GRACEFUL}),
        conflicts="1 with any process-level recovery",
    ),
    Parameter(
        "volcanoType",
        Place.DEVICE_PLUGIN,
        "Volcano places the cards; rescheduling needs `true`.",
        (PLUGIN,),
        values=("true", "false"),
        default="false",
        needed_by=frozenset({Mode.GRACEFUL}) | KUBERNETES | PROCESS,
    ),
    Parameter(
        "autoStowing",
        Place.DEVICE_PLUGIN,
        "Whether a card that healed is offered again by itself.",
        (PLUGIN,),
        values=("true", "false"),
        default="true",
    ),
    Parameter(
        "listWatchPeriod",
        Place.DEVICE_PLUGIN,
        "Seconds between two checks of the cards.",
        (PLUGIN,),
        bounds=(3, 1800),
        default="5",
    ),
    Parameter(
        "grace-over-time",
        Place.VOLCANO,
        "Seconds after which a graceful deletion is forced; ours is `phases.stop_grace_s`.",
        (VOLCANO,),
        bounds=(2, 3600),
        default="900",
    ),
    Parameter(
        "useClusterInfoManager",
        Place.VOLCANO,
        "Whether Volcano reads ClusterD's lists or those of each node.",
        (VOLCANO,),
        values=("true", "false"),
        default="true",
    ),
    Parameter(
        "enableGangScheduling",
        Place.OPERATOR,
        "Needed by every mode, and by MindIE.",
        (OPERATOR,),
        values=("true", "false"),
        default="true",
    ),
)
