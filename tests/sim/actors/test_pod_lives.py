"""One pod on its node: start, readiness, exits, restarts, graceful end, and what its program sees."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mindie_ha.sim.actors.pod_runs import CRASHES, EXIT, Act, PodRun, State, advance, crashing, status_of
from mindie_ha.sim.actors.pod_sandboxes import missing_volumes, read_volumes, resolve_env
from mindie_ha.sim.actors.programs import PodSandbox, ProgramError
from mindie_ha.sim.client import Object

from .conftest import NAMESPACE, Stage, instance, stage

PROBE = {"readinessProbe": {"exec": {"command": ["probe"]}}}


def bound(policy: str = "Never", *, container: Object | None = None, **meta: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": NAMESPACE, "uid": "u", **meta},
        "spec": {
            "restartPolicy": policy,
            "nodeName": "n",
            "containers": [{"name": "ascend", **(container or {})}],
        },
        "status": {},
    }


def fresh() -> PodRun:
    return PodRun(ip="127.9.0.1", start_at_s=1, ready_delay_s=3, stop_delay_s=2)


def step(run: PodRun, pod: Object, now: float, *, mounted: bool = True) -> Act:
    return advance(run, pod, now_s=now, wall_s=1_800_000_000 + now, mounted=mounted)


def running(policy: str = "Never", **more: Any) -> tuple[PodRun, Object]:
    run, pod = fresh(), bound(policy, **more)
    assert step(run, pod, 1) is Act.START
    return run, pod


def seen(run: PodRun, pod: Object, now: float) -> tuple[str, str]:
    status = status_of(run, pod, host_ip="127.1.1.1", now_s=now, wall_s=1_800_000_000 + now)
    ready = next(entry["status"] for entry in status["conditions"] if entry["type"] == "Ready")
    return status["phase"], ready


def test_a_pod_starts_when_its_time_has_come_and_its_volumes_are_there() -> None:
    run, pod = fresh(), bound()
    assert (step(run, pod, 0.5), run.wait_s) == (Act.NONE, 0.5)
    assert step(run, pod, 2, mounted=False) is Act.NONE
    assert seen(run, pod, 2) == ("Pending", "False")
    assert step(run, pod, 2) is Act.START
    assert seen(run, pod, 2) == ("Running", "True")


def test_a_probe_makes_readiness_come_later() -> None:
    run, pod = running(container=PROBE)
    assert seen(run, pod, 3.9) == ("Running", "False")
    assert seen(run, pod, 4) == ("Running", "True")


def test_with_a_program_the_probe_is_the_program() -> None:
    run, pod = running(container=PROBE)
    run.has_program = True
    assert seen(run, pod, 100) == ("Running", "False")
    run.program_ready = True
    assert seen(run, pod, 100) == ("Running", "True")


@pytest.mark.parametrize(
    ("policy", "code", "state", "phase"),
    [
        pytest.param("Never", 1, State.EXITED, "Failed", id="never-failed"),
        pytest.param("Never", 0, State.EXITED, "Succeeded", id="never-succeeded"),
        pytest.param("OnFailure", 0, State.EXITED, "Succeeded", id="on-failure-succeeded"),
        pytest.param("OnFailure", 1, State.WAITING, "Running", id="on-failure-restarts"),
        pytest.param("Always", 0, State.WAITING, "Running", id="always-restarts"),
    ],
)
def test_exit(policy: str, code: int, state: State, phase: str) -> None:
    run, pod = running(policy)
    run.exit_code = code
    assert step(run, pod, 5) is Act.STOP
    assert run.state is state
    assert seen(run, pod, 5) == (phase, "False")


def test_restarts_back_off_and_are_counted() -> None:
    run, pod = running("Always")
    now, delays = 1.0, []
    for _ in range(8):
        run.exit_code = 1
        step(run, pod, now)
        delays.append(run.wait_s)
        now += run.wait_s
        assert step(run, pod, now) is Act.START
    assert delays == pytest.approx([0.5, 10, 20, 40, 80, 160, 300, 300])
    assert run.restarts == 8


@pytest.mark.parametrize("raw", ["", "{", "[]", '{"code": "1"}', '{"code": 256}', '{"code": true}'])
def test_a_malformed_exit_annotation_does_nothing(raw: str) -> None:
    run, pod = running(annotations={EXIT: raw})
    assert step(run, pod, 2) is Act.NONE


def test_an_injected_exit_happens_once() -> None:
    run, pod = running("Always", annotations={EXIT: '{"code": 3}'})
    assert step(run, pod, 2) is Act.STOP
    assert step(run, pod, 10) is Act.START
    assert step(run, pod, 11) is Act.NONE
    assert (run.last_code, run.restarts) == (3, 1)


def test_a_crash_loop_ends_every_start() -> None:
    run, pod = running("Always", annotations={CRASHES: '{"code": 3, "after_s": 2}'})
    ends, now = 0, 1.0
    while run.restarts < 3:
        act = step(run, pod, now)
        ends += act is Act.STOP
        assert act is not Act.NONE or run.wait_s > 0
        now += 1.0
    assert (run.last_code, ends) == (3, 3)
    assert run.last_end["reason"] == "Error"


@pytest.mark.parametrize(
    ("raw", "crashes"),
    [
        ('{"code": 1}', (1, 1.0)),
        ('{"code": 0, "after_s": -1}', (0, 1.0)),
        ('{"code": "1"}', None),
        ("[", None),
    ],
)
def test_what_asks_for_a_crash_loop(raw: str, crashes: tuple[int, float] | None) -> None:
    assert crashing(bound(annotations={CRASHES: raw})) == crashes


@pytest.mark.parametrize(
    ("grace", "gone_at"),
    [pytest.param(60, 12, id="container-stops-first"), pytest.param(1, 11, id="grace-cuts-it-off")],
)
def test_graceful_end(grace: int, gone_at: float) -> None:
    run, pod = running()
    pod["metadata"] |= {"deletionTimestamp": "x", "deletionGracePeriodSeconds": grace}
    assert step(run, pod, 10) is Act.STOP
    assert step(run, pod, gone_at - 0.1) is Act.NONE
    assert step(run, pod, gone_at) is Act.CONFIRM


def test_the_environment_is_resolved_like_a_kubelet_does() -> None:
    env = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "ROLE_LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['role']"}}},
        {"name": "URL", "value": "http://$(POD_IP):$(PORT)/$(MISSING)"},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "common-env", "key": "k"}}},
        {"name": "PORT", "value": "2"},
    ]
    sources = [{"configMapRef": {"name": "common-env"}}, {"configMapRef": {"name": "missing"}}]
    pod = bound(container={"env": env, "envFrom": sources}, labels={"role": "prefill"})
    maps: dict[str, Object] = {"common-env": {"data": {"PORT": "1", "k": "v"}}}
    assert resolve_env(pod, maps.get, pod_ip="127.9.0.1", host_ip="127.1.1.1") == {
        "PORT": "2",
        "k": "v",
        "POD_IP": "127.9.0.1",
        "ROLE_LABEL": "prefill",
        "URL": "http://127.9.0.1:1/$(MISSING)",
        "KEY": "v",
    }


def test_only_a_missing_rings_config_blocks_a_pod() -> None:
    pod = bound()
    pod["spec"]["volumes"] = [
        {"name": "a", "configMap": {"name": "rings-config-x"}},
        {"name": "b", "configMap": {"name": "boot"}},
        {"name": "c", "configMap": {"name": "rings-config-y", "optional": True}},
        {"name": "d", "hostPath": {"path": "/data"}},
    ]
    assert missing_volumes(pod, {}.get) == ["rings-config-x"]
    maps: dict[str, Object] = {"boot": {"data": {"boot.sh": "x"}}}
    assert read_volumes(pod, maps.get) == {"a": {}, "b": {"boot.sh": "x"}, "c": {}}


class Recorder:
    """A program that gets ready after a second and ends when told."""

    def __init__(self, sandbox: PodSandbox) -> None:
        self.sandbox = sandbox
        self.end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.cancelled = False

    async def run(self) -> int:
        await asyncio.sleep(1)
        self.sandbox.set_ready(True)
        try:
            return await self.end
        except asyncio.CancelledError:
            self.cancelled = True
            raise


class Theatre:
    """Starts a `Recorder` in every pod."""

    def __init__(self) -> None:
        self.started: list[Recorder] = []

    def __call__(self, sandbox: PodSandbox) -> Recorder:
        self.started.append(Recorder(sandbox))
        return self.started[-1]


async def start(s: Stage, **more: Any) -> None:
    await s.start("p0", spec={"containers": [{**_container(), **PROBE, **more.pop("container", {})}], **more})


def _container() -> Object:
    found: Object = instance("x")[1][1]["spec"]["replicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.looptime
async def test_a_program_lives_as_long_as_its_pod() -> None:
    theatre = Theatre()
    async with stage(programs=theatre) as s:
        await start(s, volumes=[{"name": "hccl", "configMap": {"name": "rings-config-p0"}}])
        [first] = theatre.started
        pod = s.pods("p0")["p0-master-0"]
        assert (first.sandbox.ip, first.sandbox.uid) == (pod["status"]["podIP"], pod["metadata"]["uid"])
        assert first.sandbox.env["MINDX_SERVER_IP"] == "127.0.0.1"
        assert json.loads(first.sandbox.volumes["hccl"]["hccl.json"])["status"] == "initializing"
        assert json.loads(first.sandbox.read_volume("hccl")["hccl.json"])["status"] == "completed"
        await first.sandbox.annotate({"told": "yes"})
        await s.kill("p0")
        await s.wait(lambda: len(theatre.started) == 2, "second program")
        assert first.cancelled
        assert theatre.started[1].sandbox.ip != first.sandbox.ip


@pytest.mark.looptime
async def test_the_end_of_a_program_is_the_end_of_its_container() -> None:
    theatre = Theatre()
    async with stage(programs=theatre) as s:
        await start(s)
        theatre.started[0].end.set_result(7)
        await s.wait(lambda: s.phase("p0-master-0") == "Failed", "failed")
        [status] = s.pods("p0")["p0-master-0"]["status"]["containerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 7


@pytest.mark.looptime
async def test_a_program_that_cannot_go_on_exits_with_1_and_is_restarted() -> None:
    theatre = Theatre()
    async with stage(programs=theatre) as s:
        objects = instance("p0", restart_policy="Always", spec={"containers": [{**_container(), **PROBE}]})
        await s.apply(*objects)
        await s.wait(lambda: s.is_running("p0", 1), "running")
        theatre.started[0].end.set_exception(ProgramError("no table"))
        await s.wait(lambda: len(theatre.started) == 2, "restarted")
        await s.wait(lambda: s.is_running("p0", 1), "ready again")
        [status] = s.pods("p0")["p0-master-0"]["status"]["containerStatuses"]
        assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)


@pytest.mark.looptime
async def test_a_lost_node_cuts_its_programs_off_and_its_return_starts_them_again() -> None:
    theatre = Theatre()
    async with stage(programs=theatre) as s:
        await start(s)
        node = s.cards("p0")["p0-master-0"][0]
        await s.world.set_faults(node, [{"node": "NotReady"}])
        await s.wait(lambda: theatre.started[0].cancelled, "cut off")
        await s.clock.sleep(60)
        assert len(theatre.started) == 1
        assert not s.is_running("p0", 1)
        await s.world.heal(node)
        await s.wait(lambda: len(theatre.started) == 2 and s.is_running("p0", 1), "back")


@pytest.mark.looptime
async def test_a_missing_rings_config_keeps_a_pod_pending() -> None:
    async with stage() as s:
        volumes = [{"name": "hccl", "configMap": {"name": "rings-config-p0"}}]
        rings, job = instance("p0", spec={"volumes": volumes})
        await s.apply(job)
        await s.clock.sleep(30)
        assert s.phase("p0-master-0") == "Pending"
        await s.apply(rings)
        await s.wait(lambda: s.is_running("p0", 1), "running")
