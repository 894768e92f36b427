"""The life of one pod on its node, as a state machine without I/O.

`PodRun` is what the kubelet remembers; `advance` moves it on with the clock and tells what to do next;
`status_of` is the pod status that follows from it. Containers of a pod share one life, as every pod of the
field has one container that matters.

States: creating -> running -> exited (for good) or waiting (restart after back-off) -> running.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mindie_ha.sim.actors.documents import (
    annotations_of,
    dig,
    is_terminating,
    items,
    load_json,
    number,
    stamp,
    text,
    with_condition,
)
from mindie_ha.sim.client import Object

EXIT = "sim.mindie-ha.io/exit"
CRASHES = "sim.mindie-ha.io/crashes"
STOP_S = "sim.mindie-ha.io/stop-s"
"""`{"code": 1, "after_s": 1}`: the container ends so long after each of its starts."""
PULLS = "sim.mindie-ha.io/image"
"""`missing`: the image cannot be pulled; the pod has its address and waits."""
FIRST_RESTART_S = 0.5
BACKOFF_S = 10.0
MAX_BACKOFF_S = 300.0
DEFAULT_GRACE_S = 30


class State(StrEnum):
    """Where the pod's container is."""

    CREATING = "creating"
    RUNNING = "running"
    WAITING = "waiting"
    EXITED = "exited"


class Act(StrEnum):
    """What the kubelet has to do after `advance`."""

    NONE = "none"
    START = "start"
    STOP = "stop"
    CONFIRM = "confirm"


@dataclass(slots=True)
class PodRun:
    """One pod's life. Times are of the monotonic clock unless they are called wall."""

    ip: str
    start_at_s: float
    ready_delay_s: float
    stop_delay_s: float
    state: State = State.CREATING
    ready_at_s: float = 0.0
    restart_at_s: float = 0.0
    stop_at_s: float | None = None
    confirmed: bool = False
    restarts: int = 0
    exit_code: int | None = None
    """Reported by the program or injected; consumed by `advance`."""
    last_code: int = 0
    has_program: bool = False
    program_ready: bool = False
    shown_ready: bool = False
    """`program_ready` as the pod's status shows it."""
    handled_exit: str = ""
    started_s: float = 0.0
    started_wall_s: float = 0.0
    last_end: Object = field(default_factory=dict)
    """`terminated` state of the last exit; empty before the first."""
    wait_s: float = field(default=float("inf"))
    """How long until `advance` has something to do."""

    def is_ready(self, pod: Object, now_s: float) -> bool:
        """Answer of the readiness probe; without a probe a running container is ready."""
        if self.state is not State.RUNNING:
            return False
        if not has_probe(pod):
            return True
        return self.program_ready if self.has_program else now_s >= self.ready_at_s


def has_probe(pod: Object) -> bool:
    """Any container has a readinessProbe."""
    return any(container.get("readinessProbe") for container in items(pod, "spec", "containers"))


def injected_exit(pod: Object) -> tuple[str, int | None]:
    """The annotation's text and the exit code it asks for, None where it asks for none."""
    raw = annotations_of(pod).get(EXIT, "")
    document = load_json(raw)
    code = dig(document, "code")
    return raw, code if isinstance(code, int) and not isinstance(code, bool) and 0 <= code <= 255 else None


def stop_time_s(pod: Object, *, default: float) -> float:
    """How long its processes need to end when they are asked to."""
    text_ = annotations_of(pod).get(STOP_S, "")
    return float(text_) if text_.isascii() and text_.isdigit() and len(text_) < 6 else default


def crashing(pod: Object) -> tuple[int, float] | None:
    """The exit code with which every container start ends and after how long; None: they do not."""
    document = load_json(annotations_of(pod).get(CRASHES, ""))
    code, after_s = dig(document, "code"), dig(document, "after_s")
    if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code <= 255:
        return None
    return code, float(after_s) if isinstance(after_s, int | float) and after_s > 0 else 1.0


def lacks_image(pod: Object) -> bool:
    """Whether its image cannot be pulled."""
    return annotations_of(pod).get(PULLS) == "missing"


def advance(run: PodRun, pod: Object, *, now_s: float, wall_s: float, mounted: bool) -> Act:
    """Move the pod on; the caller does what the result says and calls again."""
    run.wait_s = float("inf")
    if is_terminating(pod):
        return _terminate(run, pod, now_s)
    if run.state is State.CREATING:
        if not mounted or lacks_image(pod) or now_s < run.start_at_s:
            run.wait_s = max(0.0, run.start_at_s - now_s) or float("inf")
            return Act.NONE
        return _start(run, now_s, wall_s)
    if run.state is State.RUNNING:
        return _watch(run, pod, now_s, wall_s)
    if run.state is State.WAITING:
        if now_s >= run.restart_at_s:
            run.restarts += 1
            return _start(run, now_s, wall_s)
        run.wait_s = run.restart_at_s - now_s
    return Act.NONE


