"""Ledgers: survive, are never overwritten in ignorance, and stop their owner where they cannot be read."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from mindie_ha.cluster import documents
from mindie_ha.cluster.client import Client
from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.mirrors import Mirror
from mindie_ha.cluster.store import Store
from mindie_ha.cluster.writer import Writer, Written
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.logs import silent_log
from mindie_ha.model.errors import Conflict, LedgerUnreadable
from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import ObjectKey, PodUID, node_key, service_key
from mindie_ha.model.ledgers import Isolation, NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Intent, IntentKind, Outcome, Phase, Recovery
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.model.workloads import Workload
from mindie_ha.policy import records
from tests.cluster import facts
from tests.cluster.conftest import Cluster, settle
from tests.cluster.facts import Told, make_store

pytestmark = pytest.mark.looptime

MAPS = "/api/v1/namespaces/mindie/configmaps"
JOBS = "/apis/mindxdl.gitee.com/v1/namespaces/mindie/ascendjobs"
LEDGER_PATH = f"{MAPS}/mindie-ha-ledger-ascendjob-p0"
SERVICE = service_key("mindie", "svc")
NOW_S = 1_700_000_000.0


class Free:
    def guard(self) -> float:
        """Always ours."""
        return 60.0


class Process:
    """One run of the controller, as far as ledgers need it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.told = Told()
        self.store: Store = make_store(clock=cluster.clock, listener=self.told)
        client = Client(ExchangeTransport(cluster.server))
        common: dict[str, Any] = {
            "client": client,
            "clock": cluster.clock,
            "entropy": cluster.entropy,
            "settings": ClusterSettings(),
            "log": silent_log(),
            "metrics": cluster.metrics,
        }
        self.writer = Writer(answers=self.store, fence=Free(), **common)
        self.ledgers = Ledgers(store=self.store, writer=self.writer, namespace="mindx-dl")
        self.mirror = Mirror(store=self.store, **common)

    async def watching(self) -> Process:
        for informer in self.mirror.informers:
            self.cluster.run(informer)
        assert await self.mirror.wait_synced(timeout_s=60) == {}
        return self

    def _version(self, key: ObjectKey) -> str:
        entry = self.store.ledger_entry(key)
        return entry.resource_version if entry is not None else ""

    async def save_workload(self, ledger: WorkloadLedger, *, workload: Workload) -> Written:
        version = self._version(documents.workload_ledger_key(workload))
        return await self.ledgers.save_workload(ledger, workload=workload, version=version)

    async def save_service(self, ledger: ServiceLedger) -> Written:
        version = self._version(documents.service_ledger_key(ledger.namespace, ledger.job_id))
        workload = self.store.workload(ObjectKey("mindie", "p0"))
        workloads = [workload] if workload is not None else []
        return await self.ledgers.save_service(ledger, workloads=workloads, version=version)

    async def save_node(self, ledger: NodeLedger) -> Written:
        version = self._version(documents.node_ledger_key("mindx-dl", ledger.node))
        return await self.ledgers.save_node(ledger, version=version)

    def workload(self, name: str = "p0") -> Workload:
        found = self.store.workload(ObjectKey("mindie", name))
        assert found is not None
        return found

    def remembered(self, name: str = "p0") -> tuple[WorkloadLedger, str]:
        view = self.store.view(SERVICE, now_s=NOW_S)
        assert view is not None
        one = next(each for each in view.workloads if each.workload.key.name == name)
        return one.ledger, one.ledger_error


def with_epoch(workload: Workload, epoch: int) -> WorkloadLedger:
    return WorkloadLedger(workload=f"AscendJob/{workload.key}", workload_uid=workload.uid, epoch=epoch)


def recovering(workload: Workload) -> WorkloadLedger:
    intent = Intent(kind=IntentKind.FAULT, cause=Cause.CHIP_UNHEALTHY, at_s=1.0, summary="x")
    recovery = Recovery(
        epoch=4, intent=intent, rung="job", phase=Phase.STOP, phase_since_s=1.0, opened_at_s=1.0
    )
    return with_epoch(workload, 4).model_copy(update={"recovery": recovery})


async def new_job(cluster: Cluster, name: str = "p0") -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "ascend", "image": "mindie:1"}]}}
    spec = {"replicaSpecs": {"Master": {"replicas": 1, "template": template}}}
    labels = {**facts.SERVER, "framework": "pytorch"}
    return await cluster.create(JOBS, name, spec=spec, metadata={"labels": labels})


async def test_what_was_saved_is_known_at_once_and_after_a_restart(cluster: Cluster) -> None:
    await new_job(cluster)
    first = await Process(cluster).watching()
    ledger = with_epoch(first.workload(), 3)
    assert await first.save_workload(ledger, workload=first.workload()) is Written.DONE
    assert first.remembered() == (ledger, "")
    second = await Process(cluster).watching()
    assert second.remembered() == (ledger, "")
    found = await cluster.request("GET", LEDGER_PATH)
    assert found["metadata"]["labels"]["mindie-ha.io/ledger"] == "workload"
    assert found["metadata"]["ownerReferences"][0]["uid"] == first.workload().uid


