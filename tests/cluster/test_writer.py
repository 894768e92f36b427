"""The writer against the embedded API server: preconditions, fence, retries, unknown outcomes."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import orjson
import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.writer import ForeignMark, Writer, Written
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.logs import silent_log
from mindie_ha.model.errors import Conflict, LeaseLost, MindieHaError, NotFound, Throttled, Unreachable
from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.nodes import Taint
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.sim.disturbances import Rule
from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange
from tests.cluster.conftest import Between, Cluster

pytestmark = pytest.mark.looptime

POD = ObjectKey("mindie", "a")
MAP = ObjectKey("mindie", "m")
GROUP = ObjectKey("mindie", "g")
OURS = Taint("mindie-ha.io/isolated", "NoSchedule", "ChipUnhealthy")
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/mindie/podgroups"


class Leading:
    """A fence that can be lost."""

    def __init__(self) -> None:
        self.lost = False
        self.asked = 0

    def guard(self) -> float:
        self.asked += 1
        if self.lost:
            raise LeaseLost("somebody else leads")
        return 60.0


class Heard:
    """Takes answers."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def apply_response(self, body: bytes) -> None:
        self.bodies.append(orjson.loads(body))


class Desk:
    """A writer and everything around it."""

    def __init__(self, cluster: Cluster, *, exchange: Exchange | None = None, **settings: Any) -> None:
        self.between = exchange or Between(cluster.server)
        self.fence = Leading()
        self.heard = Heard()
        self.writer = Writer(
            client=Client(ExchangeTransport(self.between)),
            answers=self.heard,
            fence=self.fence,
            clock=cluster.clock,
            entropy=cluster.entropy,
            settings=ClusterSettings(**settings),
            log=silent_log(),
            metrics=cluster.metrics,
        )

    def sent(self) -> Counter[str]:
        assert isinstance(self.between, Between)
        return Counter(request.method for request in self.between.requests)


@pytest.fixture
async def desk(cluster: Cluster) -> Desk:
    return Desk(cluster)


def uid_of(body: dict[str, Any]) -> PodUID:
    return PodUID(body["metadata"]["uid"])


async def taints(cluster: Cluster, name: str = "n1") -> list[str]:
    found = await cluster.request("GET", f"/api/v1/nodes/{name}")
    return [taint["key"] for taint in found["spec"].get("taints", [])]


async def test_a_delete_carries_uid_and_grace_and_its_answer_is_heard(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a")
    assert await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0) is Written.DONE
    assert isinstance(desk.between, Between)
    sent = orjson.loads(desk.between.requests[0].body)
    assert sent["preconditions"] == {"uid": uid_of(body)}
    assert sent["gracePeriodSeconds"] == 0
    assert desk.heard.bodies[0]["metadata"]["name"] == "a"


async def test_a_pod_of_the_same_name_with_another_uid_is_never_deleted(cluster: Cluster, desk: Desk) -> None:
    await cluster.pod("a")
    assert await desk.writer.delete_pod(POD, uid=PodUID("old"), grace_s=0) is Written.ALREADY
    assert (await cluster.request("GET", "/api/v1/namespaces/mindie/pods/a"))["metadata"]["name"] == "a"


async def test_a_pod_that_is_gone_is_done(desk: Desk) -> None:
    assert await desk.writer.delete_pod(POD, uid=PodUID("x"), grace_s=None) is Written.ALREADY


@pytest.mark.parametrize("reset", [True, False], ids=["connection-reset", "504"])
async def test_a_delete_whose_answer_was_lost_is_looked_up_and_not_repeated(
    cluster: Cluster, desk: Desk, reset: bool
) -> None:
    body = await cluster.pod("a")
    rule = Rule(method="DELETE", resource="pods", reset=reset, code=0 if reset else 504, applied=True)
    cluster.server.disturbances.add(rule)
    assert await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0) is Written.DONE
    assert desk.sent() == {"DELETE": 1, "GET": 1}