def _start(run: PodRun, now_s: float, wall_s: float) -> Act:
    run.state, run.exit_code = State.RUNNING, None
    run.started_s, run.started_wall_s = now_s, wall_s
    run.ready_at_s = now_s + run.ready_delay_s
    run.wait_s = run.ready_delay_s
    return Act.START


def _watch(run: PodRun, pod: Object, now_s: float, wall_s: float) -> Act:
    raw, code = injected_exit(pod)
    if code is not None and raw != run.handled_exit:
        run.handled_exit, run.exit_code = raw, code
    elif code is None:
        run.handled_exit = raw
    crash = crashing(pod)
    if crash is not None and run.exit_code is None and now_s >= run.started_s + crash[1]:
        run.exit_code = crash[0]
    if run.exit_code is None:
        ahead = [run.ready_at_s] + ([] if crash is None else [run.started_s + crash[1]])
        run.wait_s = min((at_s - now_s for at_s in ahead if at_s > now_s), default=float("inf"))
        return Act.NONE
    run.last_code, run.program_ready = run.exit_code, False
    run.last_end = {
        "exitCode": run.last_code,
        "reason": "Error" if run.last_code else "Completed",
        "startedAt": stamp(run.started_wall_s),
        "finishedAt": stamp(wall_s),
    }
    policy = text(pod, "spec", "restartPolicy") or "Always"
    if policy == "Never" or (policy == "OnFailure" and run.exit_code == 0):
        run.state = State.EXITED
    else:
        run.state = State.WAITING
        delay_s = FIRST_RESTART_S if run.restarts == 0 else BACKOFF_S * 2 ** min(run.restarts - 1, 10)
        run.restart_at_s = now_s + min(delay_s, MAX_BACKOFF_S)
        run.wait_s = run.restart_at_s - now_s
    return Act.STOP


def _terminate(run: PodRun, pod: Object, now_s: float) -> Act:
    if run.stop_at_s is None:
        grace_s = number(pod, "metadata", "deletionGracePeriodSeconds", default=DEFAULT_GRACE_S)
        running = run.state is State.RUNNING
        needs_s = stop_time_s(pod, default=run.stop_delay_s)
        run.stop_at_s = now_s + (min(float(grace_s), needs_s) if running else 0.0)
        run.wait_s = max(0.001, run.stop_at_s - now_s)
        return Act.STOP
    if now_s < run.stop_at_s:
        run.wait_s = run.stop_at_s - now_s
        return Act.NONE
    return Act.NONE if run.confirmed else Act.CONFIRM


def status_of(run: PodRun, pod: Object, *, host_ip: str, now_s: float, wall_s: float) -> Object:
    """The fields of the pod status that the kubelet owns."""
    ready = run.is_ready(pod, now_s)
    phase = _phase(run)
    pulls = lacks_image(pod) and run.state is State.CREATING and now_s >= run.start_at_s
    conditions = items(pod, "status", "conditions")
    now = stamp(wall_s)
    flags = {
        "PodScheduled": True,
        "Initialized": True,
        "ContainersReady": ready,
        "Ready": ready,
    }
    for kind, value in flags.items():
        conditions = with_condition(conditions, {"type": kind, "status": "True" if value else "False"}, now)
    status: Object = {
        "phase": phase,
        "conditions": sorted(conditions, key=lambda entry: str(entry.get("type"))),
        "hostIP": host_ip,
        "startTime": text(pod, "status", "startTime") or now,
        "containerStatuses": [
            _container(run, c, ready=ready, pulls=pulls) for c in items(pod, "spec", "containers")
        ],
    }
    if run.state is not State.CREATING or pulls:
        status |= {"podIP": run.ip, "podIPs": [{"ip": run.ip}]}
    return status


def _phase(run: PodRun) -> str:
    if run.state is State.EXITED:
        return "Failed" if run.last_code else "Succeeded"
    return "Pending" if run.state is State.CREATING else "Running"


def _container(run: PodRun, container: Object, *, ready: bool, pulls: bool) -> Object:
    states: dict[State, Object] = {
        State.CREATING: {"waiting": {"reason": "ImagePullBackOff" if pulls else "ContainerCreating"}},
        State.RUNNING: {"running": {"startedAt": stamp(run.started_wall_s)}},
        State.WAITING: {"waiting": {"reason": "CrashLoopBackOff"}},
        State.EXITED: {"terminated": run.last_end},
    }
    crashed = bool(run.last_end) and run.state in {State.RUNNING, State.WAITING}
    return {
        "name": text(container, "name"),
        "image": text(container, "image"),
        "imageID": "",
        "ready": ready,
        "started": run.state is State.RUNNING,
        "restartCount": run.restarts,
        "state": states[run.state],
        "lastState": {"terminated": run.last_end} if crashed else {},
    }
