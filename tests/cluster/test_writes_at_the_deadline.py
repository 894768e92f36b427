"""No write leaves after the fence has closed: not what waits, not what is repeated, not what is under way."""

from __future__ import annotations

import asyncio

import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.leases import Candidate
from mindie_ha.cluster.writer import Writer
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.clock import loop_time
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.model.errors import LeaseLost
from mindie_ha.model.settings import ClusterSettings
from tests.cluster.conftest import Cluster
from tests.cluster.facts import make_store
from tests.cluster.test_lease_answers import SETTINGS, Line

pytestmark = pytest.mark.looptime


class Leader:
    """A leader whose Lease and whose writes go separate ways; `slept_s` is time that its loop did not see."""

    def __init__(self, cluster: Cluster) -> None:
        self.slept_s = 0.0
        self.lease_line, self.line = Line(cluster.server), Line(cluster.server)
        self.candidate = Candidate(
            client=Client(ExchangeTransport(self.lease_line)),
            namespace="mindx-dl",
            identity="a",
            settings=SETTINGS,
            steady=lambda: loop_time() + self.slept_s,
            wall=cluster.clock.wall,
            entropy=Entropy(1),
            log=silent_log(),
        )
        self.writer = Writer(
            client=Client(ExchangeTransport(self.line)),
            answers=make_store(clock=cluster.clock),
            fence=self.candidate,
            clock=cluster.clock,
            entropy=Entropy(2),
            settings=ClusterSettings(),
            log=silent_log(),
            metrics=cluster.metrics,
        )
        cluster.tasks.append(asyncio.create_task(self.candidate.run()))

    async def leads(self) -> Leader:
        self.candidate.stand()
        await self.candidate.acquired.wait()
        return self

    async def write(self, name: str) -> str:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "mindie", "name": name},
            "data": {},
        }
        return (await self.writer.put_config_map(body, resource_version="")).value


async def test_what_waits_for_its_turn_finds_the_fence_closed(cluster: Cluster) -> None:
    leader = await Leader(cluster).leads()
    waiting = [asyncio.create_task(leader.write(f"m{number}")) for number in range(500)]
    await asyncio.sleep(0.2)
    sent = leader.line.writes
    leader.slept_s = 60.0
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert leader.line.writes == sent
    assert sum(end == "done" for end in ends) == sent
    assert sum(isinstance(end, LeaseLost) for end in ends) == 500 - sent > 100


async def test_a_repetition_finds_the_fence_closed(cluster: Cluster) -> None:
    leader = await Leader(cluster).leads()
    leader.line.fault = "503"
    task = asyncio.create_task(leader.write("m"))
    await asyncio.sleep(0.05)
    sent = leader.line.writes
    leader.line.fault = ""
    leader.slept_s = 60.0
    with pytest.raises(LeaseLost):
        await task
    assert leader.line.writes == sent == 1


async def test_what_is_under_way_is_cut_at_the_deadline(cluster: Cluster) -> None:
    leader = await Leader(cluster).leads()
    leader.lease_line.fault = leader.line.fault = "hangs"
    await asyncio.sleep(9)
    left_s, began_s = leader.candidate.guard(), loop_time()
    assert left_s < 10  # the time-out of a request
    with pytest.raises(LeaseLost):
        await leader.write("m")
    assert loop_time() - began_s == pytest.approx(left_s, abs=0.5)
    assert leader.line.writes == 1


async def test_between_two_leads_nothing_leaves(cluster: Cluster) -> None:
    leader = await Leader(cluster).leads()
    leader.lease_line.fault = "cut"
    await leader.candidate.lost.wait()
    leader.lease_line.fault = ""
    with pytest.raises(LeaseLost):
        await leader.write("m")
    await leader.leads()
    assert await leader.write("m") == "done"