async def test_what_a_lookup_finds_is_heard(cluster: Cluster, desk: Desk) -> None:
    """A watch may be silent: then the lookup alone says that the pod terminates."""
    body = await cluster.pod("a", finalizers=["example.com/keep"])
    rule = Rule(method="DELETE", resource="pods", reset=True, applied=True)
    cluster.server.disturbances.add(rule)
    assert await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=None) is Written.DONE
    assert desk.sent() == {"DELETE": 1, "GET": 1}
    (heard,) = desk.heard.bodies
    assert heard["metadata"]["deletionTimestamp"]


async def test_a_later_write_looks_up_what_an_earlier_one_left_open(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a", finalizers=["example.com/keep"])
    cluster.server.disturbances.add(Rule(method="DELETE", resource="pods", reset=True, applied=True))
    cluster.server.disturbances.add(Rule(method="GET", resource="pods", code=503, times=None))
    with pytest.raises(Unreachable):
        await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=None)
    cluster.server.disturbances.clear()
    assert desk.sent()["DELETE"] == 1
    assert await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=None) is Written.DONE
    assert desk.sent()["DELETE"] == 1


async def test_a_delete_that_did_not_happen_is_repeated(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a")
    cluster.server.disturbances.add(Rule(method="DELETE", resource="pods", reset=True))
    assert await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0) is Written.DONE
    assert desk.sent() == {"DELETE": 2, "GET": 1}


async def test_a_delete_that_gets_no_answer_in_time_is_looked_up(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a")
    rule = Rule(method="DELETE", resource="pods", delay_s=60.0, applied=True)
    cluster.server.disturbances.add(rule)
    assert await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0) is Written.DONE
    assert asyncio.get_running_loop().time() < 15


async def test_429_waits_as_long_as_told(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a")
    cluster.server.disturbances.add(Rule(method="DELETE", code=429, retry_after_s=3, times=2))
    begun_s = asyncio.get_running_loop().time()
    await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0)
    assert asyncio.get_running_loop().time() - begun_s >= 6
    assert desk.sent() == {"DELETE": 3}


async def test_attempts_are_bounded(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a")
    cluster.server.disturbances.add(Rule(method="DELETE", code=503, times=None))
    with pytest.raises(Unreachable, match="delete pods mindie/a"):
        await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0)
    cluster.server.disturbances.clear()
    cluster.server.disturbances.add(Rule(method="DELETE", code=429, times=None))
    with pytest.raises(Throttled):
        await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0)


async def test_the_fence_is_asked_before_every_request_retries_included(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a")

    class Losing(Between):
        async def handle(self, request: ApiRequest) -> ApiResponse:
            if request.method == "DELETE":
                desk.fence.lost = True  # lost while the first attempt is on its way
            return await super().handle(request)

    desk = Desk(cluster, exchange=Losing(cluster.server))
    cluster.server.disturbances.add(Rule(method="DELETE", code=503))
    with pytest.raises(LeaseLost):
        await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0)
    assert desk.sent()["DELETE"] == 1


async def test_nothing_is_sent_without_the_lease(cluster: Cluster, desk: Desk) -> None:
    body = await cluster.pod("a")
    desk.fence.lost = True
    with pytest.raises(LeaseLost):
        await desk.writer.delete_pod(POD, uid=uid_of(body), grace_s=0)
    assert not desk.sent()


async def test_a_dry_run_sends_nothing(cluster: Cluster) -> None:
    desk = Desk(cluster)
    dry = Writer(
        client=Client(ExchangeTransport(desk.between)),
        answers=desk.heard,
        fence=desk.fence,
        clock=cluster.clock,
        entropy=cluster.entropy,
        settings=ClusterSettings(),
        log=silent_log(),
        metrics=cluster.metrics,
        dry_run=True,
    )
    assert await dry.delete_pod(POD, uid=PodUID("x"), grace_s=0) is Written.DRY_RUN
    assert not desk.sent()


