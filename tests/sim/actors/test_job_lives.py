"""What the operator does over time: limits, failures, validation, exit codes."""

from __future__ import annotations

import asyncio
import json

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import annotations_of, condition, text
from mindie_ha.sim.actors.operators import AscendOperator
from mindie_ha.sim.actors.pod_runs import EXIT
from mindie_ha.sim.client import ApiClient, Object
from mindie_ha.sim.server import ApiServer

from .conftest import NAMESPACE, Stage, instance, stage

pytestmark = pytest.mark.looptime


async def fail(s: Stage, pod: str, code: int = 1) -> None:
    await s.api.patch(
        "Pod", pod, NAMESPACE, {"metadata": {"annotations": {EXIT: json.dumps({"code": code})}}}
    )


async def leave_retries(s: Stage, job: str, times: int) -> None:
    found = await s.api.get("AscendJob", job, NAMESPACE) or {}
    left = {f"{NAMESPACE}/{job}-{found['metadata']['uid']}": {"Times": times}}
    meta = {"name": "vcjob-fault-npu-cm", "namespace": "volcano-system"}
    await s.api.create("ConfigMap", {"metadata": meta, "data": {"remain-retry-times": json.dumps(left)}})


@pytest.mark.parametrize(
    ("retries", "remaining", "expected"),
    [
        pytest.param(None, None, "Failed", id="O8"),
        pytest.param("3", 2, "Restarting", id="O9"),
        pytest.param("3", 0, "Failed", id="O10"),
        pytest.param("3", None, "Failed", id="O11"),
    ],
)
async def test_a_failed_pod(retries: str | None, remaining: int | None, expected: str) -> None:
    async with stage() as s:
        await s.start("p0", workers=1, labels={"fault-retry-times": retries} if retries else {})
        if remaining is not None:
            await leave_retries(s, "p0", remaining)
        await fail(s, "p0-worker-0")
        await s.wait(lambda: s.state("p0") == expected, expected)
        await s.clock.sleep(30)
        assert s.phase("p0-worker-0") == "Failed", "the operator never deletes it"
        assert bool(s.world.cache.all("PodGroup")) is (expected == "Restarting")
        assert s.phase("p0-master-0") == "Running", "running pods of a failed job remain"


async def test_a_restarting_job_runs_again_when_its_failed_pod_is_deleted() -> None:
    async with stage() as s:
        await s.start("p0", workers=1, labels={"fault-retry-times": "3"})
        await leave_retries(s, "p0", 3)
        await fail(s, "p0-worker-0")
        await s.wait(lambda: s.state("p0") == "Restarting", "restarting")
        await s.kill("p0", grace_s=0)
        await s.wait(lambda: s.state("p0") == "Running" and s.is_running("p0", 2), "running")


async def test_o4_o5_the_backoff_limit_counts_rounds() -> None:
    async with stage() as s:
        objects = instance("p0")
        objects[1][1]["spec"]["runPolicy"]["backoffLimit"] = 2
        await s.apply(*objects)
        for _ in range(2):
            await s.wait(lambda: s.is_running("p0", 1), "running")
            await s.kill("p0", grace_s=0)
            await s.wait(lambda: not s.pods("p0") or not s.is_running("p0", 1), "gone")
        await s.wait(lambda: s.is_running("p0", 1), "O5: round 2 is created")
        await s.kill("p0", grace_s=0)
        await s.wait(lambda: s.state("p0") == "Failed", "O4: round 3 is too many")
        await s.wait(lambda: not s.world.cache.all("PodGroup"), "PodGroup deleted")
        job = s.world.cache.get("AscendJob", "p0", NAMESPACE) or {}
        assert "backoff limit" in text(condition(job, "Failed"), "message")


