"""Volcano batch jobs: recovered by the same engine, within the limits of their own controller."""

from __future__ import annotations

from typing import Any

import pytest

from .clusters import CHIP, NAMESPACE, Cluster, Object, cluster, quick

pytestmark = pytest.mark.looptime
ON_EVICTION = [{"event": "PodEvicted", "action": "RestartJob"}]


def vcjob(**spec: Any) -> Object:
    cards = {"huawei.com/Ascend910": 8}
    container = {"name": "ascend", "image": "train:1", "resources": {"requests": cards, "limits": cards}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    names = ("master", "worker")
    tasks = [{"name": name, "replicas": 1, "template": template} for name in names]
    labels = {"fault-scheduling": "force", "fault-retry-times": "2"}
    return {
        "kind": "Job",
        "metadata": {"name": "train", "namespace": NAMESPACE, "labels": labels},
        "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": tasks, **spec},
    }


def closed(c: Cluster) -> list[Object]:
    found: list[Object] = c.judge.ledger_of(NAMESPACE, "train", kind="Job").get("closed", [])
    return found


def runs(c: Cluster) -> bool:
    return len(c.pods()) == 2 and all(pod["status"]["phase"] == "Running" for pod in c.pods().values())


@pytest.mark.parametrize("policies", [[], ON_EVICTION], ids=["no-policy", "restart-on-eviction"])
async def test_a_chip_fault_rebuilds_the_whole_job_once(policies: list[Object]) -> None:
    async with cluster(servers=(), service=[vcjob(policies=policies)], start=False) as c:
        await c.start(quick())
        await c.until(lambda: runs(c), "running")
        old, node = c.uids(), c.node_of("train-worker-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: len(closed(c)) == 1, "recovered")
        assert closed(c)[0]["outcome"] == "recovered"
        assert closed(c)[0]["rungs"] == ["job"]
        assert not set(old.values()) & set(c.uids().values())
        job = c.get("Job", "train")
        assert job is not None
        assert job["status"].get("retryCount", 0) == len(policies)
        assert not c.all("ConfigMap", "volcano-system"), "no retries for an operator that is not there"
        await c.quiet()


async def test_a_job_that_its_controller_ended_parks_and_names_the_limit() -> None:
    async with cluster(servers=(), service=[vcjob(policies=ON_EVICTION, maxRetry=1)], start=False) as c:
        await c.start(quick())
        await c.until(lambda: runs(c), "running")
        await c.world.set_faults(c.node_of("train-worker-0"), [CHIP])
        await c.until(lambda: c.state("train") == "parked", "parked")
        (event,) = c.events("OwnerGaveUp")
        assert "maxRetry" in event["message"]


async def test_of_two_kinds_under_one_name_the_first_is_looked_after_and_the_other_told() -> None:
    async with cluster(start=False) as c:
        other = vcjob()
        other["metadata"]["name"] = "mindie-server-p0"
        await c.start(quick())
        await c.serving()
        await c.apply([other])
        await c.clock.sleep(20.0)
        assert any("rename one" in text for text in c.app.core.store.problems().values())
        assert not [
            one for one in c.all("ConfigMap") if one["metadata"]["name"].endswith("-job-mindie-server-p0")
        ]
