"""hccl.json is read strictly: one named error, or a table; never anything else."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.ranktables import HcclTable, RanktableError
from mindie_ha.ranktable.documents import MAX_NESTING
from mindie_ha.ranktable.hccl import MAX_HCCL_BYTES, parse_hccl, rings_config_name
from tests.ranktable.examples import hccl_text, instance, super_pod_instance

GOOD = json.loads(hccl_text(super_pod_instance()))
SERVER = "$.server_list[0]"
DEVICE = "$.server_list[0].device[0]"


def _completed(**changes: object) -> str:
    return json.dumps({**GOOD, **changes})


def _server(**changes: object) -> str:
    server = {**GOOD["server_list"][0], **changes}
    return _completed(server_list=[{key: value for key, value in server.items() if value != "absent"}])


def _device(**changes: object) -> str:
    device = {**GOOD["server_list"][0]["device"][0], **changes}
    return _server(device=[{key: value for key, value in device.items() if value != "absent"}])


@pytest.mark.parametrize("table", [instance(3, servers=2), super_pod_instance(4)], ids=["1.0", "1.2"])
def test_what_the_operator_writes_is_read_back(table: HcclTable) -> None:
    assert parse_hccl(hccl_text(table)) == table


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        pytest.param("{", "$", "not JSON", id="truncated"),
        pytest.param("   \n", "$", "missing or empty", id="blank"),
        pytest.param("[]", "$", "expected an object, got list", id="a-list"),
        pytest.param("null", "$", "expected an object, got null", id="null"),
        pytest.param("{}", "$", '"status" is missing', id="no-status"),
        pytest.param('{"status":null}', "$.status", "got null", id="null-status"),
        pytest.param('{"status":NaN}', "$", "not JSON", id="nan"),
        pytest.param('{"status":' + "9" * 5000 + "}", "$", "not JSON", id="endless-number"),
        pytest.param('{"status":"completed"} x', "$", "not JSON", id="trailing"),
        pytest.param('{"status":"completed","x":1,"x":2}', "$", "twice", id="key-twice"),
        pytest.param(_completed(version="2.0"), "$.version", "A5", id="version-2"),
        pytest.param('{"status":"completed","rank_list":[]}', "$.version", "A5", id="ranks-without-version"),
        pytest.param(_completed(version="1.1"), "$.version", "unknown version", id="version-unknown"),
        pytest.param(_completed(version=1.2), "$.version", "got float", id="version-number"),
        pytest.param(_completed(server_count=2), "$.server_count", "got int", id="count-number"),
        pytest.param(_completed(server_list=None), "$.server_list", "got null", id="null-list"),
        pytest.param(_completed(server_list={}), "$.server_list", "expected a list", id="list-is-object"),
        pytest.param(_completed(server_list=[7]), SERVER, "expected an object", id="server-is-number"),
        pytest.param(_server(server_id="absent"), SERVER, '"server_id" is missing', id="no-server-id"),
        pytest.param(_server(device="absent"), SERVER, '"device" is missing', id="no-devices"),
        pytest.param(_server(host_ip=None), f"{SERVER}.host_ip", "got null", id="null-host"),
        pytest.param(_server(container_ip=True), f"{SERVER}.container_ip", "got bool", id="bool-address"),
        pytest.param(_server(server_id="x" * 300), f"{SERVER}.server_id", "longer than", id="long-text"),
        pytest.param(_server(server_id="a\n"), f"{SERVER}.server_id", "unprintable", id="line-break"),
        pytest.param(_server(server_id="\ud800"), f"{SERVER}.server_id", "unprintable", id="surrogate"),
        pytest.param(_device(rank_id=0), f"{DEVICE}.rank_id", "got int", id="rank-number"),
        pytest.param(_device(device_id="absent"), DEVICE, '"device_id" is missing', id="no-device-id"),
        pytest.param(_device(super_device_id=None), f"{DEVICE}.super_device_id", "got null", id="null-super"),
        pytest.param(
            _completed(super_pod_list=[{"super_pod_id": "0", "server_list": [{"server_id": 1}]}]),
            "$.super_pod_list[0].server_list[0].server_id",
            "got int",
            id="super-pod-server-number",
        ),
        pytest.param(
            _completed(super_pod_list=[{"super_pod_id": "0"}]),
            "$.super_pod_list[0]",
            '"server_list" is missing',
            id="super-pod-without-servers",
        ),
    ],
)
def test_malformed_input_is_one_error_with_place_and_advice(text: str, where: str, what: str) -> None:
    with pytest.raises(RanktableError) as caught:
        parse_hccl(text)
    assert caught.value.where == where
    assert what in str(caught.value)
    assert caught.value.advice
    assert isinstance(caught.value, MindieHaError)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"server_list": [None], "version": 7},
        {"super_pod_list": [{}], "version": "2.0"},
        {"server_list": GOOD["server_list"]},
    ],
    ids=["nothing", "null-inside", "version-2", "stale-servers"],
)
@pytest.mark.parametrize("status", ["initializing", "Completed", "complete", ""])
def test_unless_completed_the_rest_is_ignored(status: str, content: dict[str, object]) -> None:
    table = parse_hccl(json.dumps({"status": status, **content}))
    assert not table.completed
    assert table.servers == ()


def test_unknown_keys_are_dropped_whatever_they_hold() -> None:
    assert parse_hccl(_device(device_port="1", backup=None)) == parse_hccl(_device())


def test_a_text_larger_than_a_config_map_is_refused() -> None:
    with pytest.raises(RanktableError, match="larger than"):
        parse_hccl('{"status":"initializing","x":"' + "y" * MAX_HCCL_BYTES + '"}')


@pytest.mark.parametrize("depth", [MAX_NESTING, 100_000], ids=["just-too-deep", "abyss"])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(RanktableError, match="nested deeper"):
        parse_hccl('{"status":"initializing","x":' + "[" * depth + "]" * depth + "}")


def test_the_deepest_honest_document_is_taken() -> None:
    depth = MAX_NESTING - 1  # the object itself is the first level
    table = parse_hccl('{"status":"initializing","x":' + "[" * depth + "]" * depth + "}")
    assert table.status == "initializing"


def test_errors_never_carry_foreign_text_raw_or_whole() -> None:
    with pytest.raises(RanktableError) as caught:
        parse_hccl(_completed(version="é" * 200))
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 200


def test_the_config_map_is_named_after_the_job() -> None:
    assert rings_config_name("mindie-server-p0") == "rings-config-mindie-server-p0"


_KEYS = st.sampled_from(
    [
        *("status", "version", "server_list", "server_count", "server_id", "host_ip", "container_ip"),
        *("device", "device_id", "device_ip", "rank_id", "super_pod_list", "super_pod_id", "x"),
    ]
)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
_VALUES = st.recursive(
    _SCALARS | st.just("completed"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)
_HONEST = hccl_text(super_pod_instance())


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_KEYS, _VALUES, max_size=6))
def test_any_json_is_a_table_or_a_ranktable_error(value: dict[str, object]) -> None:
    _parse_or_refuse(json.dumps(value))
    _parse_or_refuse(json.dumps({**value, "status": "completed"}))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_any_text_is_a_table_or_a_ranktable_error(text: str) -> None:
    _parse_or_refuse(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, len(_HONEST)), st.text(max_size=3))
def test_a_damaged_table_is_a_table_or_a_ranktable_error(cut: int, patch: str) -> None:
    _parse_or_refuse(_HONEST[:cut])
    _parse_or_refuse(_HONEST[:cut] + patch + _HONEST[cut + 1 :])


def _parse_or_refuse(text: str) -> None:
    with contextlib.suppress(RanktableError):
        parse_hccl(text)