async def test_o13_no_pods_while_the_pod_group_waits() -> None:
    clock = LoopClock(wall_origin_s=1_800_000_000)
    api = ApiClient(ApiServer(clock=clock, entropy=Entropy(1)))
    cache = Cache(api=api, clock=clock)
    operator = AscendOperator(api=api, cache=cache, clock=clock, entropy=Entropy(1))
    await api.create("Queue", {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    for kind, body in instance("p0"):
        await api.create(kind, body)
    seen = {}
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(cache.run()), group.create_task(operator.run())]
        for phase in ("", "Pending", "Inqueue"):
            await clock.sleep(1)
            [found], _ = await api.list("PodGroup")
            if phase:
                meta = found["metadata"]
                await api.patch(
                    "PodGroup", meta["name"], NAMESPACE, {"status": {"phase": phase}}, subresource="status"
                )
                await clock.sleep(1)
            [job], _ = await api.list("AscendJob")
            pods, _ = await api.list("Pod")
            seen[phase] = (job["status"]["conditions"][-1]["reason"], len(pods))
        for task in tasks:
            task.cancel()
    assert seen[""] == ("PodGroupNotInitialized", 0)
    assert seen["Pending"] == ("PodGroupPending", 0)
    assert seen["Inqueue"][1] == 1


async def test_o7_a_non_numeric_retry_count_costs_the_table_only() -> None:
    async with stage() as s:
        await s.apply(*instance("p0", labels={"fault-retry-times": "x"}))
        await s.wait(lambda: s.is_running("p0", 1), "running")
        await s.clock.sleep(30)
        assert s.table("p0")["status"] == "initializing"


async def test_o21_a_missing_config_map_is_not_created() -> None:
    async with stage() as s:
        await s.apply(*instance("p0", table=False))
        await s.wait(lambda: s.is_running("p0", 1), "running")
        await s.clock.sleep(30)
        assert s.world.cache.get("ConfigMap", "rings-config-p0", NAMESPACE) is None


async def test_a_pod_that_mounts_a_missing_table_says_so() -> None:
    volume = {"name": "ascend-910-config", "configMap": {"name": "rings-config-absent"}}
    async with stage() as s:
        await s.apply(*instance("p0", spec={"volumes": [volume]}))
        await s.clock.sleep(30)
        events, _ = await s.world.api.list("Event", NAMESPACE)
        told = [event for event in events if event["reason"] == "FailedMount"]
        assert [event["involvedObject"]["name"] for event in told] == ["p0-master-0"]
        assert '"rings-config-absent" not found' in told[0]["message"]


@pytest.mark.parametrize(("code", "again"), [(137, True), (1, False)], ids=["O14-137", "O14-1"])
async def test_exit_code_policy(code: int, again: bool) -> None:
    async with stage() as s:
        await s.start("p0", restart_policy="ExitCode", labels={"fault-retry-times": "5"})
        await leave_retries(s, "p0", 5)
        old = s.uids("p0")
        await fail(s, "p0-master-0", code)
        if again:
            await s.wait(lambda: s.is_running("p0", 1) and not s.uids("p0") & old, "created again")
        else:
            await s.clock.sleep(30)
            assert s.uids("p0") == old


async def test_o19_the_rank_that_is_free_is_given_again() -> None:
    """Ranks of an AscendJob follow from role and index, so the free one is that of the missing name. They are
    written with the pod, so there is no patch that could fail (O20)."""
    async with stage() as s:
        await s.start("p0", workers=2)
        await s.api.delete("Pod", "p0-worker-0", NAMESPACE, grace_s=0)
        await s.wait(lambda: "p0-worker-0" not in s.pods("p0"), "gone")
        await s.wait(lambda: s.is_running("p0", 3), "running again")
        ranks = {name: annotations_of(pod)["hccl/rankIndex"] for name, pod in s.pods("p0").items()}
        assert ranks == {"p0-master-0": "0", "p0-worker-0": "1", "p0-worker-1": "2"}


async def test_o29_pending_pods_of_a_finished_job_are_deleted() -> None:
    async with stage() as s:
        await s.apply(*instance("p0", workers=4))  # more than there are nodes
        await s.wait(lambda: len(s.pods("p0")) == 5, "created")
        await s.clock.sleep(10)
        assert {s.phase(name) for name in s.pods("p0")} == {"Pending"}
        found = {"type": "Failed", "status": "True", "reason": "JobFailed", "message": "gave up"}
        body = {"status": {"conditions": [found]}}
        await s.api.patch("AscendJob", "p0", NAMESPACE, body, subresource="status")
        await s.wait(lambda: not s.pods("p0"), "deleted")


async def test_an_invalid_job_fails_with_the_reason_and_harms_nobody() -> None:
    async with stage() as s:
        bad = instance("bad")[1][1]
        bad["metadata"]["labels"]["framework"] = "jax"
        await s.apply(("AscendJob", bad))
        await s.start("p0")
        assert s.state("bad") == "Failed"
        found = condition(s.world.cache.get("AscendJob", "bad", NAMESPACE) or {}, "Failed")
        assert (found["reason"], "InvalidFramework" in found["message"]) == ("JobValidFailed", True)


async def test_deleting_a_job_takes_everything_of_it_away() -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        await s.api.delete("AscendJob", "p0", NAMESPACE)
        await s.wait(lambda: not s.pods("p0") and not s.world.cache.all("PodGroup"), "collected")
        await s.clock.sleep(30)
        assert not s.pods("p0")


async def test_a_quiet_world_writes_only_heartbeats() -> None:
    async with stage() as s:
        await s.start("p0", workers=1)
        await s.clock.sleep(20)
        before = await versions(s)
        await s.clock.sleep(200)
        assert await versions(s) == before


async def versions(s: Stage) -> dict[str, str]:
    kinds = ("Pod", "PodGroup", "AscendJob", "ConfigMap", "Node")
    lists = await asyncio.gather(*(s.api.list(kind) for kind in kinds))
    found: list[Object] = [obj for listed, _ in lists for obj in listed]
    return {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in found}
