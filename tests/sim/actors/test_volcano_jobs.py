"""What the Volcano job controller makes of a vcjob: pods, restarts by policy, and an end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mindie_ha.sim.actors.documents import text
from mindie_ha.sim.actors.pod_runs import EXIT
from mindie_ha.sim.client import Object

from .conftest import NAMESPACE, Stage, stage

pytestmark = pytest.mark.looptime
ON_EVICTION = [{"event": "PodEvicted", "action": "RestartJob"}]
ON_FAILURE = [{"events": ["PodFailed"], "action": "RestartJob"}]


def vcjob(*, policies: list[Object] | None = None, **spec: Any) -> Object:
    container = {
        "name": "ascend",
        "image": "train:1",
        "resources": {"requests": {"huawei.com/Ascend910": 8}, "limits": {"huawei.com/Ascend910": 8}},
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    tasks = [
        {"name": "master", "replicas": 1, "template": template},
        {"name": "worker", "replicas": 1, "template": template},
    ]
    body = {"minAvailable": 2, "tasks": tasks, "policies": policies or [], "schedulerName": "volcano", **spec}
    return {"metadata": {"name": "t", "namespace": NAMESPACE}, "spec": body}


def pods(s: Stage) -> dict[str, Object]:
    return {text(pod, "metadata", "name"): pod for pod in s.world.cache.all("Pod", NAMESPACE)}


def uids(s: Stage) -> dict[str, str]:
    return {name: text(pod, "metadata", "uid") for name, pod in pods(s).items()}


def status(s: Stage) -> Object:
    job = s.world.cache.get("Job", "t", NAMESPACE) or {}
    return dict(job.get("status") or {})


def phase(s: Stage) -> str:
    return str(status(s).get("state", {}).get("phase", ""))


async def start(s: Stage, **spec: Any) -> dict[str, str]:
    await s.api.create("Job", vcjob(**spec))
    await s.wait(lambda: phase(s) == "Running", "running")
    return uids(s)


async def test_a_job_gets_its_group_its_pods_and_their_ranks() -> None:
    async with stage() as s:
        await start(s)
        assert sorted(pods(s)) == ["t-master-0", "t-worker-0"]
        ranks = {name: pod["metadata"]["annotations"]["hccl/rankIndex"] for name, pod in pods(s).items()}
        assert ranks == {"t-master-0": "0", "t-worker-0": "1"}
        (group,) = s.world.cache.all("PodGroup", NAMESPACE)
        assert group["spec"]["minMember"] == 2
        assert (status(s)["running"], status(s)["minAvailable"]) == (2, 2)


async def test_without_a_policy_only_the_missing_pod_is_made_anew() -> None:
    async with stage() as s:
        old = await start(s)
        await s.api.delete("Pod", "t-worker-0", NAMESPACE, grace_s=0)
        await s.wait(lambda: uids(s).get("t-worker-0") not in (None, old["t-worker-0"]), "made anew")
        assert uids(s)["t-master-0"] == old["t-master-0"]
        assert status(s).get("retryCount", 0) == 0


async def test_restart_job_on_eviction_replaces_all_pods_and_counts_once() -> None:
    async with stage() as s:
        old = await start(s, policies=ON_EVICTION)
        for name in old:
            await s.api.delete("Pod", name, NAMESPACE, grace_s=0)
        await s.wait(lambda: phase(s) == "Running" and not set(uids(s).values()) & set(old.values()), "anew")
        await s.clock.sleep(30)
        assert (status(s)["retryCount"], status(s)["version"]) == (1, 1)


async def test_the_restart_that_reaches_max_retry_ends_the_job() -> None:
    async with stage() as s:
        await start(s, policies=ON_EVICTION, maxRetry=2)
        await s.api.delete("Pod", "t-worker-0", NAMESPACE, grace_s=0)
        await s.wait(lambda: status(s).get("retryCount") == 1 and phase(s) == "Running", "once")
        await s.api.delete("Pod", "t-worker-0", NAMESPACE, grace_s=0)
        await s.wait(lambda: phase(s) == "Failed", "failed")
        await s.wait(lambda: not pods(s), "its pods are deleted")
        await s.clock.sleep(30)
        assert (phase(s), status(s)["retryCount"]) == ("Failed", 2)
        assert not pods(s)


@pytest.mark.parametrize(
    ("policies", "replaced"),
    [([], False), (ON_FAILURE, True), (ON_EVICTION, False)],
    ids=["none", "on-failure", "on-eviction"],
)
async def test_a_failed_pod_stays_unless_a_policy_minds(policies: list[Object], replaced: bool) -> None:
    async with stage() as s:
        old = await start(s, policies=policies)
        body = {"metadata": {"annotations": {EXIT: json.dumps({"code": 1})}}}
        await s.api.patch("Pod", "t-worker-0", NAMESPACE, body)
        await s.clock.sleep(60)
        assert (uids(s)["t-worker-0"] != old["t-worker-0"]) is replaced
        assert (uids(s)["t-master-0"] != old["t-master-0"]) is replaced
        assert phase(s) == ("Running" if replaced else "Pending")
