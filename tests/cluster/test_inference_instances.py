"""StatefulSets and Deployments of the infer-operator: what is read, whose pods are whose, in any order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from mindie_ha.cluster import documents, workload_kinds
from mindie_ha.cluster.slim import SlimConfigMap, SlimObject, SlimPod, slim
from mindie_ha.cluster.slim_sets import SlimDeployment, SlimReplicaSet, SlimStatefulSet
from mindie_ha.cluster.sources import SOURCES
from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import LoopClock
from mindie_ha.model.ids import ObjectKey, PodUID, job_key
from mindie_ha.model.ledgers import Member, WorkloadLedger
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.workloads import Maker, Role
from tests.cluster.facts import make_store

pytestmark = pytest.mark.looptime
SCOPE = job_key(ObjectKey("mindie", "chat-0"))
NOW_S = 1_700_000_000.0
PREFIX = "infer.huawei.com/"


def labels(role: str) -> dict[str, str]:
    return {
        f"{PREFIX}ascend-infer-operator": "true",
        f"{PREFIX}inferservice-name": "chat-0",
        f"{PREFIX}instanceset-name": role,
        f"{PREFIX}instanceset-index": "0",
    }


def owner(kind: str, name: str, uid: str, api: str = "apps/v1") -> list[dict[str, Any]]:
    return [{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}]


def pod_set(
    model: type[SlimObject], name: str, *, role: str = "decode", uid: str = "", **meta: Any
) -> SlimObject:
    template = {
        "metadata": {"labels": {"fault-scheduling": "external-force", "fault-retry-times": "3"}},
        "spec": {"containers": [{"name": "engine"}]},
    }
    metadata = {
        "name": name,
        "namespace": "mindie",
        "uid": uid or f"uid-{name}",
        "resourceVersion": "1",
        "labels": labels(role),
        "ownerReferences": owner("InstanceSet", f"chat-0-{role}", f"set-{role}", "mindcluster.huawei.com/v1"),
        **meta,
    }
    raw = {"metadata": metadata, "spec": {"replicas": 2, "template": template}}
    return slim(raw, model, kind=model.__name__)


def pod(name: str, owners: list[dict[str, Any]]) -> SlimObject:
    meta = {"name": name, "namespace": "mindie", "uid": f"uid-{name}", "ownerReferences": owners}
    raw = {"metadata": {**meta, "resourceVersion": "1"}, "status": {"phase": "Running"}}
    return slim(raw, SlimPod, kind="Pod")


def replica_set() -> SlimObject:
    meta = {"name": "d-abc", "namespace": "mindie", "uid": "uid-rs", "resourceVersion": "1"}
    raw = {"metadata": {**meta, "ownerReferences": owner("Deployment", "d", "uid-d")}}
    return slim(raw, SlimReplicaSet, kind="ReplicaSet")


def test_a_workload_from_a_stateful_set_has_the_labels_of_its_pods_and_no_rank_table() -> None:
    found = workload_kinds.workload(pod_set(SlimStatefulSet, "chat-0-decode-0"))  # type: ignore[arg-type]
    assert (found.kind, found.role, found.pd_role) == ("StatefulSet", Role.SERVER, PdRole.DECODE)
    assert (found.replicas, found.restart_policy, found.job_id) == (2, "Always", "")
    assert found.labels["fault-scheduling"] == "external-force"
    assert found.labels["fault-retry-times"] == "3"
    assert found.scope == SCOPE
    assert found.maker == Maker("mindcluster.huawei.com/v1", "InstanceSet", "chat-0-decode", "set-decode")
    assert found.ranks_together


@pytest.mark.parametrize("role", ["controller", "coordinator"])
def test_pods_of_a_controller_or_coordinator_stand_each_for_itself(role: str) -> None:
    item = pod_set(SlimDeployment, "d", role=role)
    assert not workload_kinds.workload(item).ranks_together  # type: ignore[arg-type]


def test_only_what_the_operator_made_is_watched_and_none_of_it_is_needed() -> None:
    watched = {source.name: source for source in SOURCES}
    for name in ("statefulsets", "deployments", "replicasets"):
        assert watched[name].selection.labels == f"{PREFIX}ascend-infer-operator=true"
        assert watched[name].optional


ITEMS = (
    pod_set(SlimDeployment, "d"),
    replica_set(),
    pod("d-abc-x", owner("ReplicaSet", "d-abc", "uid-rs")),
)


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_pods_of_a_deployment_are_found_in_whatever_order_the_three_come(
    order: tuple[int, ...],
) -> None:
    touched: set[Any] = set()
    store = make_store(listener=lambda scopes, _: touched.update(scopes))
    for index in order:
        touched.clear()
        store.apply(ITEMS[index])
    assert SCOPE in touched, "the last one to come makes the planner look"
    assert [each.key.name for each in store.pods_of("uid-d")] == ["d-abc-x"]
    found = store.workload_of_uid("uid-rs")
    assert found is not None
    assert found.key.name == "d"


async def test_without_the_replica_set_a_pod_belongs_to_nobody() -> None:
    store = make_store()
    for item in ITEMS:
        store.apply(item)
    store.remove(ITEMS[1])
    assert store.pods_of("uid-d") == ()


async def test_instances_of_one_service_are_looked_at_together_and_have_no_table() -> None:
    store = make_store()
    store.apply(pod_set(SlimStatefulSet, "chat-0-decode-0"))
    store.apply(pod_set(SlimStatefulSet, "chat-0-prefill-0", role="prefill"))
    view = store.view(SCOPE, now_s=NOW_S)
    assert view is not None
    assert [each.workload.key.name for each in view.workloads] == ["chat-0-decode-0", "chat-0-prefill-0"]
    assert view.table is None


async def test_the_memory_of_a_rebuilt_instance_passes_on_while_its_instance_set_lives() -> None:
    clock = LoopClock(wall_origin_s=NOW_S)
    store = make_store(clock=clock)
    first = pod_set(SlimStatefulSet, "chat-0-decode-0", uid="one")
    store.apply(first)
    workload = workload_kinds.workload(first)  # type: ignore[arg-type]
    members = (Member(name="chat-0-decode-0-0", uid=PodUID("p")),)
    ledger = WorkloadLedger(
        workload="StatefulSet/mindie/chat-0-decode-0", workload_uid="one", members=members
    )
    body = documents.manifest(
        documents.workload_ledger_key(workload),
        ledger,
        label="workload",
        annotations={},
        owners=[{"apiVersion": "x/v1", "kind": "InstanceSet", "name": "s", "uid": "set-decode"}],
        limit=documents.MAX_BYTES,
    )
    body["metadata"]["resourceVersion"] = "7"
    store.apply(slim(body, SlimConfigMap, kind="ConfigMap"))
    store.remove(first)
    store.apply(pod_set(SlimStatefulSet, "chat-0-decode-0", uid="two"))
    found = seen(store, clock)
    assert (found.workload_uid, found.members) == ("two", members)
    await clock.sleep(120)
    store.apply(pod_set(SlimStatefulSet, "chat-0-decode-0", uid="two", resourceVersion="2"))
    assert seen(store, clock).members == (), "what came back later misses nobody"


def seen(store: Store, clock: LoopClock) -> WorkloadLedger:
    view = store.view(SCOPE, now_s=clock.wall())
    assert view is not None
    return view.workloads[0].ledger
