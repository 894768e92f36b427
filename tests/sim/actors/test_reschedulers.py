"""Volcano's rescheduler among the other actors: what it deletes, when, and what it leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mindie_ha.sim.actors.documents import annotations_of, text
from mindie_ha.sim.actors.machines import a2_nodes
from mindie_ha.sim.actors.reschedulers import ReschedulerSettings
from mindie_ha.sim.world import WorldSettings

from .conftest import NAMESPACE, Stage, instance, stage

pytestmark = pytest.mark.looptime
CHIP = {"device": "Ascend910-3", "code": "80E18005", "level": "SeparateNPU"}
LOST = {"node": "NotReady"}
ON = WorldSettings(rescheduler=ReschedulerSettings())
MS = {"app": "mindie-ms-coordinator"}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"jobID": "svc"}}}
        ]
    }
}


async def coordinator(s: Stage) -> None:
    """Two of them, on nodes of their own."""
    [(kind, job)] = instance("ms", workers=1, cards=0, spec={"affinity": APART}, table=False)
    job["metadata"]["labels"] |= {**MS, "pod-rescheduling": "on"}
    for role in job["spec"]["replicaSpecs"].values():
        role["template"]["metadata"]["labels"] |= MS
    await s.apply((kind, job))
    await s.wait(lambda: s.is_running("ms", 2), "both run")


def node(s: Stage, pod: str) -> str:
    return text(s.world.cache.get("Pod", pod, NAMESPACE), "spec", "nodeName")


def left(s: Stage) -> dict[str, Any]:
    config = s.world.cache.get("ConfigMap", "vcjob-fault-npu-cm", "volcano-system")
    found: dict[str, Any] = json.loads(text(config, "data", "remain-retry-times") or "{}")
    return {name.split("/")[1][:2]: entry["Times"] for name, entry in found.items()}


async def test_a_bad_card_costs_all_pods_of_the_job_and_of_no_other() -> None:
    async with stage(settings=ON, nodes=a2_nodes(6)) as s:
        await s.start("p0", workers=1)
        await s.start("d0")
        old, other = s.uids("p0"), s.uids("d0")
        await s.world.set_faults(node(s, "p0-worker-0"), [CHIP])
        await s.wait(lambda: s.is_running("p0", 2) and not s.uids("p0") & old, "replaced")
        await s.clock.sleep(60)
        assert s.uids("d0") == other
        assert len(s.uids("p0") | old) == 4  # replaced once


async def test_without_it_nothing_is_deleted() -> None:
    async with stage(nodes=a2_nodes(4)) as s:
        await s.start("p0")
        old = s.uids("p0")
        await s.world.set_faults(node(s, "p0-master-0"), [CHIP])
        await s.clock.sleep(30)
        assert s.uids("p0") == old
        assert left(s) == {}


@pytest.mark.parametrize("value", ["mindie-ha", "", "platform"])
async def test_the_annotation_keeps_it_away_whatever_its_value(value: str) -> None:
    async with stage(settings=ON, nodes=a2_nodes(4)) as s:
        await s.start("p0", annotations={"ProcessRecoverStrategy": value})
        old = s.uids("p0")
        await s.world.set_faults(node(s, "p0-master-0"), [CHIP])
        await s.clock.sleep(30)
        assert s.uids("p0") == old


async def test_external_modes_only_mark_the_pod() -> None:
    async with stage(settings=ON, nodes=a2_nodes(4)) as s:
        await s.start("p0", workers=1, labels={"fault-scheduling": "external-force"})
        old = s.uids("p0")
        await s.world.set_faults(node(s, "p0-worker-0"), [CHIP])
        await s.clock.sleep(30)
        marks = {name: annotations_of(pod).get("huawei.com/pod-status") for name, pod in s.pods("p0").items()}
        assert s.uids("p0") == old
        assert marks == {"p0-master-0": None, "p0-worker-0": "Unhealthy-CardUnhealthy"}


async def test_a_program_that_fails_is_restarted_while_retries_are_left() -> None:
    async with stage(settings=ON, nodes=a2_nodes(4)) as s:
        await s.start("p0", labels={"fault-retry-times": "1"})
        await s.wait(lambda: left(s) == {"p0": 1}, "the counter is told")
        old = s.uids("p0")
        await _exit(s, "p0-master-0")
        await s.wait(lambda: s.is_running("p0", 1) and not s.uids("p0") & old, "restarted")
        await s.wait(lambda: left(s) == {"p0": 0}, "paid")
        old = s.uids("p0")
        await _exit(s, "p0-master-0")
        await s.wait(lambda: s.state("p0") == "Failed", "the operator gave up")
        assert s.uids("p0") == old


async def test_of_a_coordinator_only_the_failed_pod_goes_and_nothing_widens() -> None:
    """M13: the replacement has no place beside its peer, and the peer stays for ever."""
    async with stage(settings=ON, nodes=a2_nodes(2)) as s:
        await coordinator(s)
        peer = s.pods("ms")["ms-worker-0"]["metadata"]["uid"]
        old = s.uids("ms")
        await s.world.set_faults(node(s, "ms-master-0"), [LOST])
        await s.wait(lambda: len(s.uids("ms") - old) == 1, "replaced", deadline_s=90)
        await s.clock.sleep(120)
        assert len(s.uids("ms") - old) == 1
        assert s.pods("ms")["ms-worker-0"]["metadata"]["uid"] == peer


async def test_a_server_with_the_pod_label_widens_after_twelve_sessions() -> None:
    """M11."""
    async with stage(settings=ON, nodes=a2_nodes(2)) as s:
        await s.start("p0", workers=1, labels={"pod-rescheduling": "on"})
        old = s.uids("p0")
        await s.world.set_faults(node(s, "p0-worker-0"), [CHIP])
        await s.wait(lambda: len(s.uids("p0") - old) == 1, "the faulty pod is replaced")
        began_s = s.clock.monotonic()
        await s.wait(lambda: not s.uids("p0") & old, "all of them")
        assert s.clock.monotonic() - began_s == pytest.approx(12, abs=2)


async def test_grace_gives_the_pod_its_time_but_not_on_a_lost_node() -> None:
    async with stage(settings=ON, nodes=a2_nodes(4)) as s:
        await s.start("p0", workers=1, labels={"fault-scheduling": "grace"})
        lost = node(s, "p0-worker-0")
        await s.world.set_faults(lost, [LOST])
        await s.wait(lambda: "deletionTimestamp" in _meta(s, "p0-master-0"), "evicted", deadline_s=90)
        assert _meta(s, "p0-master-0")["deletionGracePeriodSeconds"] == 60
        assert node(s, "p0-worker-0") != lost  # that one was forced at once


def _meta(s: Stage, pod: str) -> dict[str, Any]:
    found: dict[str, Any] = (s.world.cache.get("Pod", pod, NAMESPACE) or {"metadata": {}})["metadata"]
    return found


async def _exit(s: Stage, pod: str) -> None:
    note = {"sim.mindie-ha.io/exit": json.dumps({"code": 1})}
    await s.api.patch("Pod", pod, NAMESPACE, {"metadata": {"annotations": note}})
