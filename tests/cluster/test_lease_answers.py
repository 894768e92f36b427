"""What each answer of the API server means for whoever leads, and for whoever wants to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.leases import DRIFT, Candidate
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.clock import loop_time
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.model.errors import LeaseLost
from mindie_ha.model.settings import LeaseSettings
from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange
from tests.cluster.conftest import Cluster, status

pytestmark = pytest.mark.looptime
PATH = "/apis/coordination.k8s.io/v1/namespaces/mindx-dl/leases"
LEASE = f"{PATH}/mindie-ha"
SETTINGS = LeaseSettings(duration_s=15, renew_s=4.0, retry_s=4.0)


class Line(Exchange):
    """The way of one candidate to the server: `fault` says what becomes of a request."""

    def __init__(self, server: Exchange) -> None:
        self.server = server
        self.fault = ""  # "": none
        self.writes = 0

    async def handle(self, request: ApiRequest) -> ApiResponse:
        self.writes += request.method != "GET"
        match self.fault:
            case "hangs":
                await asyncio.get_running_loop().create_future()
            case "cut":
                raise ConnectionResetError("cut")
            case "answer lost":
                await self.server.handle(request)
                raise ConnectionResetError("cut after the request")
            case "429":
                return status(429, "TooManyRequests", **{"retry-after": "60"})
            case code if code:
                return status(int(code), "Injected")
        return await self.server.handle(request)


class Replica:
    """A candidate with a clock of its own: `ahead_s` its wall clock, `pace` how fast its time passes."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        *,
        ahead_s: float = 0.0,
        pace: float = 1.0,
        line: type[Line] = Line,
    ) -> None:
        self.line = line(cluster.server)
        self.candidate = Candidate(
            client=Client(ExchangeTransport(self.line)),
            namespace="mindx-dl",
            identity=name,
            settings=SETTINGS,
            steady=lambda: 1000.0 * len(name) + pace * loop_time(),
            wall=lambda: cluster.clock.wall() + ahead_s,
            entropy=Entropy(len(name) + ord(name[-1])),
            log=silent_log(),
        )
        self.task = asyncio.create_task(self.candidate.run())
        cluster.tasks.append(self.task)

    async def stands(self) -> Replica:
        self.candidate.stand()
        async with asyncio.timeout(60):
            await self.candidate.acquired.wait()
        return self

    async def stop(self) -> None:
        """As a process that ends in order."""
        self.task.cancel()
        await asyncio.wait({self.task})
        await self.candidate.release()

    async def die(self) -> None:
        """As by kill -9."""
        self.line.fault = "hangs"
        self.task.cancel()
        await asyncio.wait({self.task})


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def seen(cluster: Cluster) -> dict[str, Any]:
    spec: dict[str, Any] = (await cluster.request("GET", LEASE))["spec"]
    return spec


async def test_a_free_lease_is_taken_at_once(cluster: Cluster) -> None:
    began_s = now_s()
    replica = await Replica(cluster, "a").stands()
    assert now_s() - began_s < 0.1
    spec = await seen(cluster)
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
    assert 14.9 < replica.candidate.guard() <= 15


