"""Public faults in the store: by node and card, beside those of the device plugin."""

from __future__ import annotations

import pytest

from mindie_ha.cluster import documents
from mindie_ha.cluster.slim import SlimObject
from mindie_ha.cluster.sources import LABEL_LEDGER, Family, family_of
from mindie_ha.cluster.store import Store
from mindie_ha.model.ids import PUBLIC_SWEEP, ObjectKey, node_key, public_key
from mindie_ha.model.public_faults import PublicFault, PublicFaultLedger
from tests.cluster.facts import Told, config_map, device_info, job, make_store, node, pod

pytestmark = pytest.mark.looptime
NOW_S = 1_700_000_000.0
LABELS = {"mc-consumer-publicfault": "true"}


def public_fault(name: str, *devices: int, level: str = "SeparateNPU") -> PublicFault:
    return PublicFault(
        node=name,
        resource="CCAE",
        fault_id="fault-0001",
        fault_type="NPU",
        code="010001001",
        level=level,
        devices=devices,
        fault_time_s=1_739_866_717,
        added_at_s=NOW_S,
        seen_at_s=NOW_S,
    )


def ledger(*faults: PublicFault, version: int = 1, spoil: bool = False) -> SlimObject:
    data = documents.encode(PublicFaultLedger(faults=faults), limit=documents.MAX_PUBLIC_BYTES)
    labels = {LABEL_LEDGER: "public-faults"}
    key = documents.public_ledger_key("mindx-dl")
    data |= {"digest": "spoiled"} if spoil else {}
    return config_map(key.name, data, namespace=key.namespace, version=version, metadata={"labels": labels})


def acting(store: Store, name: str) -> set[str]:
    return {fault.device for fault in store.card_faults(name, now_s=NOW_S) if fault.acts}


@pytest.mark.parametrize(
    ("devices", "bad"),
    [
        pytest.param((0, 1), {"Ascend910-0", "Ascend910-1", "Ascend910-5"}, id="V68"),
        pytest.param((5, 0), {"Ascend910-0", "Ascend910-5"}, id="V69"),
    ],
)
async def test_147_cards_of_both_reports_are_bad(devices: tuple[int, ...], bad: set[str]) -> None:
    store = make_store()
    store.apply(device_info("node-1", "Ascend910-5"))
    store.apply(ledger(public_fault("node-1", *devices)))

    assert acting(store, "node-1") == bad
    assert len(store.card_faults("node-1", now_s=NOW_S)) == 1 + len(devices)
    assert store.node_view("node-1", now_s=NOW_S).publicly_bad == {f"Ascend910-{n}" for n in devices}


async def test_a_change_touches_the_services_on_its_nodes_and_nobody_else() -> None:
    told = Told()
    store = make_store(listener=told)
    for one in (
        job("p0"),
        pod("p0-0", "p0", node="node-1"),
        job("d0", labels={}),
        pod("d0-0", "d0", node="n2"),
    ):
        store.apply(one)

    touched = store.apply(ledger(public_fault("node-1", 0)))

    assert {str(scope) for scope in touched} == {"service:mindie/svc", "node:node-1", str(PUBLIC_SWEEP)}
    assert told.calls[-1][1]
    assert store.apply(ledger(public_fault("node-1", 0), version=2)) == frozenset()


async def test_the_name_of_a_card_is_that_which_pods_use() -> None:
    store = make_store()
    annotations = {"huawei.com/AscendReal": "npu-0"}
    store.apply(pod("p0-0", "p0", node="node-1", metadata={"annotations": annotations}))
    store.apply(ledger(public_fault("node-1", 0)))

    assert acting(store, "node-1") == {"npu-0"}


async def test_a_ledger_that_cannot_be_read_leaves_what_was_known() -> None:
    store = make_store()
    store.apply(ledger(public_fault("node-1", 0)))
    store.apply(ledger(version=2, spoil=True))

    assert acting(store, "node-1") == {"Ascend910-0"}
    assert any("mindie-ha-public-faults" in name for name in store.problems())


async def test_a_deleted_ledger_forgets_everything() -> None:
    store = make_store()
    store.apply(ledger(public_fault("node-1", 0)))

    touched = store.remove(ledger(public_fault("node-1", 0)))

    assert node_key("node-1") in touched
    assert acting(store, "node-1") == set()


async def test_a_config_map_is_news_once_per_content() -> None:
    store = make_store()
    key = ObjectKey("mindie", "told")

    def told(text: str, version: int) -> SlimObject:
        return config_map("told", {"PublicFault": text}, version=version, metadata={"labels": LABELS})

    assert store.apply(told("a", 1)) == {public_key(key)}
    assert store.apply(told("a", 2)) == frozenset()
    assert store.apply(told("b", 3)) == {public_key(key)}
    report = store.public_report(key)
    assert report is not None
    assert report.text == "b"
    assert store.remove(told("b", 3)) == {public_key(key)}
    assert store.public_report(key) is None


@pytest.mark.parametrize(
    ("labels", "family"),
    [
        pytest.param(LABELS, Family.PUBLIC, id="labelled"),
        pytest.param({"mc-consumer-publicfault": "false"}, Family.OTHER, id="other-value"),
        pytest.param({**LABELS, LABEL_LEDGER: "public-faults"}, Family.LEDGER, id="our-ledger"),
    ],
)
def test_the_label_says_what_a_config_map_is(labels: dict[str, str], family: Family) -> None:
    assert family_of(config_map("any", {}, metadata={"labels": labels})) is family


async def test_v60_a_node_is_found_by_its_serial_number() -> None:
    store = make_store()
    store.apply(node("node-1", metadata={"annotations": {"product-serial-number": "SN-1"}}))
    assert store.serials() == {"SN-1": "node-1"}

    store.apply(node("node-1", version=2, metadata={"annotations": {"product-serial-number": "SN-2"}}))
    assert store.serials() == {"SN-2": "node-1"}

    store.remove(node("node-1", version=2))
    assert store.serials() == {}
