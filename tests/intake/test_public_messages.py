"""Messages about public faults: what is refused, what is left out, what is taken.

Ids are the vectors of the fault input contract §7.4 and the cases of real failures.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.intake import bodies, public_codes, public_messages
from mindie_ha.intake.public_messages import Influence
from mindie_ha.model.errors import InputError
from tests.intake.fuzzing import FUZZED
from tests.intake.public_examples import ABSENT, CODES, SERIALS, T0_MS, body, fault, message

FRAMES = [
    pytest.param({"id": ABSENT}, "id", id="V52-missing"),
    pytest.param({"id": "err id"}, "id", id="V52-blank"),
    pytest.param({"id": "a" * 129}, "id", id="id-too-long"),
    pytest.param({"id": "message-0001\n"}, "id", id="id-line-break"),
    pytest.param({"timestamp": ABSENT}, "timestamp", id="V53-missing"),
    pytest.param({"timestamp": 123}, "timestamp", id="V53-123"),
    pytest.param({"timestamp": 1_234_567_890_000}, "timestamp", id="V53-2009"),
    pytest.param({"timestamp": str(T0_MS)}, "timestamp", id="timestamp-text"),
    pytest.param({"timestamp": T0_MS // 1000}, "timestamp", id="timestamp-seconds"),
    pytest.param({"version": ABSENT}, "version", id="V54-missing"),
    pytest.param({"version": "2.0"}, "version", id="V54-other"),
    pytest.param({"resource": ABSENT}, "resource", id="V55-missing"),
    pytest.param({"resource": "err resource"}, "resource", id="V55-unknown"),
    pytest.param({"faults": ABSENT}, "faults", id="V56-missing"),
    pytest.param({"faults": []}, "faults", id="V56-empty"),
    pytest.param({"faults": [fault()] * 101}, "faults", id="V56-101"),
]
FAULTS = [
    pytest.param({"faultId": "short"}, "faultId", id="fault-id-short"),
    pytest.param({"faultType": "err id"}, "faultType", id="V57-type"),
    pytest.param({"faultCode": "err code"}, "faultCode", id="V57-code"),
    pytest.param({"faultCode": "100000001"}, "faultCode", id="V67-code-of-the-documentation"),
    pytest.param({"assertion": "err assertion"}, "assertion", id="V57-assertion"),
    pytest.param({"faultTime": 123}, "faultTime", id="V57-time"),
    pytest.param({"faultLocation": {f"k{n}": "v" for n in range(12)}}, "faultLocation", id="V57-location"),
    pytest.param({"faultLocation": {"k" * 17: "v"}}, "faultLocation", id="location-key-17-bytes"),
    pytest.param({"faultLocation": {"k": "ä" * 65}}, "faultLocation", id="location-value-130-bytes"),
    pytest.param({"influence": None}, "influence", id="V57-influence"),
    pytest.param({"influence": [{"deviceIds": [0]}]}, "influence[0]", id="V58-no-node"),
    pytest.param(
        {"influence": [{"nodeSN": "SN-none", "deviceIds": [0]}]}, "influence[0]", id="V58-unknown-serial"
    ),
    pytest.param(
        {"influence": [{"nodeName": "err name~~", "deviceIds": [0]}]}, "influence[0]", id="V58-bad-name"
    ),
    pytest.param(
        {"influence": [{"nodeName": "node-1", "deviceIds": [0]}, {"nodeName": "n"}]},
        "influence[1]",
        id="one-bad-influence",
    ),
    pytest.param({"influence": [{"nodeName": "node-1"}]}, "deviceIds", id="V59-missing"),
    pytest.param({"influence": [{"nodeName": "node-1", "deviceIds": [66]}]}, "deviceIds", id="V59-66"),
    pytest.param(
        {"influence": [{"nodeName": "node-1", "deviceIds": [0, 1, 1]}]}, "deviceIds", id="V59-twice"
    ),
    pytest.param({"influence": [{"nodeName": "node-1", "deviceIds": [True]}]}, "deviceIds", id="device-true"),
    pytest.param({"description": "tab\there"}, "description", id="description-tab"),
    pytest.param({"description": "x" * 513}, "description", id="description-513"),
]


@pytest.mark.parametrize(("changes", "where"), FRAMES)
def test_a_bad_frame_refuses_the_message(changes: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as refused:
        message(**changes)

    assert refused.value.where.endswith(where)


@pytest.mark.parametrize(("changes", "where"), FAULTS)
def test_a_bad_fault_is_left_out_and_alone_refuses_the_message(changes: dict[str, Any], where: str) -> None:
    bad = {**fault(faultId="fault-0002"), **changes}
    read = message(fault(), bad)

    assert [one.fault_id for one in read.faults] == ["fault-0001"]
    assert where in read.left_out[0].where
    with pytest.raises(InputError, match="no valid fault"):
        message(bad)


def test_041_a_batch_with_one_bad_entry_keeps_the_others() -> None:
    read = message(
        fault(faultId="fault-000a"),
        fault(faultId="fault-000b", assertion="perhaps"),
        fault(faultId="fault-000c"),
    )

    assert [one.fault_id for one in read.faults] == ["fault-000a", "fault-000c"]
    (error,) = read.left_out
    assert error.where == "test faults[1].assertion"
    assert "perhaps" in error.what


@pytest.mark.parametrize(
    ("influence", "node"),
    [
        pytest.param({"nodeSN": "SN-0001"}, "node-by-serial", id="V60"),
        pytest.param({"nodeName": "", "nodeSN": "SN-0001"}, "node-by-serial", id="empty-name"),
        pytest.param({"nodeName": "node-1", "nodeSN": "SN-none"}, "node-1", id="name-first"),
    ],
)
def test_a_node_is_named_or_known_by_its_serial(influence: dict[str, Any], node: str) -> None:
    read = message(fault(influence=[{**influence, "deviceIds": [3]}]))

    assert read.faults[0].influences == (Influence(node, (3,)),)


@pytest.mark.parametrize("name", ["faultLocation", "description"])
def test_v61_optional_fields_may_be_missing(name: str) -> None:
    assert message(fault(**{name: ABSENT})).left_out == ()


def test_milliseconds_become_seconds_and_the_level_is_that_of_the_table() -> None:
    (one,) = message(fault(faultCode="010001001")).faults

    assert one.time_s == 1_739_866_717
    assert one.level == "SubHealthFault"


def test_the_default_table_knows_every_documented_code() -> None:
    counts = {level: list(CODES.levels.values()).count(level) for level in set(CODES.levels.values())}

    assert counts == {"NotHandleFault": 5, "SubHealthFault": 10, "SeparateNPU": 13, "PreSeparateNPU": 2}
    assert CODES.resources == {"CCAE", "fd-online", "pingmesh", "Netmind", "dpcStorage", "dtfsStorage"}


def test_a_code_in_two_lists_has_the_gravest_level() -> None:
    table = """{"publicFaultCode": {"NotHandleFaultCodes": ["123456789"], "SeparateNPUCodes": ["123456789"]},
               "publicFaultResource": ["mine"]}"""

    assert public_codes.parse(table, where="mine").levels == {"123456789": "SeparateNPU"}


@pytest.mark.parametrize(
    "table",
    [
        pytest.param("", id="empty"),
        pytest.param("{}", id="no-codes"),
        pytest.param(
            '{"publicFaultCode": {"SeparateNPUCodes": [1]}, "publicFaultResource": ["a"]}', id="number"
        ),
        pytest.param(
            '{"publicFaultCode": {"SeparateNPUCodes": ["12"]}, "publicFaultResource": ["a"]}', id="short"
        ),
        pytest.param('{"publicFaultCode": {"SeparateNPUCodes": ["123456789"]}}', id="no-resource"),
    ],
)
def test_a_wrong_table_is_refused_as_a_whole(table: str) -> None:
    with pytest.raises(InputError, match="mine"):
        public_codes.parse(table, where="mine")


def test_a_comment_inside_the_json_is_an_error_that_says_where() -> None:
    text = (
        '{"id": "11937763019444715778",\n "timestamp": 1741159983000,  # when it was sent\n "version": "1.0"}'
    )

    with pytest.raises(InputError, match="line 2"):
        bodies.parse_object(text, where="ConfigMap mindx-dl/mindx-dl-publicinfo")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@FUZZED
@given(field=st.sampled_from([*body(), *fault(), "nodeName", "nodeSN", "deviceIds"]), value=JSON)
def test_no_value_anywhere_escapes_the_declared_error(field: str, value: object) -> None:
    entry = {"nodeName": "node-1", "deviceIds": [0]}
    one = fault(
        influence=[{**entry, field: value}] if field in {"nodeName", "nodeSN", "deviceIds"} else [entry]
    )
    if field in fault():
        one[field] = value
    sent = body(one, **({field: value} if field in body() else {}))
    try:
        read = public_messages.read(sent, codes=CODES, serials=SERIALS, where="fuzz")
    except InputError:
        return
    assert all(0 <= number <= 31 for one in read.faults for each in one.influences for number in each.devices)
