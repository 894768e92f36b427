"""Hands and backups on what we remember: ledgers deleted, unlabelled, set back, a cluster restored."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest

from mindie_ha.cluster.documents import DIGEST_KEY, LEDGER_KEY, MAX_BYTES
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.sim.actors.machines import a2_nodes

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, cluster, quick, small_service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
LABEL = "mindie-ha.io/ledger"


def table_map(c: Cluster) -> str:
    names = [one["metadata"]["name"] for one in c.all("ConfigMap")]
    return next(name for name in names if name.startswith("mindie-ha-service-"))


async def hit(c: Cluster, *, closed: int = 1) -> None:
    """A chip fault, to its end."""
    await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
    await c.recovered(P0, closed=closed)


def boot_text(c: Cluster) -> str:
    found = c.get("ConfigMap", "global-ranktable")
    assert found is not None
    return str(found["data"]["global_ranktable.json"])


@pytest.mark.parametrize("how", ["deleted", "set back", "unlabelled"])
async def test_generations_and_ids_go_on_over_a_lost_table_ledger(how: str) -> None:
    async with cluster(settings=quick()) as c:
        name = table_map(c)
        first = c.get("ConfigMap", name)
        assert first is not None
        await hit(c)
        before = c.table()
        assert before["generation"] == 3
        c.judge.tampered.add(name)
        if how == "deleted":
            await c.api.delete("ConfigMap", name, NAMESPACE)
        elif how == "unlabelled":
            await c.api.patch("ConfigMap", name, NAMESPACE, {"metadata": {"labels": {LABEL: None}}})
        else:
            data = {key: first["data"][key] for key in (LEDGER_KEY, DIGEST_KEY)}
            await c.api.patch("ConfigMap", name, NAMESPACE, {"data": data})
        await c.until(lambda: c.table() == before, "written again")
        c.judge.tampered.clear()
        await hit(c, closed=2)
        assert c.table()["generation"] == 5
        assert c.table()["ids"] == before["ids"]
        await c.until(lambda: boot_text(c) == c.table()["text"], "delivered")


async def test_a_ledger_without_its_label_gets_it_back_and_the_workload_goes_on() -> None:
    async with cluster(settings=quick()) as c:
        await hit(c)
        name = f"mindie-ha-ledger-ascendjob-{P0}"
        await c.api.patch("ConfigMap", name, NAMESPACE, {"metadata": {"labels": {LABEL: None}}})
        await hit(c, closed=2)
        assert c.ledger(P0)["epoch"] == 2
        refused = [write for write in c.judge.writes if write.method == "POST" and write.code == 409]
        assert len(refused) <= 2
        assert "labels of a ConfigMap of ours" in c.log()


async def test_a_cluster_that_was_replaced_behind_the_same_address_is_seen_as_it_is() -> None:
    impatient = quick().model_copy(update={"cluster": ClusterSettings(inactivity_s=5.0)})
    async with cluster(settings=impatient) as c:
        await c.clock.sleep(30)
        new = Cluster(nodes=a2_nodes(6), seed=7, lag_s=(0.0, 1.0), speed=1.0, serve=False)
        new.clock, new.runs = c.clock, c.runs
        tasks = [asyncio.create_task(new.server.run()), asyncio.create_task(new.world.run())]
        try:
            await new.world.ready()
            assert _version(new) < _version(c)
            c.runs[-1].door.server = c.judge.server = new.server
            c.server.disturbances.cut_watches()
            await c.clock.sleep(30)
            await new.apply(small_service())
            await new.until(lambda: new.published() == {P0, D0}, "served", deadline_s=240)
            await new.until(lambda: _seen_nodes(new) == _nodes(new), "its nodes", deadline_s=240)
            node = new.node_of(f"{P0}-master-0")
            await new.world.set_faults(node, [CHIP])
            await new.recovered(P0)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _nodes(c: Cluster) -> dict[str, str]:
    return {node["metadata"]["name"]: node["metadata"]["uid"] for node in c.all("Node", "")}


def _seen_nodes(c: Cluster) -> dict[str, str]:
    store = c.app.core.store
    return {name: store.node_view(name, now_s=0).node.uid for name in store.node_names()}


def _version(c: Cluster) -> int:
    return c.server.core.store.version


async def test_a_finalizer_that_never_ends_is_named_to_people() -> None:
    async with cluster(settings=quick(gone_s=5.0)) as c:
        held = {"metadata": {"finalizers": ["example.com/never"]}}
        await c.api.patch("Pod", f"{P0}-worker-0", NAMESPACE, held)
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.events("ForcingDeletion"), "people are told")
        assert "example.com/never" in c.events("ForcingDeletion")[0]["message"]
        await c.api.patch("Pod", f"{P0}-worker-0", NAMESPACE, {"metadata": {"finalizers": None}})
        await c.recovered(P0)


async def test_a_deleted_isolation_ledger_leaves_a_taint_that_is_told() -> None:
    async with cluster(settings=quick(), nodes=8) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.recovered(P0)
        name = f"mindie-ha-node-{node}"
        c.judge.tampered.add(name)
        await c.api.delete("ConfigMap", name, "mindx-dl")
        await c.until(lambda: c.events("TaintWithoutRecord"), "people are told")
        await c.clock.sleep(5)
        assert len(c.events("TaintWithoutRecord")) == 1


async def test_a_ledger_that_outgrows_its_bound_is_told_and_nothing_is_done_unrecorded() -> None:
    async with cluster(settings=quick()) as c:
        old = c.uids(P0)
        ledger = c.ledger(P0)
        ledger["rearmed"] = {"person": "x", "text": "", "reason": "x", "at_s": 1.0, "told": True}
        spare = MAX_BYTES - len(json.dumps(ledger, separators=(",", ":")))
        ledger["rearmed"]["text"] = "x" * (spare - 10)
        text = json.dumps(ledger, sort_keys=True, separators=(",", ":"))
        data = {LEDGER_KEY: text, DIGEST_KEY: hashlib.sha256(text.encode()).hexdigest()}
        name = "mindie-ha-ledger-ascendjob-" + P0
        c.judge.tampered.add(name)
        await c.api.patch("ConfigMap", name, NAMESPACE, {"data": data})
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.events("LedgerNotWritten"), "told")
        await c.clock.sleep(60.0)
        assert c.uids(P0) == old
        assert [event["count"] for event in c.events("LedgerNotWritten")] == [1]