async def test_it_is_renewed_as_long_as_nothing_happens(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    await asyncio.sleep(600)
    assert leader.candidate.guard() > 10
    assert 600 / 4 <= leader.line.writes <= 600 / 3
    assert (await seen(cluster))["leaseTransitions"] == 0


async def test_whoever_does_not_stand_takes_nothing(cluster: Cluster) -> None:
    replica = Replica(cluster, "a")
    await asyncio.sleep(60)
    assert replica.line.writes == 0
    with pytest.raises(LeaseLost):
        replica.candidate.guard()


async def test_a_lease_that_was_given_up_is_taken_within_two_seconds(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    other = Replica(cluster, "b")
    other.candidate.stand()
    await asyncio.sleep(30)
    began_s = now_s()
    await leader.stop()
    await other.stands()
    assert now_s() - began_s < 2
    assert (await seen(cluster))["leaseTransitions"] == 1


@pytest.mark.parametrize("ahead_s", [-86_400.0, -20.0, 0.0, 20.0, 86_400.0])
async def test_a_dead_leader_is_followed_after_its_lease_whatever_the_wall_clocks_say(
    cluster: Cluster, ahead_s: float
) -> None:
    leader = await Replica(cluster, "a").stands()
    other = Replica(cluster, "b", ahead_s=ahead_s)
    other.candidate.stand()
    await asyncio.sleep(30)
    began_s = now_s()
    await leader.die()
    await other.stands()
    assert 15 * DRIFT - 4 <= now_s() - began_s < 15 * DRIFT + 1.5


async def test_whoever_comes_later_waits_for_a_whole_lease(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    await leader.die()
    await asyncio.sleep(100)
    began_s = now_s()
    await Replica(cluster, "b").stands()
    assert 15 * DRIFT <= now_s() - began_s < 15 * DRIFT + 1.5


PASSING = ["hangs", "cut", "answer lost", "429", "500", "503", "403", "401", "400", "422"]


@pytest.mark.parametrize("fault", PASSING)
async def test_a_short_trouble_is_survived(cluster: Cluster, fault: str) -> None:
    leader = await Replica(cluster, "a").stands()
    leader.line.fault = fault
    await asyncio.sleep(5)
    leader.line.fault = ""
    await asyncio.sleep(60)
    assert not leader.candidate.lost.is_set()
    assert leader.candidate.problem == ""
    assert leader.candidate.guard() > 9


@pytest.mark.parametrize("fault", PASSING)
async def test_a_long_trouble_closes_the_fence_at_the_deadline(cluster: Cluster, fault: str) -> None:
    leader = await Replica(cluster, "a").stands()
    await asyncio.sleep(20)
    left_s = leader.candidate.guard()
    leader.line.fault = fault
    async with asyncio.timeout(left_s + 15.001):  # one lost answer may still have renewed it... in the record
        await leader.candidate.lost.wait()
    with pytest.raises(LeaseLost):
        leader.candidate.guard()
    assert not leader.candidate.acquired.is_set()
    leader.line.fault = ""
    await leader.stands()  # and stands again


async def test_the_fence_closes_no_later_than_the_deadline(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    await asyncio.sleep(20)
    left_s = leader.candidate.guard()
    leader.line.fault = "hangs"
    began_s = now_s()
    await leader.candidate.lost.wait()
    assert now_s() - began_s == pytest.approx(left_s, abs=0.01)


async def test_a_deadline_counts_from_before_the_request(cluster: Cluster) -> None:
    class Slow(Line):
        async def handle(self, request: ApiRequest) -> ApiResponse:
            answer = await super().handle(request)
            await asyncio.sleep(3.0)
            return answer

    replica = await Replica(cluster, "a", line=Slow).stands()
    assert replica.candidate.guard() == pytest.approx(12.0, abs=0.01)


async def test_a_lease_that_somebody_else_took_is_lost_at_once(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    await cluster.merge(LEASE, {"spec": {"holderIdentity": "person"}})
    async with asyncio.timeout(4.1):
        await leader.candidate.lost.wait()
    assert leader.candidate.leader == "person"


async def test_somebody_else_s_label_costs_nothing(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    await cluster.merge(LEASE, {"metadata": {"labels": {"x": "y"}}})
    await asyncio.sleep(30)
    assert leader.candidate.leads
    assert (await cluster.request("GET", LEASE))["metadata"]["labels"] == {"x": "y"}


async def test_a_deleted_lease_stays_with_its_holder(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    other = Replica(cluster, "b")
    other.candidate.stand()
    await asyncio.sleep(5)
    await cluster.request("DELETE", LEASE)
    await asyncio.sleep(30)
    assert leader.candidate.leads
    assert not other.candidate.leads
    assert (await seen(cluster))["holderIdentity"] == "a"


async def test_nothing_is_taken_after_a_loss_until_the_work_has_ended(cluster: Cluster) -> None:
    leader = await Replica(cluster, "a").stands()
    leader.line.fault = "cut"
    await leader.candidate.lost.wait()
    leader.line.fault = ""
    await asyncio.sleep(60)
    assert not leader.candidate.leads
    await leader.stands()


async def test_a_process_that_stood_still_finds_its_fence_closed(cluster: Cluster) -> None:
    """The loop does not turn while the machine sleeps; the time that its fence reads went on."""
    slept = [0.0]
    candidate = Candidate(
        client=Client(ExchangeTransport(cluster.server)),
        namespace="mindx-dl",
        identity="a",
        settings=SETTINGS,
        steady=lambda: loop_time() + slept[0],
        wall=cluster.clock.wall,
        entropy=Entropy(1),
        log=silent_log(),
    )
    cluster.tasks.append(asyncio.create_task(candidate.run()))
    candidate.stand()
    await candidate.acquired.wait()
    slept[0] = 30.0
    with pytest.raises(LeaseLost):
        candidate.guard()
    await asyncio.sleep(0.01)  # the refusal itself wakes the loop
    assert candidate.lost.is_set()


async def test_the_record_tells_people_who_and_since_when(cluster: Cluster) -> None:
    await Replica(cluster, "a").stands()
    spec = await seen(cluster)
    assert spec.keys() >= {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime"}
    assert spec["renewTime"].endswith("Z")
