"""The operator's pinned behaviour; ids O1 to O30 are those of the rescheduling contract §6.6."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from mindie_ha.sim.actors.ascendjobs import (
    Status,
    backoff_limit,
    next_condition,
    read_job,
    remaining_retries,
    tally,
    validate,
)
from mindie_ha.sim.actors.hccl_tables import CONFIGURATION, Step, next_step
from mindie_ha.sim.actors.job_envs import Addresses, injected
from mindie_ha.sim.actors.operators import RETRYABLE_EXIT, UNKNOWN_EXIT, JobMemory, exit_code_of
from mindie_ha.sim.actors.scaling_rules import may_create
from mindie_ha.sim.client import Object

ADDRESSES = Addresses(server="127.0.0.1", leader="10.0.0.9")


def pod(
    uid: str, *, version: str | None = "0", role: str | None = "worker", phase: str = "Running", **more: Any
) -> Object:
    labels = {"replica-type": role, "version": version}
    meta = {
        "name": uid,
        "uid": uid,
        "labels": {key: value for key, value in labels.items() if value is not None},
    }
    return {"metadata": {**meta, **more.pop("metadata", {})}, "spec": {}, "status": {"phase": phase, **more}}


@pytest.mark.parametrize(
    ("round_", "version", "role", "expected"),
    [
        pytest.param(1, "1", "worker", 2, id="O1-current-round-ends"),
        pytest.param(1, "0", "worker", 1, id="O2-older-round-is-ignored"),
        pytest.param(1, "1", None, 1, id="O3-no-role"),
        pytest.param(1, None, "worker", 1, id="O3-no-version"),
        pytest.param(1, "one", "worker", 1, id="O3-version-is-no-number"),
    ],
)
def test_round_after_a_deletion(round_: int, version: str | None, role: str | None, expected: int) -> None:
    memory = JobMemory(
        limit=-1, has_table=True, round=round_, seen={"a": pod("a", version=version, role=role)}
    )
    memory.count_deletions({})
    assert memory.round == expected


def test_many_deletions_of_one_round_count_once() -> None:
    memory = JobMemory(limit=-1, has_table=True, seen={uid: pod(uid) for uid in "abc"})
    memory.count_deletions({})
    assert memory.round == 1


@pytest.mark.parametrize(
    ("limit", "retries", "expected"),
    [
        pytest.param(2, "3", 2, id="backoffLimit-wins"),
        pytest.param(None, "3", 3, id="O6-fault-retry-times"),
        pytest.param(None, "x", None, id="O7-no-number"),
        pytest.param(None, None, -1, id="unlimited"),
    ],
)
def test_backoff_limit(job: Object, limit: int | None, retries: str | None, expected: int | None) -> None:
    if limit is not None:
        job["spec"]["runPolicy"]["backoffLimit"] = limit
    if retries is not None:
        job["metadata"]["labels"]["fault-retry-times"] = retries
    assert backoff_limit(job) == expected


@pytest.mark.parametrize(
    ("pods", "restarting", "retry", "expected"),
    [
        pytest.param([pod("a", phase="Failed")], False, False, Status.FAILED, id="O8-O10-O11"),
        pytest.param([pod("a", phase="Failed")], False, True, Status.RESTARTING, id="O9"),
        pytest.param(
            [pod("a", phase="Failed"), pod("b")], True, False, Status.RESTARTING, id="already-restarting"
        ),
        pytest.param(
            [pod("a", phase="Failed"), pod("b")], False, False, Status.FAILED, id="failed-before-running"
        ),
        pytest.param(
            [pod("a", phase="Failed", metadata={"deletionTimestamp": "x"}), pod("b")],
            False,
            False,
            Status.RUNNING,
            id="O12-terminating-does-not-count",
        ),
        pytest.param([pod("a", phase="Succeeded")], False, False, Status.SUCCEEDED, id="succeeded"),
        pytest.param([pod("a", phase="Pending")], False, False, None, id="unchanged"),
    ],
)
def test_condition_from_pods(
    pods: list[Object], restarting: bool, retry: bool, expected: Status | None
) -> None:
    assert next_condition(tally(pods), total=2, restarting=restarting, retry_left=retry) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({"mindie/p0-job-uid": {"Times": 2}}, 2, id="O9"),
        pytest.param({"mindie/p0-job-uid": {"Times": 0}}, 0, id="O10"),
        pytest.param({"mindie/p0-other": {"Times": 2}}, 0, id="O11-key-missing"),
        pytest.param(None, 0, id="O11-config-missing"),
        pytest.param([1], 0, id="O11-not-a-map"),
    ],
)
def test_remaining_retries(job: Object, data: object, expected: int) -> None:
    config = None if data is None else {"data": {"remain-retry-times": json.dumps(data)}}
    assert remaining_retries(config, read_job(job)) == expected


@pytest.mark.parametrize(
    ("code", "retryable"), [(137, True), (1, False), (None, True)], ids=["O14-137", "O14-1", "none"]
)
def test_exit_code_policy(code: int | None, retryable: bool) -> None:
    statuses = [] if code is None else [{"name": "ascend", "state": {"terminated": {"exitCode": code}}}]
    found = exit_code_of(pod("a", phase="Failed", containerStatuses=statuses))
    assert (found in RETRYABLE_EXIT or found == UNKNOWN_EXIT) is retryable


def device_pod(uid: str, *, allocated: bool = True, terminating: bool = False) -> Object:
    body = pod(uid, podIP="127.9.9.9")
    body["metadata"]["annotations"] = {CONFIGURATION: "{}"} if allocated else {}
    body["spec"] = {"containers": [{"resources": {"requests": {"huawei.com/Ascend910": 8}}}]}
    if terminating:
        body["metadata"]["deletionTimestamp"] = "x"
    return body


@pytest.mark.parametrize(
    ("status", "pods", "built_for", "expected"),
    [
        pytest.param("completed", [device_pod("a")], {"a"}, Step.KEEP, id="O15-same-pods"),
        pytest.param(
            "completed",
            [device_pod("a", terminating=True), device_pod("b")],
            {"a"},
            Step.BUILD,
            id="O16-replaced",
        ),
        pytest.param("completed", [device_pod("a", allocated=False)], {"a"}, Step.INITIALIZE, id="O17-lost"),
        pytest.param("completed", [device_pod("b")], {"b"}, Step.KEEP, id="O18-stays"),
        pytest.param(
            "completed", [device_pod("a"), device_pod("b")], {"a"}, Step.KEEP, id="more-than-replicas"
        ),
        pytest.param("initializing", [device_pod("a")], set(), Step.BUILD, id="first-table"),
        pytest.param("initializing", [], set(), Step.KEEP, id="nothing-yet"),
    ],
)
def test_table_step(status: str, pods: list[Object], built_for: set[str], expected: Step) -> None:
    assert next_step(status, total=1, pods=pods, built_for=frozenset(built_for)) is expected


def rule(*entries: dict[str, int]) -> Object:
    listed = [
        {
            "group_list": [
                {"group_name": name, "group_num": str(n), "server_num_per_group": "1"}
                for name, n in e.items()
            ]
        }
        for e in entries
    ]
    return {"data": {"elastic_scaling.json": json.dumps({"version": "1.0", "elastic_scaling_list": listed})}}


SCALING = rule({"g0": 2, "g1": 1}, {"g0": 1, "g1": 1})


@pytest.mark.parametrize(
    ("config", "running", "group", "expected"),
    [
        pytest.param(SCALING, {}, "g0", True, id="O22"),
        pytest.param(SCALING, {"g0": 1}, "g0", False, id="O23-g0"),
        pytest.param(SCALING, {"g0": 1}, "g1", True, id="O23-g1"),
        pytest.param(SCALING, {"g0": 1, "g1": 1}, "g0", True, id="O24"),
        pytest.param(SCALING, {"g0": 2, "g1": 1}, "g0", False, id="O25"),
        pytest.param(None, {}, "g0", False, id="O26"),
        pytest.param({"data": {"elastic_scaling.json": "["}}, {}, "g0", False, id="broken-rule"),
    ],
)
def test_scaling_rule(
    job: Object, config: Object | None, running: dict[str, int], group: str, expected: bool
) -> None:
    def group_labels(name: str) -> dict[str, str]:
        return {"mind-cluster/scaling-rule": "rule", "mind-cluster/group-name": name, "jobID": "svc"}

    job["metadata"]["labels"] |= group_labels(group)
    groups: list[Object] = [
        {"metadata": {"labels": group_labels(name)}, "status": {"phase": "Running"}}
        for name, count in running.items()
        for _ in range(count)
    ]
    assert may_create(read_job(job), config, groups) is expected


def _change(path: str, value: object) -> Callable[[Object], None]:
    def apply(job: Object) -> None:
        *parents, last = path.split("/")
        where: Any = job
        for step in parents:
            where = where[int(step)] if step.isdecimal() else where[step]
        if value is None:
            del where[last]
        else:
            where[last] = value

    return apply


SPECS = "spec/replicaSpecs"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda _job: None, None, id="valid"),
        pytest.param(
            lambda job: job["metadata"]["labels"].update({"mind-cluster/scaling-rule": "r"}),
            "InvalidScalingConfig",
            id="O27",
        ),
        pytest.param(_change(f"{SPECS}/Master", None), "InvalidReplicaType", id="O28-no-master"),
        pytest.param(_change(f"{SPECS}/Master/replicas", 2), "InvalidReplicaSpec", id="O28-two-masters"),
        pytest.param(
            _change(f"{SPECS}/Master/template/spec/containers/0/name", "main"),
            "InvalidContainer",
            id="O28-container",
        ),
        pytest.param(_change(f"{SPECS}/Worker/replicas", 20_001), "InvalidReplicaSpec", id="O28-too-many"),
        pytest.param(
            _change(f"{SPECS}/Worker/replicas", "2"), "InvalidReplicaSpec", id="string-for-a-number"
        ),
        pytest.param(_change(f"{SPECS}/Worker", 7), "InvalidReplicaSpec", id="number-for-a-mapping"),
        pytest.param(
            _change("spec/runPolicy/schedulingPolicy/queue", "none"), "InvalidQueue", id="O28-queue"
        ),
        pytest.param(_change("metadata/labels/framework", "jax"), "InvalidFramework", id="framework"),
        pytest.param(_change("spec/successPolicy", "Any"), "InvalidSuccessPolicy", id="success-policy"),
        pytest.param(_change(SPECS, None), "InvalidSpecs", id="no-specs"),
    ],
)
def test_validation(job: Object, change: Callable[[Object], None], expected: str | None) -> None:
    job = deepcopy(job)
    change(job)
    problem = validate(job, queues={"default"})
    assert (problem and problem[0]) == expected


def test_o30_two_strategies_are_united(job: Object) -> None:
    del job["metadata"]["labels"]["app"]
    job["metadata"]["annotations"] = {"recover-strategy": "dump,recover"}
    spec = read_job(job)
    env = {entry["name"]: entry.get("value") for entry in injected(spec, spec.roles[0], 0, ADDRESSES)}
    assert env["HIGH_AVAILABILITY"] == "dump,recover"
    assert env["HCCL_ASYNC_ERROR_HANDLING"] == "0"
    assert (env["MASTER_ADDR"], env["WORLD_SIZE"], env["RANK"]) == ("10.0.0.9", "16", "0")


def test_a_mindie_job_gets_the_inference_set_only(job: Object) -> None:
    spec = read_job(job)
    assert injected(spec, spec.roles[0], 0, ADDRESSES) == [
        {"name": "MINDX_TASK_ID", "value": "svc"},
        {"name": "APP_TYPE", "value": "mindie-ms-server"},
        {"name": "MINDX_SERVER_IP", "value": "127.0.0.1"},
        {"name": "MINDX_SERVER_DOMAIN", "value": "clusterd-grpc-svc.mindx-dl.svc.cluster.local"},
    ]