async def test_of_two_processes_the_one_that_saw_less_is_refused_and_then_knows(cluster: Cluster) -> None:
    await new_job(cluster)
    one, other = await Process(cluster).watching(), await Process(cluster).watching()
    workload = one.workload()
    await one.save_workload(with_epoch(workload, 1), workload=workload)
    with pytest.raises(Conflict):
        await other.save_workload(with_epoch(workload, 7), workload=workload)
    assert other.remembered()[0].epoch == 1
    await other.save_workload(with_epoch(workload, 2), workload=workload)
    await settle()
    assert one.remembered()[0].epoch == 2


async def test_what_came_in_after_the_look_is_not_overwritten(cluster: Cluster) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    workload = process.workload()
    await process.save_workload(with_epoch(workload, 1), workload=workload)
    looked_at = process.store.view(SERVICE, now_s=NOW_S)
    assert looked_at is not None
    await process.save_workload(with_epoch(workload, 2), workload=workload)
    version = looked_at.workloads[0].ledger_version
    with pytest.raises(Conflict):
        await process.ledgers.save_workload(with_epoch(workload, 9), workload=workload, version=version)
    assert process.remembered()[0].epoch == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"ledger.json": "{}"}, "digest does not fit"),
        ({"ledger.json": None}, "has no key"),
        ({"digest": "0"}, "digest does not fit"),
    ],
    ids=["edited", "removed", "digest-edited"],
)
async def test_a_ledger_that_somebody_edited_stops_its_workload_and_is_not_overwritten(
    cluster: Cluster, data: dict[str, Any], words: str
) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    workload = process.workload()
    await process.save_workload(with_epoch(workload, 3), workload=workload)
    await cluster.merge(LEDGER_PATH, {"data": data})
    await settle()
    assert words in process.remembered()[1]
    with pytest.raises(LedgerUnreadable, match=words):
        await process.save_workload(with_epoch(workload, 4), workload=workload)


async def test_an_unknown_schema_version_is_unreadable_not_zero(cluster: Cluster) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    workload = process.workload()
    await process.save_workload(with_epoch(workload, 3), workload=workload)
    found = await cluster.request("GET", LEDGER_PATH)
    text = found["data"]["ledger.json"].replace('"schema_version":3', '"schema_version":99')
    digest = hashlib.sha256(text.encode()).hexdigest()
    await cluster.merge(LEDGER_PATH, {"data": {"ledger.json": text, "digest": digest}})
    await settle()
    assert "schema_version" in process.remembered()[1]


async def test_case_081_a_job_created_again_under_its_name_starts_from_zero(cluster: Cluster) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    old = process.workload()
    await process.save_workload(with_epoch(old, 9), workload=old)
    await cluster.request("DELETE", f"{JOBS}/p0")
    await new_job(cluster)
    await settle()
    new = process.workload()
    assert new.uid != old.uid
    assert process.remembered()[0].epoch == 0
    await process.save_workload(with_epoch(new, 1), workload=new)
    assert process.remembered()[0].workload_uid == new.uid


async def test_a_service_ledger_holds_a_large_table_and_is_found_by_its_job_id(cluster: Cluster) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    ledger = ServiceLedger(namespace="mindie", job_id="svc", generation=2, text="x" * 900_000, ids={"p0": 2})
    await process.save_service(ledger)
    assert process.store.service_ledger(SERVICE) == ledger
    view = process.store.view(SERVICE, now_s=NOW_S)
    assert view is not None
    assert view.table is not None
    assert view.table.ledger == ledger


async def test_a_ledger_above_its_bound_is_refused_before_it_is_sent(cluster: Cluster) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    ledger = ServiceLedger(namespace="mindie", job_id="svc", generation=1, text="x" * 1_100_000)
    with pytest.raises(LedgerUnreadable, match="above the bound"):
        await process.save_service(ledger)


def isolation(wanted_by: str) -> Isolation:
    return Isolation(
        id="ChipUnhealthy:a",
        reason="ChipUnhealthy",
        wanted_by=(wanted_by,),
        until="listed",
        since_s=1.0,
        undo="u",
    )


async def test_a_node_ledger_goes_with_its_node(cluster: Cluster) -> None:
    node = await cluster.create("/api/v1/nodes", "n1")
    process = await Process(cluster).watching()
    ledger = NodeLedger(node="n1", node_uid=node["metadata"]["uid"], isolations=(isolation("person:me"),))
    await process.save_node(ledger)
    assert process.store.node_view("n1", now_s=NOW_S).ledger == ledger
    found = await cluster.request("GET", "/api/v1/namespaces/mindx-dl/configmaps/mindie-ha-node-n1")
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Node"


async def test_open_recoveries_are_named_as_isolations_name_them(cluster: Cluster) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    workload = process.workload()
    await process.save_workload(recovering(workload), workload=workload)
    assert process.store.open_recoveries() == {"recovery:mindie/p0#4"}
    assert process.store.fleet(now_s=NOW_S).open_recoveries == 1
    await process.save_workload(with_epoch(workload, 4), workload=workload)
    assert process.store.open_recoveries() == frozenset()