async def test_case_089_deletes_run_in_parallel_up_to_the_cap(cluster: Cluster) -> None:
    bodies = [await cluster.pod(f"p{number}") for number in range(30)]
    cluster.server.disturbances.add(Rule(method="DELETE", delay_s=0.2, times=None))
    desk = Desk(cluster, parallel_writes=10)
    begun_s = asyncio.get_running_loop().time()
    await asyncio.gather(
        *(
            desk.writer.delete_pod(ObjectKey("mindie", body["metadata"]["name"]), uid=uid_of(body), grace_s=0)
            for body in bodies
        )
    )
    assert asyncio.get_running_loop().time() - begun_s == pytest.approx(0.6, abs=0.1)


async def test_a_taint_goes_beside_those_of_others_and_comes_off_alone(cluster: Cluster, desk: Desk) -> None:
    other = {"key": "other", "effect": "NoExecute", "value": "x"}
    body = await cluster.create("/api/v1/nodes", "n1", spec={"taints": [other]})
    before = await taints(cluster)
    uid = uid_of(body)
    assert await desk.writer.set_taint("n1", uid=uid, taint=OURS, present=True) is Written.DONE
    assert await desk.writer.set_taint("n1", uid=uid, taint=OURS, present=True) is Written.ALREADY
    assert await taints(cluster) == [*before, OURS.key]
    assert await desk.writer.set_taint("n1", uid=uid, taint=OURS, present=False) is Written.DONE
    assert await taints(cluster) == before


async def test_the_last_taint_comes_off_a_node(cluster: Cluster, desk: Desk) -> None:
    uid = uid_of(await cluster.create("/api/v1/nodes", "n1"))
    await cluster.merge("/api/v1/nodes/n1", {"spec": {"taints": None}})
    await desk.writer.set_taint("n1", uid=uid, taint=OURS, present=True)
    await desk.writer.set_taint("n1", uid=uid, taint=OURS, present=False)
    assert await taints(cluster) == []


async def test_a_taint_set_by_somebody_else_at_the_same_moment_is_kept(cluster: Cluster) -> None:
    uid = uid_of(await cluster.create("/api/v1/nodes", "n1"))

    class Racing(Between):
        raced = False

        async def handle(self, request: ApiRequest) -> ApiResponse:
            if request.method == "PATCH" and not self.raced:
                self.raced = True
                taint = {"key": "rival", "effect": "NoSchedule"}
                await cluster.merge("/api/v1/nodes/n1", {"spec": {"taints": [taint]}})
            return await super().handle(request)

    desk = Desk(cluster, exchange=Racing(cluster.server))
    await desk.writer.set_taint("n1", uid=uid, taint=OURS, present=True)
    assert await taints(cluster) == ["rival", OURS.key]


async def test_a_node_that_was_replaced_is_not_tainted(cluster: Cluster, desk: Desk) -> None:
    await cluster.create("/api/v1/nodes", "n1")
    with pytest.raises(NotFound, match="UID old is gone"):
        await desk.writer.set_taint("n1", uid="old", taint=OURS, present=True)


async def test_an_annotation_is_added_once_and_a_foreign_value_is_left_alone(
    cluster: Cluster, desk: Desk
) -> None:
    uid = uid_of(await cluster.create(GROUPS, "g", spec={"minMember": 1}))
    args = {"uid": uid, "name": "ProcessRecoverStrategy"}
    assert await desk.writer.annotate_podgroup(GROUP, value="mindie-ha", **args) is Written.DONE
    assert await desk.writer.annotate_podgroup(GROUP, value="mindie-ha", **args) is Written.ALREADY
    with pytest.raises(ForeignMark, match="'mindie-ha'"):
        await desk.writer.annotate_podgroup(GROUP, value="platform", **args)
    with pytest.raises(NotFound):
        await desk.writer.annotate_podgroup(GROUP, uid="old", name="x", value="y")


