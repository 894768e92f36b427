"""The label that the gRPC Service selects: off every other pod first, then onto the leader's own."""

from __future__ import annotations

from typing import Any

import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.leader_labels import LABEL_LEADER, LeaderLabel, OwnPod, own_pod
from mindie_ha.cluster.writer import Writer
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.logs import silent_log
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import ClusterSettings
from tests.cluster.conftest import Between, Cluster, status
from tests.cluster.facts import make_store
from tests.cluster.test_writer import Leading

pytestmark = pytest.mark.looptime
OURS = ObjectKey("mindie", "a")


class Desk:
    def __init__(self, cluster: Cluster, *, uid: str = "") -> None:
        self.cluster = cluster
        self.between = Between(cluster.server)
        self.fence = Leading()
        client = Client(ExchangeTransport(self.between))
        writer = Writer(
            client=client,
            answers=make_store(clock=cluster.clock),
            fence=self.fence,
            clock=cluster.clock,
            entropy=cluster.entropy,
            settings=ClusterSettings(),
            log=silent_log(),
            metrics=cluster.metrics,
        )
        own = OwnPod(OURS, uid)
        self.label = LeaderLabel(own, client=client, writer=writer, clock=cluster.clock, log=silent_log())

    async def labelled(self) -> list[str]:
        pods = (await self.cluster.request("GET", "/api/v1/namespaces/mindie/pods"))["items"]
        return [pod["metadata"]["name"] for pod in pods if LABEL_LEADER in pod["metadata"].get("labels", {})]

    @property
    def patches(self) -> list[str]:
        return [one.path.rpartition("/")[2] for one in self.between.requests if one.method == "PATCH"]


async def pods(cluster: Cluster, *, leads: str = "") -> dict[str, Any]:
    return {
        name: await cluster.pod(name, labels={LABEL_LEADER: "true"} if name == leads else {})
        for name in ("a", "b", "c")
    }


async def test_the_predecessor_loses_it_before_we_get_it(cluster: Cluster) -> None:
    await pods(cluster, leads="b")
    desk = Desk(cluster)
    await desk.label.settle()
    assert desk.patches == ["b", "a"]
    assert await desk.labelled() == ["a"]


async def test_nothing_is_written_while_it_is_right(cluster: Cluster) -> None:
    await pods(cluster, leads="a")
    desk = Desk(cluster)
    await desk.label.settle()
    assert desk.patches == []


async def test_a_pod_of_our_name_that_is_not_ours_is_left_alone(cluster: Cluster) -> None:
    await pods(cluster)
    desk = Desk(cluster, uid="11111111-2222-3333-4444-555555555555")
    await desk.label.settle()
    assert desk.patches == []
    assert await desk.labelled() == []


async def test_a_missing_permission_is_told_until_it_is_there(cluster: Cluster) -> None:
    await pods(cluster)
    desk = Desk(cluster)
    desk.between.canned = [status(403, "Forbidden", "cannot list pods")]
    task = cluster.spawn(desk.label.run())
    await cluster.clock.sleep(1)
    assert "cannot list pods" in desk.label.problem
    await cluster.clock.sleep(10)
    assert desk.label.problem == ""
    assert await desk.labelled() == ["a"]
    assert not task.done()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, None),
        ({"POD_NAME": "a"}, None),
        ({"POD_NAME": "a", "POD_NAMESPACE": "mindie"}, OwnPod(OURS)),
        ({"POD_NAME": "a", "POD_NAMESPACE": "mindie", "POD_UID": "u"}, OwnPod(OURS, "u")),
    ],
    ids=["outside", "half", "without-uid", "whole"],
)
def test_our_pod_is_named_by_the_downward_api(given: dict[str, str], found: OwnPod | None) -> None:
    assert own_pod(given) == found
