"""The infer-operator and the controllers under it: instances, and vectors I1-I7 as the reference has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mindie_ha.sim.actors.documents import condition, is_terminating, labels_of, name_of, text, uid_of
from mindie_ha.sim.actors.infer_operators import InferOperatorSettings, is_fault
from mindie_ha.sim.client import Object
from mindie_ha.sim.disturbances import Rule
from mindie_ha.sim.world import WorldSettings

from .conftest import NAMESPACE, Stage, stage

pytestmark = pytest.mark.looptime
PREFIX = "infer.huawei.com/"
DECODE = "chat-0-decode-0"


def role(
    name: str, *, kind: str = "StatefulSet", instances: int = 2, gang: bool = False, **labels: str
) -> Object:
    cards = {"huawei.com/Ascend910": 4}
    container = {"name": "engine", "image": "e:1", "resources": {"requests": cards, "limits": cards}}
    marks = {key.replace("_", "-"): value for key, value in labels.items()}
    spec: Object = {
        "replicas": 2,
        "template": {
            "metadata": {"labels": {"fault-scheduling": "external-force", **marks}},
            "spec": {"schedulerName": "volcano", "containers": [container]},
        },
    }
    if kind == "StatefulSet":
        spec["podManagementPolicy"] = "Parallel"
    return {
        "name": name,
        "replicas": instances,
        "workload": {"apiVersion": "apps/v1", "kind": kind},
        "metadata": {"labels": {f"{PREFIX}gang-schedule": "true" if gang else "false"}},
        "spec": spec,
    }


def service(*roles: Object) -> Object:
    spec = {"replicas": 1, "template": {"roles": list(roles)}}
    return {"metadata": {"name": "chat", "namespace": NAMESPACE}, "spec": spec}


def pods(s: Stage, workload: str = "chat") -> dict[str, str]:
    """UIDs by name, of pods that stay."""
    found = s.world.cache.all("Pod", NAMESPACE)
    return {name_of(p): uid_of(p) for p in found if name_of(p).startswith(workload) and not is_terminating(p)}


def well(s: Stage, count: int) -> bool:
    found = s.world.cache.all("Pod", NAMESPACE)
    return len(found) == count and all(text(condition(p, "Ready"), "status") == "True" for p in found)


def workload_uid(s: Stage, kind: str = "StatefulSet", name: str = DECODE) -> str:
    return uid_of(s.world.cache.get(kind, name, NAMESPACE) or {})


async def mark(s: Stage, pod: str, status: str) -> None:
    body = {"metadata": {"annotations": {"huawei.com/pod-status": f"Unhealthy-{status}"}}}
    await s.api.patch("Pod", pod, NAMESPACE, body)


@asynccontextmanager
async def running(*roles: Object, settings: WorldSettings | None = None) -> AsyncIterator[Stage]:
    async with stage(settings=settings) as s:
        await s.api.create("InferServiceSet", service(*roles))
        count = sum(each["replicas"] * each["spec"]["replicas"] for each in roles)
        await s.wait(lambda: well(s, count), "running")
        yield s


async def test_a_set_becomes_instances_with_the_labels_that_name_them() -> None:
    async with running(role("prefill", instances=1, gang=True), role("decode", kind="Deployment")) as s:
        assert {name for name in pods(s) if "prefill" in name} == {"chat-0-prefill-0-0", "chat-0-prefill-0-1"}
        found = s.world.cache.get("StatefulSet", "chat-0-prefill-0", NAMESPACE) or {}
        assert labels_of(found)[f"{PREFIX}inferservice-name"] == "chat-0"
        assert labels_of(found)[f"{PREFIX}role-name"] == "prefill"
        assert labels_of(found)["fault-scheduling"] == "external-force"
        assert text(found, "spec", "serviceName") == "service-chat-0-prefill-0"
        assert [name_of(group) for group in s.world.cache.all("PodGroup")] == ["pg-chat-0-prefill-0"]
        (replica_set, _) = s.world.cache.all("ReplicaSet", NAMESPACE)
        assert name_of(replica_set).startswith("chat-0-decode-0-")
        assert len(pods(s, name_of(replica_set))) == 2


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
async def test_a_deleted_pod_comes_back_by_ordinal_or_under_a_random_name(kind: str) -> None:
    async with running(role("decode", kind=kind, instances=1)) as s:
        before, uid = pods(s), workload_uid(s, kind)
        gone = min(before)
        await s.api.delete("Pod", gone, NAMESPACE, grace_s=0)
        await s.wait(lambda: well(s, 2) and before[gone] not in pods(s).values(), "back")
        assert (gone in pods(s)) is (kind == "StatefulSet")
        assert workload_uid(s, kind) == uid, "I5: without gang-schedule the workload stays"


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
async def test_i1_a_marked_pod_rebuilds_its_workload_and_no_other(kind: str) -> None:
    async with running(role("decode", kind=kind)) as s:
        before, old = pods(s), workload_uid(s, kind)
        victim = next(name for name in before if name.startswith(DECODE))
        await mark(s, victim, "CardUnhealthy")
        await s.wait(lambda: workload_uid(s, kind) not in ("", old) and well(s, 4), "rebuilt")
        changed = {name for name, uid in before.items() if pods(s).get(name) != uid}
        assert changed == {name for name in before if name.startswith(DECODE)}


@pytest.mark.parametrize("retries", ["", "many"], ids=["absent", "invalid"])
async def test_i2_a_failed_program_without_valid_retries_is_ignored(retries: str) -> None:
    labels = {"fault_retry_times": retries} if retries else {}
    async with running(role("decode", **labels)) as s:
        before = pods(s)
        await mark(s, f"{DECODE}-0", "pod-failed")
        await s.clock.sleep(30)
        assert pods(s) == before


@pytest.mark.parametrize(("retries", "valid"), [("-1", False), ("0", True), ("3", True)])
def test_i2_a_number_of_retries_below_zero_is_none(retries: str, valid: bool) -> None:
    meta = {
        "labels": {"fault-retry-times": retries},
        "annotations": {"huawei.com/pod-status": "Unhealthy-pod-failed"},
    }
    assert is_fault({"metadata": meta}) is valid


async def test_i3_a_second_mark_is_merged_into_the_first() -> None:
    async with running(role("decode", fault_retry_times="5")) as s:
        old = workload_uid(s)
        for pod in (f"{DECODE}-0", f"{DECODE}-1"):
            await mark(s, pod, "CardUnhealthy")
        await s.wait(lambda: workload_uid(s) not in ("", old) and well(s, 4), "rebuilt")
        new = workload_uid(s)
        await s.clock.sleep(30)
        assert workload_uid(s) == new


async def test_i4_with_gang_schedule_a_deleted_pod_rebuilds_its_workload() -> None:
    async with running(role("decode", gang=True)) as s:
        before, old = pods(s), workload_uid(s)
        await s.api.delete("Pod", f"{DECODE}-0", NAMESPACE, grace_s=0)
        await s.wait(lambda: workload_uid(s) not in ("", old) and well(s, 4), "rebuilt")
        changed = {name for name, uid in before.items() if pods(s)[name] != uid}
        assert changed == {f"{DECODE}-0", f"{DECODE}-1"}


async def test_i6_retries_are_counted_for_each_workload_and_end() -> None:
    async with running(role("decode", fault_retry_times="1")) as s:
        old = workload_uid(s)
        await mark(s, f"{DECODE}-0", "pod-failed")
        await s.wait(lambda: workload_uid(s) not in ("", old) and well(s, 4), "the first is paid")
        new = workload_uid(s)
        await mark(s, f"{DECODE}-0", "pod-failed")
        await s.clock.sleep(30)
        assert workload_uid(s) == new


async def test_i7_pods_on_a_node_that_is_not_ready_are_forced_and_a_refusal_is_repeated() -> None:
    async with running(role("decode", instances=1)) as s:
        before = pods(s)
        pod = s.world.cache.get("Pod", f"{DECODE}-0", NAMESPACE) or {}
        node = text(pod, "spec", "nodeName")
        there = {
            name_of(p) for p in s.world.cache.all("Pod", NAMESPACE) if text(p, "spec", "nodeName") == node
        }
        s.server.disturbances.add(Rule("DELETE", "pods", code=503, times=2))
        began_s = s.clock.monotonic()
        await s.world.set_faults(node, [{"node": "NotReady"}])
        await s.wait(lambda: all(pods(s).get(name) != before[name] for name in there), "gone")
        assert s.clock.monotonic() - began_s < 10
        assert {name for name, uid in before.items() if pods(s).get(name) == uid} == set(before) - there


async def test_switched_off_it_makes_instances_and_leaves_faults_alone() -> None:
    off = WorldSettings(infer_operator=InferOperatorSettings(reschedules=False))
    async with running(role("decode", gang=True), settings=off) as s:
        before = pods(s)
        await mark(s, f"{DECODE}-0", "CardUnhealthy")
        await s.clock.sleep(30)
        assert pods(s) == before


async def test_an_ordered_set_starts_one_pod_after_the_other() -> None:
    ordered: dict[str, Any] = role("decode", instances=1)
    ordered["spec"]["podManagementPolicy"] = "OrderedReady"
    async with stage() as s:
        await s.api.create("InferServiceSet", service(ordered))
        await s.wait(lambda: bool(pods(s)), "the first")
        assert list(pods(s)) == [f"{DECODE}-0"]
        await s.wait(lambda: well(s, 2), "both")
