"""Training jobs of several pods: which of them are replaced, who joins whom again, and what widens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mindie_ha.demo import manifests
from mindie_ha.model.settings import Settings
from mindie_ha.sim.actors.machines import a3_nodes

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, Object, cluster, quick

pytestmark = pytest.mark.looptime
TRAIN = "train"


def job(*, annotations: dict[str, str] | None = None, **labels: str) -> list[Object]:
    objects = list(manifests.load("training"))
    meta = objects[-1]["metadata"]
    meta["labels"] |= {name.replace("_", "-"): value for name, value in labels.items()}
    meta["annotations"] = annotations or {}
    return objects


@asynccontextmanager
async def training(
    *,
    nodes: int = 6,
    settings: Settings | None = None,
    annotations: dict[str, str] | None = None,
    **labels: str,
) -> AsyncIterator[Cluster]:
    """A job that runs, with the controller beside it."""
    service = job(annotations=annotations, **labels)
    async with cluster(servers=(), service=service, start=False, nodes=nodes) as c:
        await c.start(settings or quick())
        await c.until(lambda: runs(c), "running")
        yield c


def runs(c: Cluster) -> bool:
    return len(c.pods()) == 4 and all(pod["status"]["phase"] == "Running" for pod in c.pods().values())


def ranks(c: Cluster) -> list[str]:
    return sorted(pod["metadata"]["annotations"]["hccl/rankIndex"] for pod in c.pods().values())


def reset(c: Cluster) -> Object:
    found = c.get("ConfigMap", "reset-config-train")
    assert found is not None
    content: Object = json.loads(found["data"]["reset.json"])
    return content | {"type": found["data"].get("restartType", "")}


def replaced(c: Cluster, old: dict[str, str]) -> set[str]:
    return {name for name, uid in c.uids().items() if old[name] != uid}


async def test_without_the_label_every_pod_is_replaced() -> None:
    async with training() as c:
        old = c.uids()
        await c.world.set_faults(c.node_of("train-worker-1"), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["job"]
        assert record["outcome"] == "recovered"
        assert replaced(c, old) == set(old)
        assert reset(c)["RetryTime"] == 0
        assert ranks(c) == ["0", "1", "2", "3"]
        await c.quiet()


async def test_with_the_label_the_faulty_pod_alone_is_replaced_and_the_others_are_asked_to_join() -> None:
    async with training(pod_rescheduling="on") as c:
        old = c.uids()
        await c.world.set_faults(c.node_of("train-worker-1"), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["pod"]
        assert [one["phase"] for one in record["history"]][-3:] == ["rejoin", "announce", "settle"]
        assert replaced(c, old) == {"train-worker-1"}
        assert reset(c) | {"UpdateTime": 0} == {
            "RankList": [],
            "UpdateTime": 0,
            "RetryTime": 1,
            "FaultFlushing": False,
            "GracefulExit": 0,
            "type": "podReschedule",
        }
        assert ranks(c) == ["0", "1", "2", "3"]
        await c.quiet()


@pytest.mark.parametrize("how", ["card", "deleted"])
async def test_the_leader_is_never_replaced_alone(how: str) -> None:
    async with training(pod_rescheduling="on") as c:
        old = c.uids()
        if how == "card":
            await c.world.set_faults(c.node_of("train-master-0"), [CHIP])
        else:
            await c.clock.sleep(5.0)
            await c.delete_pod("train-master-0")
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["job"]
        assert replaced(c, old) == set(old)


@pytest.mark.parametrize("where", ["job", "pods"])
async def test_a_platform_that_limits_a_job_to_its_pods_is_obeyed(where: str) -> None:
    limit = {"huawei.com/recover_policy_path": "pod"}
    objects = job(annotations=limit if where == "job" else {})
    for replica in objects[-1]["spec"]["replicaSpecs"].values() if where == "pods" else ():
        replica["template"]["metadata"] = {"annotations": limit}
    async with cluster(servers=(), service=objects, start=False) as c:
        await c.start(quick())
        await c.until(lambda: runs(c), "running")
        old = c.uids()
        await c.world.set_faults(c.node_of("train-master-0"), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["pod"]
        assert replaced(c, old) == {"train-master-0"}


async def test_tensorflow_is_replaced_as_a_whole_whatever_the_label_says() -> None:
    objects = job(framework="tensorflow", pod_rescheduling="on")
    specs = objects[-1]["spec"]["replicaSpecs"]
    objects[-1]["spec"]["replicaSpecs"] = {"Chief": specs["Master"], "Worker": specs["Worker"]}
    async with cluster(servers=(), service=objects, start=False) as c:
        await c.start(quick())
        await c.until(lambda: runs(c), "running")
        old = c.uids()
        await c.world.set_faults(c.node_of("train-worker-1"), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["job"]
        assert replaced(c, old) == set(old)


async def test_two_faulty_pods_are_replaced_together() -> None:
    async with training(nodes=8, pod_rescheduling="on") as c:
        old = c.uids()
        for name in ("train-worker-0", "train-worker-2"):
            await c.world.set_faults(c.node_of(name), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["pod"]
        assert replaced(c, old) == {"train-worker-0", "train-worker-2"}
        told = [one for one in record["history"] if one["phase"] == "rejoin"]
        assert reset(c)["RetryTime"] == len(told)  # each time anew: the second card may be seen later


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (None, "no ConfigMap"),
        ("{", "no JSON"),
    ],
    ids=["absent", "no-json"],
)
async def test_where_the_others_cannot_be_told_the_whole_job_is_replaced(
    broken: str | None, words: str
) -> None:
    async with training(pod_rescheduling="on") as c:
        if broken is None:
            await c.api.delete("ConfigMap", "reset-config-train", NAMESPACE)
        else:
            await c.api.patch("ConfigMap", "reset-config-train", NAMESPACE, {"data": {"reset.json": broken}})
        old = c.uids()
        await c.world.set_faults(c.node_of("train-worker-1"), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["pod", "job"]
        assert any(words in one["exit"] for one in record["history"])
        assert replaced(c, old) == set(old)


async def test_without_room_for_a_job_the_rest_is_kept_and_waits_by_name() -> None:
    async with training(nodes=4, pod_rescheduling="on") as c:
        old, node = c.uids(), c.node_of("train-worker-1")
        await c.world.set_faults(node, [NOT_READY])
        await c.until(lambda: c.state(TRAIN) == "waiting", "waits")
        await c.clock.sleep(120.0)
        recovery = c.ledger(TRAIN)["recovery"]
        assert (recovery["rung"], recovery["condition"]) == ("pod", "WaitingForCapacity")
        assert {name for name, uid in c.uids().items() if old[name] == uid} == set(old) - {"train-worker-1"}
        await c.world.heal(node)
        record = await c.recovered(TRAIN, deadline_s=500.0)  # its isolation ends five minutes later
        assert record["rungs"] == ["pod"]
        assert replaced(c, old) == {"train-worker-1"}


@asynccontextmanager
async def in_super_pods(*, homes: int, spare: int, **more: Any) -> AsyncIterator[Cluster]:
    """A job of four pods of 16 cards in two blocks, on super pods of two servers; `spare` more stand by."""
    machines = a3_nodes(homes + spare, nodes_per_super_pod=2)
    objects = job(annotations={"sp-block": "32"}, pod_rescheduling="on")
    for replica in objects[-1]["spec"]["replicaSpecs"].values():
        spec = replica["template"]["spec"]
        spec["nodeSelector"] = {"accelerator-type": "module-a3-16-super-pod"}
        for side in ("requests", "limits"):
            spec["containers"][0]["resources"][side]["huawei.com/Ascend910"] = 16
    async with cluster(servers=(), service=objects, start=False, nodes=machines, **more) as c:
        await c.start(quick())
        await c.until(lambda: runs(c), "running")
        yield c


async def test_a_pod_without_room_in_its_super_pod_takes_its_block_along_after_six_seconds() -> None:
    async with in_super_pods(homes=4, spare=2) as c:
        old, at_s = c.uids(), c.clock.wall()
        await c.world.set_faults(c.node_of("train-worker-2"), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["pod", "super-pod"]
        assert replaced(c, old) == {"train-worker-1", "train-worker-2"}
        (begun,) = [
            one["start_s"]
            for one in record["history"]
            if (one["rung"], one["phase"]) == ("super-pod", "isolate")
        ]
        gone = next(one["end_s"] for one in record["history"] if one["phase"] == "gone")
        assert begun - gone == pytest.approx(6.0, abs=0.05)
        stops = [one["start_s"] for one in record["history"] if one["phase"] == "stop"]
        assert stops[1] - gone == pytest.approx(6.0, abs=0.1), "no back-off between two rungs"
        assert begun > at_s
        assert reset(c)["RetryTime"] == 1


async def test_where_the_block_has_the_leader_everything_is_replaced_after_six_seconds() -> None:
    async with in_super_pods(homes=4, spare=2) as c:
        old = c.uids()
        await c.world.set_faults(c.node_of("train-worker-0"), [CHIP])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["pod", "job"]
        assert replaced(c, old) == set(old)
        gone = next(one["end_s"] for one in record["history"] if one["phase"] == "gone")
        (begun, *_) = [one["start_s"] for one in record["history"] if one["rung"] == "job"]
        assert begun - gone == pytest.approx(6.0, abs=0.05)


SICK = {"device": "Ascend910-1", "code": "80E18008", "level": "SubHealthFault"}


def word_history(c: Cluster) -> list[int]:
    """Every value that GracefulExit had, in order."""
    asked = [write.body for write in c.judge.writes if write.path.endswith("/reset-config-train")]
    return [json.loads(body["data"]["reset.json"])["GracefulExit"] for body in asked]


async def test_a_sick_card_lets_processes_save_their_state_and_the_word_is_taken_back() -> None:
    async with training(subHealthyStrategy="graceExit") as c:
        old = c.uids()
        await c.world.set_faults(c.node_of("train-worker-1"), [SICK])
        record = await c.recovered(TRAIN)
        assert record["rungs"] == ["job"]
        assert word_history(c) == [1, 0]
        assert set(c.judge.deleted.values()) == {None}
        assert replaced(c, old) == set(old)


async def test_a_controller_that_dies_between_word_and_deletion_takes_the_word_back_in_the_end() -> None:
    async with training(subHealthyStrategy="graceExit") as c:
        run = c.runs[-1]
        await c.world.set_faults(c.node_of("train-worker-1"), [SICK])
        await c.until(lambda: word_history(c) == [1], "told", every_s=0.01)
        await c.kill()
        assert run.task.done()
        await c.start(quick())
        await c.recovered(TRAIN)
        assert word_history(c) == [1, 0]


@pytest.mark.parametrize(
    ("strategy", "fault"), [("forceExit", SICK), ("graceExit", CHIP)], ids=["force-exit", "harder-fault"]
)
async def test_nobody_is_told_where_pods_are_deleted_at_once(strategy: str, fault: Object) -> None:
    async with training(subHealthyStrategy=strategy, fault_scheduling="force") as c:
        await c.world.set_faults(c.node_of("train-worker-1"), [SICK, fault] if fault is CHIP else [fault])
        await c.recovered(TRAIN)
        assert word_history(c) == []
        assert set(c.judge.deleted.values()) == {0}


async def test_without_a_mailbox_the_pods_go_with_their_grace_and_it_is_said() -> None:
    async with training(subHealthyStrategy="graceExit") as c:
        await c.api.delete("ConfigMap", "reset-config-train", NAMESPACE)
        await c.world.set_faults(c.node_of("train-worker-1"), [SICK])
        await c.recovered(TRAIN)
        assert len(c.events("GracefulExitNotWritten")) == 1
        assert set(c.judge.deleted.values()) == {None}


RESETTABLE = {"device": "Ascend910-1", "code": "8C03A000", "level": "RestartNPU"}


async def resetting(c: Cluster, *, reset_s: str) -> dict[str, str]:
    """A card fails on a node whose device plugin resets cards under jobs."""
    node = c.node_of("train-worker-1")
    note = {"sim.mindie-ha.io/hot-reset-s": reset_s}
    await c.api.patch("Node", node, "", {"metadata": {"annotations": note}})
    old = c.uids()
    await c.world.set_faults(node, [RESETTABLE])
    return old


async def test_a_card_that_is_reset_under_the_job_restarts_nobody() -> None:
    async with training() as c:
        old = await resetting(c, reset_s="20")
        record = await c.recovered(TRAIN)
        assert record["outcome"] == "recovered-unverified"
        assert c.uids() == old
        assert reset(c)["RetryTime"] == 1
        assert len(c.events("GracefulTolerance")) == 1


@pytest.mark.parametrize(
    ("reset_s", "opened_for_s"), [("-20", 20.0), ("600", 120.0)], ids=["failed", "takes-too-long"]
)
async def test_where_the_reset_does_not_help_the_whole_job_is_replaced(
    reset_s: str, opened_for_s: float
) -> None:
    async with training(pod_rescheduling="on") as c:
        old = await resetting(c, reset_s=reset_s)
        record = await c.recovered(TRAIN, deadline_s=400.0)
        assert record["rungs"][-1] == "job"
        assert replaced(c, old) == set(old)
        stopped = next(one["start_s"] for one in record["history"] if one["phase"] == "stop")
        assert stopped - record["opened_at_s"] == pytest.approx(opened_for_s, abs=5.0)


async def test_with_process_recovery_on_nobody_waits_for_the_reset() -> None:
    async with training(process_recover_enable="on") as c:
        await resetting(c, reset_s="60")
        record = await c.recovered(TRAIN)
        stopped = next(one["start_s"] for one in record["history"] if one["phase"] == "stop")
        assert stopped - record["opened_at_s"] < 6.0
        assert "exclude each other" in c.events("GracefulTolerance")[0]["message"]


OP_RETRY = {"mindie-ha.io/hccl-op-retry": "MaxCnt:3, HoldTime:5000, IntervalTime:1000"}
BROKEN_LINK = [
    {"device": "Ascend910-1", "code": "8C1F860B", "level": "NotHandleFault"},
    {"device": "Ascend910-1", "code": "81078603", "level": "PreSeparateNPU"},
]


@pytest.mark.parametrize(
    ("annotations", "waits_s"), [(OP_RETRY, 8.0), ({}, 0.0)], ids=["op-retry", "unknown"]
)
async def test_a_broken_link_is_borne_for_as_long_as_the_programs_try(
    annotations: dict[str, str], waits_s: float
) -> None:
    async with training(annotations=annotations) as c:
        at_s = c.clock.wall()
        await c.world.set_faults(c.node_of("train-worker-1"), BROKEN_LINK)
        record = await c.recovered(TRAIN)
        assert record["intent"]["cause"] == "CorrelatedFaults"
        assert waits_s - 0.1 <= record["opened_at_s"] - at_s < waits_s + 3.0


async def test_a_link_that_comes_back_in_that_time_restarts_nobody() -> None:
    async with training(annotations=OP_RETRY) as c:
        old, node = c.uids(), c.node_of("train-worker-1")
        await c.world.set_faults(node, BROKEN_LINK)
        await c.clock.sleep(5.0)
        await c.world.heal(node)
        await c.clock.sleep(60.0)
        assert c.uids() == old
        assert not c.ledger(TRAIN)["epoch"]
