"""The JSON document is an interface: its keys, and what they are filled from."""

from __future__ import annotations

from mindie_ha.demo.expectations import Expect
from mindie_ha.demo.judging import judge
from mindie_ha.demo.reports import report
from tests.demo.seen import CHANNELS, P0, a_good_run

EXPECT = Expect.model_validate({"recoveries": [{"workload": P0}]})


def test_the_document_has_the_promised_keys() -> None:
    seen = a_good_run()
    document = report("s", seen, judge(seen, EXPECT)).model_dump(mode="json")

    assert list(document) == ["scenario", "ok", "faults", "recoveries", "untouched", "ranktables", "actives"]
    assert document["faults"] == [
        {"node": "node-1", "device": "Ascend910-3", "code": "80E18005", "at_s": 40.0}
    ]
    assert document["recoveries"] == [
        {
            "workload": P0,
            "epoch": 1,
            "cause": "ChipUnhealthy",
            "rungs": ["job"],
            "outcome": "recovered",
            "phases": [
                {"rung": "job", "phase": "isolate", "start_s": 40.5, "end_s": 41.0, "exit": "visible"}
            ],
            "deleted": [{"pod": "mindie/p0-master-0", "uid": "p-old"}],
            "created": [
                {"pod": "mindie/p0-master-0", "uid": "p-new", "node": "node-2", "devices": ["Ascend910-0"]}
            ],
        }
    ]
    assert {each["uid"] for each in document["untouched"]} == {"d-old", "c-old"}


def test_tables_begin_with_the_one_in_force_at_the_fault() -> None:
    seen = a_good_run()
    tables = report("s", seen, judge(seen, EXPECT)).model_dump(mode="json")["ranktables"]

    assert [each["generation"] for each in tables] == [1, 2, 3]
    assert [each["servers"] for each in tables] == [2, 1, 2]
    assert tables[0]["groups"] == tables[2]["groups"] == {P0: "2", "mindie/d0": "3"}
    assert list(tables[0]) == ["generation", "digest", "at_s", "groups", "servers", "table", "delivered_to"]
    for each in tables:
        assert {(got["peer"], got["channel"]) for got in each["delivered_to"]} == set(CHANNELS)


def test_a_digest_that_comes_back_is_told_apart_by_time() -> None:
    seen = a_good_run()
    first = seen.tables[0]
    seen.tables.append(type(first)(60.0, 300, first.service, 4, first.digest, first.text))
    seen.deliveries.append(type(seen.deliveries[0])(60.5, "grpc", CHANNELS[1][0], first.digest, first.text))
    tables = report("s", seen, judge(seen, EXPECT)).ranktables

    assert [got.at_s for got in tables[0].delivered_to] == [20.2, 20.2, 20.2]
    assert [got.at_s for got in tables[3].delivered_to] == [60.5]
