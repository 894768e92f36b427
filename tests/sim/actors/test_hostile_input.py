"""Whatever people apply: actors refuse or ignore it, they never break; and a seed is one history."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.sim.actors.ascendjobs import backoff_limit, read_job, tally, validate
from mindie_ha.sim.actors.deviceinfos import read_cluster_devices, read_device_info
from mindie_ha.sim.actors.documents import Object
from mindie_ha.sim.actors.faults import parse_faults
from mindie_ha.sim.actors.fleets import free_cards
from mindie_ha.sim.actors.job_envs import Addresses
from mindie_ha.sim.actors.job_objects import group_object, pod_object
from mindie_ha.sim.actors.node_lifecycles import eviction_due_s, toleration_s
from mindie_ha.sim.actors.placements import Gang, Machine, place
from mindie_ha.sim.actors.pod_runs import PodRun, State, advance, status_of
from mindie_ha.sim.actors.pod_sandboxes import missing_volumes, read_volumes, resolve_env
from mindie_ha.sim.actors.schedulers import guest_of

from .conftest import instance, stage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 30_000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a document, the root left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, entry in inner for path in ((*prefix, key), *paths(entry, (*prefix, key)))]


def broken(body: Object) -> st.SearchStrategy[Object]:
    """`body` with one place replaced by anything."""

    def put(choice: tuple[tuple[Any, ...], Any]) -> Object:
        path, value = choice
        changed = copy.deepcopy(body)
        where: Any = changed
        for step in path[:-1]:
            where = where[step]
        where[path[-1]] = value
        return changed

    return st.tuples(st.sampled_from(paths(body)), JSON).map(put)


JOB = instance("p0", workers=1, spec={"volumes": [{"name": "v", "configMap": {"name": "c"}}]})[1][1]
JOB["metadata"]["uid"] = "u"
_SPEC = read_job(JOB)
POD = pod_object(_SPEC, _SPEC.roles[0], 0, round_=0, addresses=Addresses("a", "b"))
POD["spec"] |= {
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "t",
                    "labelSelector": {"matchExpressions": [{"key": "k", "operator": "Exists"}]},
                }
            ]
        }
    },
}
NODE: Object = {
    "metadata": {"name": "n", "annotations": {"baseDeviceInfos": '{"Ascend910-0": {"IP": "29.0.0.1"}}'}},
    "spec": {"taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]},
    "status": {
        "allocatable": {"huawei.com/Ascend910": "1"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


@given(broken(JOB))
def test_a_broken_job_is_refused_or_built(job: Object) -> None:
    backoff_limit(job)
    if validate(job, queues={"default"}) is None:
        spec = read_job(job)
        group_object(spec)
        for role in spec.roles:
            pod_object(spec, role, 0, round_=0, addresses=Addresses("a", "b"))


@given(broken(POD))
def test_a_broken_pod_is_placed_run_and_read(pod: Object) -> None:
    tally([pod])
    guest = guest_of(pod)
    place(Gang((guest,), 1), [Machine("n", {"t": "x"}, tuple(NODE["spec"]["taints"]), guests=(guest,))])
    run = PodRun(ip="127.9.0.1", start_at_s=0, ready_delay_s=1, stop_delay_s=1)
    for state in State:
        run.state = state
        advance(run, pod, now_s=5, wall_s=5, mounted=not missing_volumes(pod, {}.get))
        status_of(run, pod, host_ip="127.1.0.1", now_s=5, wall_s=5)
    read_volumes(pod, {}.get)
    resolve_env(pod, {}.get, pod_ip="a", host_ip="b")


@given(broken(NODE))
def test_a_broken_node_is_read(node: Object) -> None:
    free_cards(node, {}, set(), distributed=True)
    eviction_due_s(POD, node, now_s=0)


@given(st.text(max_size=30) | JSON.map(json.dumps))
def test_any_text_is_a_list_of_faults_or_nothing(raw: str) -> None:
    parse_faults(raw)
    read_cluster_devices([raw])
    read_device_info({"DeviceInfoCfg": raw})


@pytest.mark.parametrize("raw", ["[" * 200_000, '{"DeviceInfo":{"DeviceList":{"a":"\\ud800"}}}', "9" * 6000])
def test_text_that_breaks_parsers_is_nothing(raw: str) -> None:
    assert parse_faults(raw).chips == ()
    read_cluster_devices([raw])
    assert read_device_info({"DeviceInfoCfg": raw}) is None


@pytest.mark.parametrize(
    ("tolerations", "key", "expected"),
    [
        pytest.param([], "node.kubernetes.io/unreachable", 300, id="default-of-the-admission"),
        pytest.param([], "other", 0, id="not-tolerated"),
        pytest.param([{"operator": "Exists"}], "other", float("inf"), id="for-ever"),
        pytest.param(
            [{"key": "other", "operator": "Exists", "tolerationSeconds": 7}], "other", 7, id="some-time"
        ),
        pytest.param([{"key": "other", "value": "x"}], "other", 0, id="other-value"),
        pytest.param(
            [{"key": "other", "operator": "Exists", "effect": "NoSchedule"}], "other", 0, id="other-effect"
        ),
    ],
)
def test_toleration_of_a_no_execute_taint(tolerations: list[Object], key: str, expected: float) -> None:
    pod = {"spec": {"tolerations": tolerations}}
    assert toleration_s(pod, {"key": key, "effect": "NoExecute"}) == expected


async def history(seed: int) -> list[tuple[str, ...]]:
    async with stage(seed=seed) as s:
        await s.start("p0", workers=1)
        await s.world.set_faults(
            "node-0", [{"device": "Ascend910-0", "code": "80E18005", "level": "RestartNPU"}]
        )
        await s.kill("p0")
        await s.clock.sleep(60)
        pods = s.pods("p0").values()
        return [
            (p["metadata"]["uid"], p["spec"]["nodeName"], p["status"]["startTime"], p["status"]["podIP"])
            for p in pods
        ]


@pytest.mark.looptime
async def test_the_same_seed_is_the_same_history() -> None:
    assert await history(7) == await history(7)
    assert await history(7) != await history(8)
