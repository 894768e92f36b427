"""Instances of an InferServiceSet: the operator acts and we watch; else we act after the guard time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mindie_ha.demo import manifests
from mindie_ha.sim.actors.infer_operators import InferOperatorSettings

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, Object, cluster, quick
from .doors import Ours

pytestmark = pytest.mark.looptime
DECODE = "chat-0-decode-0"
GUARD_S = 15.0
OFF = InferOperatorSettings(reschedules=False)


def service(*, kind: str = "StatefulSet", mode: str = "external-force", gang: bool = True) -> list[Object]:
    """The manifest, its decode instances as asked for."""
    (found,) = manifests.load("inferserviceset")
    decode = found["spec"]["template"]["roles"][1]
    decode["workload"]["kind"] = kind
    decode["metadata"]["labels"]["infer.huawei.com/gang-schedule"] = "true" if gang else "false"
    decode["spec"]["template"]["metadata"]["labels"]["fault-scheduling"] = mode
    if kind == "Deployment":
        del decode["spec"]["podManagementPolicy"]
    return [found]


def mine(c: Cluster) -> dict[str, str]:
    return {name: uid for name, uid in c.uids().items() if name.startswith(f"{DECODE}-")}


def well(c: Cluster) -> bool:
    found = c.pods().values()
    ready = [{one["type"]: one["status"] for one in p["status"].get("conditions", [])} for p in found]
    return len(ready) == 7 and all(one.get("Ready") == "True" for one in ready)


def ledger(c: Cluster, kind: str = "StatefulSet") -> Object:
    return c.judge.ledger_of(NAMESPACE, DECODE, kind=kind) or {}


def closed(c: Cluster, kind: str = "StatefulSet") -> list[Any]:
    return list(ledger(c, kind).get("closed", []))


def deletions(c: Cluster) -> list[Any]:
    return [write for write in c.judge.writes if write.method == "DELETE"]


@asynccontextmanager
async def running(
    objects: list[Object], *, operator: InferOperatorSettings | None = None, kind: str = "StatefulSet"
) -> AsyncIterator[Cluster]:
    async with cluster(
        service=objects, nodes=9, start=False, volcano_reschedules=True, infer_operator=operator
    ) as c:
        await c.start(quick())
        await c.until(lambda: well(c) and len(ledger(c, kind).get("members", [])) == 2, "running")
        yield c


async def break_and_recover(c: Cluster, fault: Object, *, kind: str = "StatefulSet") -> Any:
    await c.world.set_faults(c.node_of(min(mine(c))), [fault])
    await c.until(lambda: closed(c, kind), "recovered")
    return closed(c, kind)[-1]


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
@pytest.mark.parametrize("mode", ["external-force", "external-grace"])
async def test_the_operator_rebuilds_an_instance_and_we_record_and_verify(kind: str, mode: str) -> None:
    async with running(service(kind=kind, mode=mode), kind=kind) as c:
        before, all_before = mine(c), c.uids()
        last = await break_and_recover(c, CHIP, kind=kind)
        assert (last["outcome"], last["rungs"]) == ("recovered", ["job"])
        assert {target["uid"] for target in last["targets"]} == set(before.values())
        assert {item["uid"] for item in last["replacements"]} == set(mine(c).values())
        assert deletions(c) == []
        others = {name: uid for name, uid in all_before.items() if name not in before}
        assert others.items() <= c.uids().items()
        await c.quiet()


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
@pytest.mark.parametrize("fault", [CHIP, NOT_READY], ids=["chip", "node"])
async def test_switched_off_we_act_after_the_guard_time_through_the_same_rung(
    kind: str, fault: Object
) -> None:
    async with running(service(kind=kind), operator=OFF, kind=kind) as c:
        before = mine(c)
        last = await break_and_recover(c, fault, kind=kind)
        assert (last["outcome"], last["rungs"]) == ("recovered", ["job"])
        assert deletions(c)[0].at_s - last["opened_at_s"] >= GUARD_S - 0.5
        assert set(before.values()) <= set(c.judge.deleted)
        assert not set(before.values()) & set(mine(c).values())
        await c.quiet()


async def test_pods_that_the_operator_takes_from_a_lost_node_at_once_are_recorded() -> None:
    async with running(service()) as c:
        last = await break_and_recover(c, NOT_READY)
        assert last["outcome"] == "recovered"
        assert last["intent"]["cause"] == "MemberReplaced"
        assert deletions(c) == []
        await c.quiet()


async def test_a_rebuild_while_we_are_away_is_watched_to_its_end() -> None:
    async with running(service()) as c:
        before = mine(c)
        await c.world.set_faults(c.node_of(min(before)), [CHIP])
        await c.until(lambda: ledger(c).get("recovery"), "opened", every_s=0.01)
        await c.kill()
        await c.until(lambda: not set(before.values()) & set(mine(c).values()) and well(c), "rebuilt")
        await c.start(quick())
        await c.until(lambda: closed(c), "closed")
        assert closed(c)[-1]["outcome"] == "recovered"
        assert deletions(c) == []


@pytest.mark.parametrize("plural", ["statefulsets", "replicasets"])
async def test_without_the_permission_to_see_them_everything_else_goes_on(plural: str) -> None:
    async with cluster(nodes=9, start=False) as c:
        c.server.disturbances.add(Ours("GET", plural, code=403, times=None))
        await c.start(quick())
        await c.serving()
        await c.world.set_faults(c.node_of("mindie-server-p0-master-0"), [CHIP])
        last = await c.recovered("mindie-server-p0")
        assert last["outcome"] == "recovered"
        assert plural in c.log()