async def test_a_recovery_that_closes_wakes_the_nodes_that_it_wanted_isolated(cluster: Cluster) -> None:
    await new_job(cluster)
    await cluster.create("/api/v1/nodes", "n1")
    process = await Process(cluster).watching()
    workload = process.workload()
    await process.save_workload(recovering(workload), workload=workload)
    await process.save_node(NodeLedger(node="n1", isolations=(isolation("recovery:mindie/p0#4"),)))
    process.told.calls.clear()
    await process.save_workload(with_epoch(workload, 4), workload=workload)
    assert {scope for scopes, _ in process.told.calls for scope in scopes} == {SERVICE, node_key("n1")}


async def test_what_an_unreadable_ledger_wanted_isolated_stays_wanted(cluster: Cluster) -> None:
    await new_job(cluster)
    await cluster.create("/api/v1/nodes", "n1")
    process = await Process(cluster).watching()
    workload = process.workload()
    await process.save_workload(recovering(workload), workload=workload)
    await process.save_node(NodeLedger(node="n1", isolations=(isolation("recovery:mindie/p0#4"),)))
    await cluster.merge(LEDGER_PATH, {"data": {"digest": "0"}})
    await settle()
    assert process.store.open_recoveries() == {"recovery:mindie/p0#4"}
    again = await Process(cluster).watching()
    assert again.store.open_recoveries() == {"recovery:mindie/p0#4"}


def test_names_fit_the_api_whatever_they_are_made_of() -> None:
    key = documents.node_ledger_key("mindx-dl", "n" * 253)
    other = documents.node_ledger_key("mindx-dl", "n" * 252 + "x")
    assert len(key.name) <= 253
    assert key != other
    strange = documents.service_ledger_key("mindie", "Ä job/ID")
    assert strange.name == "mindie-ha-service-" + hashlib.sha256("Ä job/ID".encode()).hexdigest()[:10]


def test_the_same_ledger_is_the_same_bytes() -> None:
    one = ServiceLedger(namespace="m", job_id="j", ids={"b": 1, "a": 2})
    other = ServiceLedger(namespace="m", job_id="j", ids={"a": 2, "b": 1})
    assert documents.encode(one, limit=1000) == documents.encode(other, limit=1000)


def test_the_memory_of_a_job_of_1500_pods_fits_after_six_recoveries_of_ten_attempts() -> None:
    intent = Intent(kind=IntentKind.FAULT, cause=Cause.CHIP_UNHEALTHY, at_s=1.0, summary="x")
    ledger = WorkloadLedger(workload="AscendJob/mindie/big", workload_uid="u" * 36)
    for epoch in range(6):
        recovery = records.opened(epoch=epoch, intent=intent, rung="job", now_s=1.0)
        for attempt in range(10):
            pods = [_pod_of(epoch, attempt, rank) for rank in range(1500)]
            ledger = records.tried(
                ledger,
                recovery,
                pods=pods,
                present={pod.uid for pod in pods},
                not_before_s=0.0,
                deadline_s=None,
                exit_="again",
                now_s=2.0,
            )
            assert ledger.recovery is not None
            recovery = records.updated(ledger.recovery, replacements=records.replacements_of(pods))
            ledger = ledger.model_copy(update={"recovery": recovery})
        assert documents.encode(ledger, limit=documents.MAX_BYTES)
        ledger = records.closed(
            ledger,
            recovery,
            outcome=Outcome.RECOVERED,
            summary="well again",
            members=records.members_of(pods),
            now_s=3.0,
        )
        assert documents.encode(ledger, limit=documents.MAX_BYTES)
    assert [len(one.targets) for one in ledger.closed] == [0, 0, 0, 0, 256]


def _pod_of(epoch: int, attempt: int, rank: int) -> Pod:
    return Pod(
        ObjectKey("mindie", f"a-job-with-a-long-name-worker-{rank}"),
        PodUID(f"00000000-0000-4000-8000-{epoch:04}{attempt:04}{rank:04}"),
        "u" * 36,
        node=f"a-node-with-a-long-name-{rank}",
        rank=rank,
        devices=tuple(f"Ascend910-{card}" for card in range(8)),
    )


async def test_no_ledger_is_written_for_a_job_that_is_gone_while_its_watch_is_silent(
    cluster: Cluster,
) -> None:
    await new_job(cluster)
    process = await Process(cluster).watching()
    workload = process.workload()
    await cluster.request("DELETE", f"{JOBS}/p0")
    with pytest.raises(Conflict, match="is gone"):
        await process.ledgers.save_workload(with_epoch(workload, 1), workload=workload, version="")
    await new_job(cluster)
    with pytest.raises(Conflict, match="another one"):
        await process.ledgers.save_workload(with_epoch(workload, 1), workload=workload, version="")
    assert process.workload().uid != workload.uid
    assert len(process.store.workloads_of(SERVICE)) == 1
