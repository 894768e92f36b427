"""Training and inference on the same servers: one cause, two workloads, two ladders, one isolation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mindie_ha.demo import manifests
from tools.soak.judges import TAINT

from .clusters import NOT_READY, Cluster, Object, cluster, quick

pytestmark = pytest.mark.looptime
TRAIN, SERVERS = "train", ("mindie-server-p0", "mindie-server-d0")
BOARD = {"board": "Motherboard", "code": "0100001D", "level": "SeparateFault"}


@asynccontextmanager
async def shared() -> AsyncIterator[Cluster]:
    """Everything runs, the table is published."""
    service = list(manifests.load("shared"))
    async with cluster(servers=(), service=service, start=False, nodes=8) as c:
        await c.start(quick())
        await c.until(lambda: c.published() == set(SERVERS), "published")
        await c.until(lambda: len(c.ledger(TRAIN).get("members", ())) == 4, "counted")
        yield c


def sharing(c: Cluster) -> tuple[str, str, str]:
    """A node under a worker and a pod of an instance: its name, that worker, that instance."""
    for name, pod in c.pods(TRAIN).items():
        node = str(pod["spec"]["nodeName"])
        for server in SERVERS:
            if "worker" in name and any(c.node_of(each) == node for each in c.pods(server)):
                return node, name, server
    raise AssertionError("nobody shares a node")


def card_of(c: Cluster, pod: str) -> str:
    """A card that a pod holds."""
    return str(c.pods()[pod]["metadata"]["annotations"]["huawei.com/AscendReal"]).split(",")[0]


def separated(device: str) -> Object:
    return {"device": device, "code": "80E18005", "level": "SeparateNPU"}


@pytest.mark.parametrize("how", ["board", "node", "cards"])
async def test_both_recover_by_their_own_ladder_under_one_isolation(how: str) -> None:
    async with shared() as c:
        node, worker, server = sharing(c)
        other = next(each for each in SERVERS if each != server)
        member = next(name for name in c.pods(server) if c.node_of(name) == node)
        old = c.uids()
        cards = [separated(card_of(c, name)) for name in (worker, member)]
        await c.world.set_faults(node, {"board": [BOARD], "node": [NOT_READY], "cards": cards}[how])
        trained, served = await c.recovered(TRAIN), await c.recovered(server)
        assert (trained["rungs"], served["rungs"]) == (["pod"], ["job"])
        assert trained["outcome"] == served["outcome"] == "recovered"
        new = c.uids()
        changed = {name for name in old if new.get(name) != old[name]}
        assert changed == {worker, *(name for name in old if name.startswith(server))}
        assert not c.ledger(other)["epoch"]
        assert set(c.judge.deleted) == {old[name] for name in changed}
        await c.until(lambda: c.published() == set(SERVERS), "published again")
        told = [event for event in c.events("NodeIsolated") if event["involvedObject"]["name"] == node]
        assert len(told) == (2 if how == "cards" else 1)  # a card is a reason of its own, the taint is one


@pytest.mark.parametrize("whose", ["training", "inference"])
async def test_a_card_of_one_leaves_the_other_on_the_same_server_alone(whose: str) -> None:
    async with shared() as c:
        node, worker, server = sharing(c)
        member = next(name for name in c.pods(server) if c.node_of(name) == node)
        hit, job, spared = (worker, TRAIN, server) if whose == "training" else (member, server, TRAIN)
        kept = c.uids(spared)
        await c.world.set_faults(node, [separated(card_of(c, hit))])
        await c.recovered(job)
        assert c.uids(spared) == kept
        assert not c.ledger(spared)["epoch"]
        assert TAINT not in c.taints(node)  # the scheduler's list shows the card; its other cards are open
