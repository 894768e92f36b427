"""What the containers of a training job must show: ports, variables, switches of the training program.

A script inside the image is not seen. A rule speaks only of what stands in env, command and args; what has to
stand somewhere and is nowhere to be seen is at most a note.

Source: training contract §1.2, §1.14, §3.2-3.5, §5; documentation of fault handling policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mindie_ha.intake.jobs.descriptions import Container, JobDescription, Task
from mindie_ha.intake.jobs.links import read_enable, read_op_retry
from mindie_ha.intake.lints.jobs.rules import ERROR, NOTE, WARNING, Hit, Hits, JobRule, listed, quoted
from mindie_ha.intake.lints.jobs.strategies import recovery
from mindie_ha.policy.parameters.catalogue import parameter
from mindie_ha.policy.parameters.injected import MS_ENABLE_TFT
from mindie_ha.policy.parameters.modes import Framework, Mode
from mindie_ha.policy.parameters.programs import ENVIRONMENT

TASKD_PORT = 9601
TASKD_PORT_NAME = "taskd-port"
LAUNCHERS = ("torchrun", "msrun")
HIGH_AVAILABILITY = "enable_high_availability"
SWITCHES = {
    Mode.RETRY: "enable_hbmfault_repair",
    Mode.RECOVER: "enable_worker_reboot",
    Mode.ELASTIC: "enable_elastic_training",
}
WITHOUT_WATCHDOG = frozenset({Mode.RECOVER, Mode.RETRY, Mode.ELASTIC})
_WHOLE = re.compile(r"[0-9]{1,9}\Z")


def taskd_port(job: JobDescription) -> Hits:
    """A pod without port 9601, where TaskD works in it."""
    for main in _taskd(job):
        if all(port.number != TASKD_PORT for port in main.ports):
            yield Hit((*main.path, "ports"), f"has no containerPort {TASKD_PORT}")


def taskd_port_name(job: JobDescription) -> Hits:
    """Port 9601 with another name."""
    for main in _taskd(job):
        for number, port in enumerate(main.ports):
            if port.number == TASKD_PORT and port.name != TASKD_PORT_NAME:
                yield Hit(
                    (*main.path, "ports", number, "name"), f"of port {TASKD_PORT} is {quoted(port.name)}"
                )


def taskd_process_enable(job: JobDescription) -> Hits:
    """A `TASKD_PROCESS_ENABLE` against the modes of the job."""
    wanted = "on" if job.strategies or job.hot_switch else "off"
    for main in _taskd(job):
        value = main.visible("TASKD_PROCESS_ENABLE")
        if value is not None and (value == "off") != (wanted == "off"):
            yield Hit(
                main.place_of("TASKD_PROCESS_ENABLE"),
                f"sets TASKD_PROCESS_ENABLE to {quoted(value)}",
                fix=f"set it to {wanted}",
            )


def taskd_process_enable_unseen(job: JobDescription) -> Hits:
    """The pod level alone, and no `TASKD_PROCESS_ENABLE` to be seen."""
    if job.pod_level and not job.strategies and not job.hot_switch:
        for main in _taskd(job):
            if main.visible("TASKD_PROCESS_ENABLE") is None:
                yield Hit(main.script_path, "does not show TASKD_PROCESS_ENABLE=off")


def taskd_manager(job: JobDescription) -> Hits:
    """A command that starts the training, but not TaskD Manager."""
    for main in _taskd(job):
        if main.script.starts(*LAUNCHERS) and "manager.py" not in main.script.text:
            yield Hit(main.script_path, "starts the training without starting manager.py")


def ld_preload(job: JobDescription) -> Hits:
    """An `LD_PRELOAD` without libtaskd.so."""
    for main in _taskd(job):
        value = main.visible("LD_PRELOAD")
        if value is not None and "libtaskd.so" not in value and "TASKD_SO_PATH" not in value:
            yield Hit(main.place_of("LD_PRELOAD"), f"sets LD_PRELOAD to {quoted(value)}")


def mindio_wait_time(job: JobDescription) -> Hits:
    """Elastic training without recover, where MindIO waits for less than 60 s."""
    if not _trains(job) or Mode.ELASTIC not in job.strategies or Mode.RECOVER in job.strategies:
        return
    for _, main in _with_cards(job):
        value = main.visible("MINDIO_WAIT_MINDX_TIME")
        if value is None:
            yield Hit((*main.path, "env"), "does not set MINDIO_WAIT_MINDX_TIME; the default is 30")
        elif _WHOLE.match(value) and int(value) < 60:
            yield Hit(main.place_of("MINDIO_WAIT_MINDX_TIME"), f"sets MINDIO_WAIT_MINDX_TIME to {value}")


def variable_range(job: JobDescription) -> Hits:
    """A variable outside its bounds, or no whole number."""
    for _, main in _with_cards(job):
        for row in ENVIRONMENT:
            value = main.visible(row.name) if row.bounds is not None else None
            if value is None or value.startswith("$"):
                continue
            if not (_WHOLE.match(value) and row.allows(int(value))):
                low, high = row.bounds or (0, 0)
                yield Hit(main.place_of(row.name), f"sets {row.name} to {quoted(value)}, not {low} to {high}")


def high_availability_pair(job: JobDescription) -> Hits:
    """Switches that work only with --enable-high-availability."""
    for _, main in _with_cards(job):
        options = main.script.options
        for name in ("enable_hbmfault_repair", "enable_worker_reboot"):
            if name in options and HIGH_AVAILABILITY not in options:
                yield Hit(main.script_path, f"has {_option(name)} without {_option(HIGH_AVAILABILITY)}")


def strategy_switch(job: JobDescription) -> Hits:
    """Switches of the training program that do not fit the strategies of the job."""
    asked = {
        SWITCHES[Mode.RECOVER if mode is Mode.IN_PLACE else mode]
        for mode in job.strategies
        if mode in _SWITCHED
    }
    for _, main in _with_cards(job) if job.is_training else ():
        found = set(main.script.options) & set(SWITCHES.values())
        uses = found or HIGH_AVAILABILITY in main.script.options
        for name in sorted(asked - found) if uses else ():
            yield Hit(
                main.script_path,
                f"lacks {_option(name)}, which recover-strategy {job.recover_strategy} needs",
            )
        for name in sorted(found - asked):
            yield Hit(main.script_path, f"has {_option(name)}, but recover-strategy does not ask for it")


_SWITCHED = frozenset({*SWITCHES, Mode.IN_PLACE})


def hccl_op_retry_enable(job: JobDescription) -> Hits:
    """An `HCCL_OP_RETRY_ENABLE` that cannot be read."""
    for _, main in job.mains():
        value = main.visible("HCCL_OP_RETRY_ENABLE")
        if value is not None and read_enable(value) is None:
            yield Hit(main.place_of("HCCL_OP_RETRY_ENABLE"), f"sets HCCL_OP_RETRY_ENABLE to {quoted(value)}")


def hccl_op_retry_params(job: JobDescription) -> Hits:
    """An `HCCL_OP_RETRY_PARAMS` that cannot be read."""
    for _, main in job.mains():
        value = main.visible("HCCL_OP_RETRY_PARAMS")
        if value is not None and read_op_retry(value) is None:
            yield Hit(main.place_of("HCCL_OP_RETRY_PARAMS"), f"sets HCCL_OP_RETRY_PARAMS to {quoted(value)}")


def hccl_op_retry_unused(job: JobDescription) -> Hits:
    """Parameters of an operator retry that is not on."""
    for _, main in job.mains():
        enabled = read_enable(main.visible("HCCL_OP_RETRY_ENABLE") or "L0:0")
        params = main.visible("HCCL_OP_RETRY_PARAMS")
        if params is not None and enabled is not None and not any(enabled.values()):
            yield Hit(
                main.place_of("HCCL_OP_RETRY_PARAMS"),
                "sets HCCL_OP_RETRY_PARAMS, but no HCCL_OP_RETRY_ENABLE is on",
            )


def watchdog(job: JobDescription) -> Hits:
    """A watchdog beside what needs it off."""
    if job.framework is not Framework.PYTORCH or not job.is_training:
        return
    for _, main in _with_cards(job):
        retried = any((read_enable(main.visible("HCCL_OP_RETRY_ENABLE") or "") or {}).values())
        exported = main.script.exports.get("HCCL_ASYNC_ERROR_HANDLING")
        # What stands in `env` is replaced by the injected 0 as soon as there is any strategy.
        value = exported if job.recover_strategy else main.visible("HCCL_ASYNC_ERROR_HANDLING")
        if value not in (None, "0") and (retried or job.hot_switch or WITHOUT_WATCHDOG & set(job.strategies)):
            yield Hit(
                main.place_of("HCCL_ASYNC_ERROR_HANDLING"),
                f"sets HCCL_ASYNC_ERROR_HANDLING to {quoted(str(value))}",
            )


def ms_enable_tft(job: JobDescription) -> Hits:
    """An export that replaces what the operator injected."""
    needed = set(_features(recovery(job).get(MS_ENABLE_TFT, "")))
    for _, main in _with_cards(job):
        own = main.script.exports.get(MS_ENABLE_TFT)
        missing = sorted(needed - set(_features(own))) if own is not None else []
        if missing:
            yield Hit(
                main.script_path, f"exports MS_ENABLE_TFT={quoted(str(own))}, which lacks {listed(missing)}"
            )


def mindspore_watchdog(job: JobDescription) -> Hits:
    """Retry with MindSpore: the watchdog of the model is not to be seen."""
    if job.is_training and job.framework is Framework.MINDSPORE and Mode.RETRY in job.strategies:
        for _, main in _with_cards(job):
            yield Hit(
                main.script_path, "cannot show whether the model YAML has ascend_config.hccl_watchdog: False"
            )


def max_restarts(job: JobDescription) -> Hits:
    """A `--max_restarts` outside 0 to 32767."""
    return _number_option(job, "max_restarts")


def monitor_interval(job: JobDescription) -> Hits:
    """A `--monitor_interval` that is no number of seconds."""
    return _number_option(job, "monitor_interval")


def npu_memory_caching(job: JobDescription) -> Hits:
    """`PYTORCH_NO_NPU_MEMORY_CACHING` with retry."""
    name = "PYTORCH_NO_NPU_MEMORY_CACHING"
    if Mode.RETRY in job.strategies and job.framework is Framework.PYTORCH:
        for _, main in _with_cards(job):
            if main.visible(name) is not None:
                yield Hit(main.place_of(name), f"sets {name} beside recover-strategy {job.recover_strategy}")


def _trains(job: JobDescription) -> bool:
    return job.is_training and job.framework is not Framework.TENSORFLOW


def _taskd(job: JobDescription) -> Iterator[Container]:
    """The containers in which TaskD works."""
    if job.uses_taskd and job.framework is not Framework.TENSORFLOW:
        yield from (main for _, main in _with_cards(job))


def _with_cards(job: JobDescription) -> Iterator[tuple[Task, Container]]:
    yield from (pair for pair in job.mains() if pair[0].cards)


def _number_option(job: JobDescription, name: str) -> Iterator[Hit]:
    row = parameter(name)
    for _, main in job.mains():
        value = main.script.options.get(name)
        if value is None or value.startswith("$"):
            continue
        if not (_WHOLE.match(value) and row.allows(int(value))):
            yield Hit(main.script_path, f"has --{name} {quoted(value)}")


def _features(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").strip("'\" {}").split(",") if item.strip()]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


RULES: tuple[JobRule, ...] = (
    JobRule(
        "taskd-port",
        ERROR,
        taskd_port,
        "TaskD Manager and its agents meet on it, in every pod",
        "add {containerPort: 9601, name: taskd-port}",
        about=("taskd-port",),
    ),
    JobRule(
        "taskd-port-name",
        WARNING,
        taskd_port_name,
        "the documents ask for the name taskd-port",
        "write name: taskd-port",
        about=("taskd-port",),
    ),
    JobRule(
        "taskd-process-enable",
        ERROR,
        taskd_process_enable,
        "the pod level alone needs off; with a recover-strategy or hot switching it must be on",
        "set it as the mode needs",
        about=("TASKD_PROCESS_ENABLE",),
    ),
    JobRule(
        "taskd-process-enable-unseen",
        NOTE,
        taskd_process_enable_unseen,
        "the pod level without a recover-strategy needs it",
        "export it in the start script",
        about=("TASKD_PROCESS_ENABLE",),
    ),
    JobRule(
        "taskd-manager",
        WARNING,
        taskd_manager,
        "without TaskD Manager no process is told to stop, to wait or to rejoin",
        "start manager.py beside rank 0 before the training",
        about=("manager.py",),
    ),
    JobRule(
        "ld-preload",
        WARNING,
        ld_preload,
        "TaskD's library has to be loaded first",
        "put the path of libtaskd.so in front",
        about=("LD_PRELOAD",),
    ),
    JobRule(
        "mindio-wait-time",
        WARNING,
        mindio_wait_time,
        "elastic training without recover needs MindIO to wait until it is known that no replacement comes",
        'set MINDIO_WAIT_MINDX_TIME to "60" or more',
        about=("MINDIO_WAIT_MINDX_TIME", "recover-strategy"),
    ),
    JobRule(
        "variable-range",
        ERROR,
        variable_range,
        "its reader takes whole numbers within its bounds only, and its default otherwise",
        "write a number within the bounds",
        about=tuple(row.name for row in ENVIRONMENT if row.bounds is not None),
    ),
    JobRule(
        "high-availability-pair",
        ERROR,
        high_availability_pair,
        "it works only together with --enable-high-availability",
        "add --enable-high-availability",
        about=("--enable-high-availability", "--enable-hbmfault-repair", "--enable-worker-reboot"),
    ),
    JobRule(
        "strategy-switch",
        WARNING,
        strategy_switch,
        "job and training program must agree on what they do after a fault",
        "make both the same (MindSpeed-LLM 2.3.0 needs no switches: it reads HIGH_AVAILABILITY)",
        about=(
            "--enable-hbmfault-repair",
            "--enable-worker-reboot",
            "--enable-elastic-training",
            "recover-strategy",
        ),
    ),
    JobRule(
        "hccl-op-retry-enable",
        ERROR,
        hccl_op_retry_enable,
        "its form is L0:0, L1:1, L2:1",
        "write it so",
        about=("HCCL_OP_RETRY_ENABLE",),
    ),
    JobRule(
        "hccl-op-retry-params",
        ERROR,
        hccl_op_retry_params,
        "its form is MaxCnt:3, HoldTime:5000, IntervalTime:1000",
        "write it so",
        about=("HCCL_OP_RETRY_PARAMS",),
    ),
    JobRule(
        "hccl-op-retry-unused",
        WARNING,
        hccl_op_retry_unused,
        "parameters alone switch nothing on",
        "set HCCL_OP_RETRY_ENABLE too, or remove them",
        about=("HCCL_OP_RETRY_ENABLE", "HCCL_OP_RETRY_PARAMS"),
    ),
    JobRule(
        "watchdog",
        ERROR,
        watchdog,
        "the watchdog ends the processes that recovery wants to keep",
        "set it to 0",
        about=("HCCL_ASYNC_ERROR_HANDLING",),
    ),
    JobRule(
        "ms-enable-tft",
        ERROR,
        ms_enable_tft,
        "an export replaces the injected value as a whole",
        "add what is missing to it",
        about=("MS_ENABLE_TFT",),
    ),
    JobRule(
        "mindspore-watchdog",
        NOTE,
        mindspore_watchdog,
        "retry on MindSpore needs it",
        "look into the model YAML",
        about=("hccl_watchdog",),
    ),
    JobRule(
        "max-restarts",
        ERROR,
        max_restarts,
        "it is a whole number up to 32767; above it the process ends at once",
        "write 32767",
        about=("max_restarts",),
    ),
    JobRule(
        "monitor-interval",
        ERROR,
        monitor_interval,
        "it is a whole number of seconds",
        "write 5",
        about=("monitor_interval",),
    ),
    JobRule(
        "npu-memory-caching",
        ERROR,
        npu_memory_caching,
        "retry repairs cached memory: with the variable there is none",
        "remove it",
        about=("PYTORCH_NO_NPU_MEMORY_CACHING",),
    ),
)