def ledger_map(value: str) -> dict[str, Any]:
    meta = {"name": MAP.name, "namespace": MAP.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": value}}


async def test_compare_and_swap_lets_one_of_two_writers_through(cluster: Cluster, desk: Desk) -> None:
    await desk.writer.put_config_map(ledger_map("1"), resource_version="")
    version = desk.heard.bodies[-1]["metadata"]["resourceVersion"]
    await desk.writer.put_config_map(ledger_map("2"), resource_version=version)
    with pytest.raises(Conflict):
        await desk.writer.put_config_map(ledger_map("3"), resource_version=version)
    assert desk.heard.bodies[-1]["data"] == {"k": "2"}, "the conflict was read into the store"
    with pytest.raises(Conflict):
        await desk.writer.put_config_map(ledger_map("4"), resource_version="")


async def test_a_map_deleted_meanwhile_is_a_conflict(cluster: Cluster, desk: Desk) -> None:
    with pytest.raises(Conflict, match="deleted meanwhile"):
        await desk.writer.put_config_map(ledger_map("1"), resource_version="5")


@pytest.mark.parametrize("first", [True, False], ids=["create", "replace"])
async def test_a_swap_whose_answer_was_lost_is_recognised(cluster: Cluster, desk: Desk, first: bool) -> None:
    version = ""
    if not first:
        await desk.writer.put_config_map(ledger_map("1"), resource_version="")
        version = desk.heard.bodies[-1]["metadata"]["resourceVersion"]
    cluster.server.disturbances.add(Rule(resource="configmaps", reset=True, applied=True))
    result = await desk.writer.put_config_map(ledger_map("2"), resource_version=version)
    assert result is Written.DONE
    assert desk.heard.bodies[-1]["data"] == {"k": "2"}


async def test_one_key_is_changed_and_created_and_others_stay(cluster: Cluster, desk: Desk) -> None:
    key = ObjectKey("mindie", "global-ranktable")

    async def put(text: str) -> Written:
        return await desk.writer.change_config_map(key, name="table", change=lambda _: text)

    assert await put("1") is Written.DONE
    assert await put("1") is Written.ALREADY
    await cluster.merge("/api/v1/namespaces/mindie/configmaps/global-ranktable", {"data": {"other": "x"}})
    assert await put("2") is Written.DONE
    found = await cluster.request("GET", "/api/v1/namespaces/mindie/configmaps/global-ranktable")
    assert found["data"] == {"table": "2", "other": "x"}


async def test_a_concurrent_change_of_the_same_map_is_read_again(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/mindie/configmaps/m"
    await cluster.create("/api/v1/namespaces/mindie/configmaps", "m", data={"n": "1"})

    class Racing(Between):
        raced = False

        async def handle(self, request: ApiRequest) -> ApiResponse:
            if request.method == "PATCH" and not self.raced:
                self.raced = True
                await cluster.merge(path, {"data": {"n": "10"}})
            return await super().handle(request)

    desk = Desk(cluster, exchange=Racing(cluster.server))
    await desk.writer.change_config_map(MAP, name="n", change=lambda text: str(int(text or 0) + 1))
    assert (await cluster.request("GET", path))["data"] == {"n": "11"}


@pytest.mark.parametrize(
    "body",
    [
        {"spec": [], "metadata": {"resourceVersion": "1", "uid": "u"}},
        {"spec": {"taints": [None, 5]}, "metadata": {"resourceVersion": "1", "uid": "u"}},
        {"spec": {"taints": 7}, "metadata": {"resourceVersion": "1", "uid": "u"}, "data": 3},
        {"metadata": {"resourceVersion": "1", "uid": "u", "annotations": [1]}, "data": "x"},
    ],
)
async def test_an_answer_of_strange_shape_is_an_error_of_ours_at_most(
    cluster: Cluster, body: dict[str, Any]
) -> None:
    between = Between(cluster.server)
    desk = Desk(cluster, exchange=between)

    async def tried(write: Any) -> None:
        between.canned = [ApiResponse(200, orjson.dumps(body)), ApiResponse(200, b"{}")]
        with suppress(MindieHaError):
            await write

    await tried(desk.writer.set_taint("n", uid="u", taint=OURS, present=True))
    await tried(desk.writer.annotate_podgroup(GROUP, uid="u", name="a", value="b"))
    await tried(desk.writer.change_config_map(MAP, name="k", change=lambda _: "v"))
