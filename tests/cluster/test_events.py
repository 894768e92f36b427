"""Kubernetes Events: bounded, aggregated, never in the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.events import BOUND, About, Events
from mindie_ha.cluster.writer import Writer
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.logs import silent_log
from mindie_ha.model.decisions import Notice
from mindie_ha.model.errors import LeaseLost
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.sim.disturbances import Rule
from tests.cluster.conftest import Cluster, settle
from tests.cluster.facts import make_store

pytestmark = pytest.mark.looptime

POD = About("v1", "Pod", ObjectKey("mindie", "a"), "uid-a")
NODE = About("v1", "Node", ObjectKey("", "n1"), "n1")
NOTICE = Notice("NodeIsolated", "node n1 was tainted", warning=True, key="n1")


class Fence:
    lost = False

    def guard(self) -> float:
        if self.lost:
            raise LeaseLost("gone")
        return 60.0


class Desk:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.fence = Fence()
        writer = Writer(
            client=Client(ExchangeTransport(cluster.server)),
            answers=make_store(clock=cluster.clock),
            fence=self.fence,
            clock=cluster.clock,
            entropy=cluster.entropy,
            settings=ClusterSettings(),
            log=silent_log(),
            metrics=cluster.metrics,
        )
        self.events = Events(
            writer=writer, clock=cluster.clock, entropy=cluster.entropy, metrics=cluster.metrics
        )
        cluster.tasks.append(asyncio.create_task(self.events.run()))

    async def shown(self, namespace: str = "mindie") -> list[dict[str, Any]]:
        await settle()
        found = await self.cluster.request("GET", f"/api/v1/namespaces/{namespace}/events")
        items: list[dict[str, Any]] = found["items"]
        return items

    def dropped(self, cause: str) -> float:
        registry = self.cluster.metrics.factory.registry
        return registry.get_sample_value("mindie_ha_events_dropped_total", {"cause": cause}) or 0.0


@pytest.fixture
async def desk(cluster: Cluster) -> Desk:
    return Desk(cluster)


async def test_a_notice_becomes_an_event_about_its_object(desk: Desk) -> None:
    assert desk.events.record(NOTICE, POD)
    (event,) = await desk.shown()
    assert event["involvedObject"]["uid"] == "uid-a"
    assert (event["reason"], event["type"], event["count"]) == ("NodeIsolated", "Warning", 1)
    assert event["source"]["component"] == "mindie-ha"


async def test_an_event_about_a_node_stands_in_the_default_namespace(desk: Desk) -> None:
    desk.events.record(NOTICE, NODE)
    assert len(await desk.shown("default")) == 1


async def test_repetitions_raise_the_count_at_most_once_a_minute(desk: Desk) -> None:
    for _ in range(5):
        desk.events.record(NOTICE, POD)
        await settle()
    assert desk.dropped("repeated") == 4
    await settle(60)
    desk.events.record(NOTICE, POD)
    (event,) = await desk.shown()
    assert event["count"] == 2


async def test_an_event_that_expired_is_created_anew(desk: Desk) -> None:
    desk.events.record(NOTICE, POD)
    (event,) = await desk.shown()
    await desk.cluster.request("DELETE", f"/api/v1/namespaces/mindie/events/{event['metadata']['name']}")
    await settle(70)
    desk.events.record(NOTICE, POD)
    (event,) = await desk.shown()
    assert event["count"] == 1


async def test_recording_never_waits_and_is_bounded(desk: Desk) -> None:
    desk.cluster.server.disturbances.add(Rule(resource="events", delay_s=5.0, times=None))
    for number in range(BOUND + 50):
        desk.events.record(Notice("R", "m", key=str(number)), POD)
    assert desk.dropped("full") == 50


async def test_without_the_lease_events_are_dropped_and_counted(desk: Desk) -> None:
    desk.fence.lost = True
    desk.events.record(NOTICE, POD)
    assert await desk.shown() == []
    assert desk.dropped("LeaseLost") == 1
    desk.fence.lost = False
    desk.events.record(Notice("Other", "m"), POD)
    assert len(await desk.shown()) == 1


async def test_refused_events_do_not_stop_the_next(desk: Desk) -> None:
    nowhere = About("v1", "Pod", ObjectKey("no-such-namespace", "a"), "u")
    desk.events.record(NOTICE, nowhere)
    desk.events.record(NOTICE, POD)
    assert len(await desk.shown()) == 1
