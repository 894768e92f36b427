"""Which pods are deleted: vectors S1-S29 of the rescheduling contract §6.3.

The contract counts sessions of one second in which replacements wait for a node (P); here they wait as many
seconds. Blocks are of 16 chips, which is two pods. Where our rule is another one the id says which, and
`docs/decisions/018` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.pods import Pod
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Role
from mindie_ha.policy import blocks
from tests.policy.gangs import ON, Gang, gang
from tests.policy.worlds import NAMESPACE, service

Happens = Callable[[Gang], object]
SUPER_PODS = {"sp-block": "16"}
RACKS = {"ra-block": "16", "sp-block": "32"}
LEVELS = {"huawei.com/affinity-config": "level1=2,level2=4"}
LIMITED = {"huawei.com/recover_policy_path": "pod"}
PROCESS = {"process-recover-enable": "on"}
PAUSED = {"process-recover-enable": "pause"}


def card(rank: int) -> Happens:
    return lambda world: world.break_card(world.pod(rank))


def node(rank: int) -> Happens:
    return lambda world: world.board(world.node(rank), listed=True)


def job(
    labels: dict[str, str], annotations: dict[str, str], replicas: int, leader: str = "master"
) -> dict[str, Any]:
    return {"labels": labels, "annotations": annotations, "replicas": replicas, "leader": leader}


SCOPES = [
    # the job (labels, annotations, pods, what rank 0 is), what happens, seconds without a node, whom it takes
    pytest.param(job({}, {}, 2), card(1), 0, "0 1", id="S1-default"),
    pytest.param(job(ON, {}, 2), card(1), 0, "1", id="S2-pod-level"),
    pytest.param(job(ON, {}, 2), card(0), 0, "0 1", id="S3-leader"),
    pytest.param(job(ON, {}, 2, "worker"), card(0), 0, "0", id="S4-rank-0-is-a-worker"),
    pytest.param(job({}, LIMITED, 2), node(1), 0, "1", id="S6-limited"),
    pytest.param(job(PROCESS, {}, 2), card(1), 0, "0 1", id="S8-process-level-is-not-served-yet"),
    pytest.param(job(PAUSED, {}, 2), card(1), 0, "0 1", id="S9"),
    pytest.param(job(ON, SUPER_PODS, 4), card(3), 5, "3", id="S10-P5"),
    pytest.param(job(ON, SUPER_PODS, 4), card(3), 8, "2 3", id="S11-P6"),
    pytest.param(job(ON, SUPER_PODS, 4), card(1), 8, "0 1 2 3", id="S12-P6-with-the-leader"),
    pytest.param(job(ON, SUPER_PODS, 4), card(1), 5, "1", id="S13-P5-beside-the-leader"),
    pytest.param(job(ON, {}, 4), card(3), 14, "0 1 2 3", id="S14-P12"),
    pytest.param(job(ON, LEVELS, 4), card(3), 3, "3", id="S15-level-0"),
    pytest.param(job(ON, LEVELS, 8), card(7), 8, "6 7", id="level-1"),
    pytest.param(job(ON, LEVELS, 8), card(7), 14, "4 5 6 7", id="level-2"),
    pytest.param(job(ON, LEVELS, 4), card(1), 8, "0 1 2 3", id="S16-the-leader-is-in-the-level"),
    pytest.param(job(ON, LEVELS, 4), card(3), 8, "2 3", id="S17-ranks-tell-the-block-no-memory-needed"),
    pytest.param(job(ON, RACKS, 8), card(7), 5, "6 7", id="rack-P3"),
    pytest.param(job(ON, RACKS, 8), card(7), 8, "4 5 6 7", id="rack-P6"),
    pytest.param(job(ON, RACKS, 8), card(1), 5, "0 1 2 3 4 5 6 7", id="S24-P3-rack-with-the-leader"),
    pytest.param(job(ON, RACKS, 8), card(1), 0, "1", id="S25-P0"),
    pytest.param(job(PROCESS, RACKS, 4), card(3), 2, "0 1 2 3", id="S26-process-level-not-served-yet"),
    pytest.param(job(PROCESS, RACKS, 4), card(3), 3, "0 1 2 3", id="S27-process-level-not-served-yet"),
    pytest.param(job(ON, RACKS, 8), card(7), 14, "0 1 2 3 4 5 6 7", id="S28-P12"),
]


@pytest.mark.parametrize(("job", "happens", "wait_s", "taken"), SCOPES)
def test_scope(job: dict[str, Any], happens: Happens, wait_s: int, taken: str) -> None:
    world = gang(**job, nodes=2 * job["replicas"] + 1)
    happens(world)
    world.schedules = False
    world.wait(float(max(wait_s, 1)))
    assert world.old == set(taken.split())


@pytest.mark.parametrize(
    ("settings", "labels", "taken"),
    [
        pytest.param({}, ON, "0", id="S5-no-leader-without-cards"),
        pytest.param({}, {}, "0 1", id="S7-without-the-label-an-ms-job-is-replaced-whole"),
        pytest.param({"roles": {"ms_default_ladder": "pod"}}, {}, "0", id="S7-as-upstream-by-setting"),
    ],
)
def test_scope_of_an_ms_job(settings: dict[str, object], labels: dict[str, str], taken: str) -> None:
    world = gang(role=Role.COORDINATOR, labels=labels, settings=Settings.model_validate(settings))
    world.board(world.node(0), listed=True)
    world.wait(2.0)
    assert world.old == set(taken.split())


def rank(number: int) -> Pod:
    name = f"r{number}"
    return Pod(key=ObjectKey(NAMESPACE, name), uid=PodUID(name), owner_uid="j", rank=number)


@pytest.mark.parametrize(
    ("size", "hit", "block"),
    [
        pytest.param(2, [0], [0, 1], id="S18"),
        pytest.param(8, [0], [0, 1, 2, 3, 4, 5, 6, 7], id="S19"),
        pytest.param(2, [7], [6, 7], id="S20"),
        pytest.param(4, [7], [4, 5, 6, 7], id="S21"),
        pytest.param(2, [0, 7], [0, 1, 6, 7], id="S23"),
    ],
)
def test_members_of_a_block(size: int, hit: list[int], block: list[int]) -> None:
    found = blocks.members(map(rank, range(8)), {f"r{number}" for number in hit}, size=size)
    assert found == {f"r{number}" for number in block}


@pytest.mark.parametrize("value", ["8", "12", "0", "x", ""])
def test_s22_a_block_of_one_pod_or_of_half_a_one_is_none(value: str) -> None:
    assert blocks.pods_of_chips({"ra-block": value}, "ra-block", per_pod=8) == 0


def test_s29_of_two_jobs_of_a_service_only_the_one_that_is_hit() -> None:
    world = service()
    world.break_card(world.pods_of("p0")[1])
    world.settle(for_s=3.0)
    assert {item.key.name for item in world.deleted} == {"p0-0", "p0-1"}
