"""The contract's worked examples, byte for byte, and its edge vectors with what we do better.

Source: rank table contract §3.1-3.4.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mindie_ha.model.ranktables import HcclTable, MsPod, RanktableError
from mindie_ha.ranktable.encode import digest, encode
from mindie_ha.ranktable.hccl import parse_hccl
from mindie_ha.ranktable.validate import validate
from tests.ranktable.examples import global_table, instance, judge, rejects, super_pod_instance

SECOND_COORDINATOR = MsPod(name="coordinator-1", host_ip="10.0.0.13", pod_ip="192.168.13.5")
FIRST_COORDINATOR = MsPod(name="coordinator-0", host_ip="10.0.0.11", pod_ip="192.168.10.5")

SINGLE = """{"status":"completed","server_list":[{"device":[
 {"device_id":"0","device_ip":"29.1.1.10","rank_id":"0"},
 {"device_id":"1","device_ip":"29.1.1.11","rank_id":"1"}],
 "server_id":"10.0.0.21","host_ip":"10.0.0.21","container_ip":"192.168.21.7"}],
 "server_count":"1","version":"1.0"}"""

PREFILL = """{"status":"completed","server_list":[
 {"device":[{"device_id":"0","device_ip":"29.1.1.10","rank_id":"0"},
            {"device_id":"1","device_ip":"29.1.1.11","rank_id":"1"}],
  "server_id":"10.0.0.21","host_ip":"10.0.0.21","container_ip":"192.168.21.7"},
 {"device":[{"device_id":"0","device_ip":"29.1.2.10","rank_id":"2"},
            {"device_id":"1","device_ip":"29.1.2.11","rank_id":"3"}],
  "server_id":"10.0.0.22","host_ip":"10.0.0.22","container_ip":"192.168.22.7"}],
 "server_count":"2","version":"1.0"}"""

DECODE = """{"status":"completed","server_list":[
 {"device":[{"device_id":"4","device_ip":"29.1.3.14","rank_id":"0"},
            {"device_id":"5","device_ip":"29.1.3.15","rank_id":"1"}],"hardware_type":"800I A2(64G)",
  "server_id":"10.0.0.23","host_ip":"10.0.0.23","container_ip":"192.168.23.7"}],
 "server_count":"1","version":"1.0"}"""

SUPER_POD = """{"status":"completed","server_list":[
 {"device":[{"device_id":"0","device_ip":"29.2.1.10","super_device_id":"37748736","rank_id":"0"},
            {"device_id":"1","device_ip":"29.2.1.11","super_device_id":"37814273","rank_id":"1"}],
  "server_id":"6f1c0b0e-1111","host_ip":"10.0.1.31","container_ip":"192.168.31.7"},
 {"device":[{"device_id":"0","device_ip":"29.2.2.10","super_device_id":"38797312","rank_id":"2"},
            {"device_id":"1","device_ip":"29.2.2.11","super_device_id":"38862849","rank_id":"3"}],
  "server_id":"6f1c0b0e-2222","host_ip":"10.0.1.32","container_ip":"192.168.32.7"}],
 "server_count":"2","version":"1.2",
 "super_pod_list":[{"super_pod_id":"3","server_list":[
  {"server_id":"6f1c0b0e-1111"},{"server_id":"6f1c0b0e-2222"}]}]}"""

# The outputs as the contract prints them; on the wire every break and blank between tokens is gone.
MS_GROUPS = """
 {"group_id":"0","server_count":"1","server_list":[{"server_id":"10.0.0.11","server_ip":"192.168.10.5"}]},
 {"group_id":"1","server_count":"1","server_list":[{"server_id":"10.0.0.12","server_ip":"192.168.11.6"}]},"""

SINGLE_OUTPUT = (
    '{"version":"1.0","status":"completed","server_group_list":['
    + MS_GROUPS
    + """
 {"group_id":"2","deploy_server":"0","server_count":"1","server_list":[
  {"device":[
    {"device_id":"0","device_ip":"29.1.1.10","device_logical_id":"0","rank_id":"0"},
    {"device_id":"1","device_ip":"29.1.1.11","device_logical_id":"1","rank_id":"1"}],
   "server_id":"10.0.0.21","server_ip":"192.168.21.7"}]}]}"""
)

PAIR_OUTPUT = """{"version":"1.0","status":"completed","server_group_list":[
 {"group_id":"0","server_count":"2","server_list":[
   {"server_id":"10.0.0.11","server_ip":"192.168.10.5"},{"server_id":"10.0.0.13","server_ip":"192.168.13.5"}]},
 {"group_id":"1","server_count":"1","server_list":[{"server_id":"10.0.0.12","server_ip":"192.168.11.6"}]},
 {"group_id":"2","deploy_server":"0","server_count":"2","server_list":[
   {"device":[{"device_id":"0","device_ip":"29.1.1.10","device_logical_id":"0","rank_id":"0"},
              {"device_id":"1","device_ip":"29.1.1.11","device_logical_id":"1","rank_id":"1"}],
    "server_id":"10.0.0.21","server_ip":"192.168.21.7"},
   {"device":[{"device_id":"0","device_ip":"29.1.2.10","device_logical_id":"0","rank_id":"2"},
              {"device_id":"1","device_ip":"29.1.2.11","device_logical_id":"1","rank_id":"3"}],
    "server_id":"10.0.0.22","server_ip":"192.168.22.7"}]},
 {"group_id":"3","deploy_server":"1","server_count":"1","server_list":[
   {"device":[{"device_id":"4","device_ip":"29.1.3.14","device_logical_id":"0","rank_id":"0"},
              {"device_id":"5","device_ip":"29.1.3.15","device_logical_id":"1","rank_id":"1"}],
    "server_id":"10.0.0.23","server_ip":"192.168.23.7","hardware_type":"800I_A2(64G)"}]}]}"""

SUPER_POD_OUTPUT = (
    '{"version":"1.2","status":"completed","server_group_list":['
    + MS_GROUPS
    + """
 {"group_id":"2","deploy_server":"1","server_count":"2","server_list":[
   {"device":[{"device_id":"0","device_ip":"29.2.1.10","super_device_id":"37748736","device_logical_id":"0",
               "rank_id":"0"},
              {"device_id":"1","device_ip":"29.2.1.11","super_device_id":"37814273","device_logical_id":"1",
               "rank_id":"1"}],
    "server_id":"10.0.1.31","server_ip":"192.168.31.7"},
   {"device":[{"device_id":"0","device_ip":"29.2.2.10","super_device_id":"38797312","device_logical_id":"0",
               "rank_id":"2"},
              {"device_id":"1","device_ip":"29.2.2.11","super_device_id":"38862849","device_logical_id":"1",
               "rank_id":"3"}],
    "server_id":"10.0.1.32","server_ip":"192.168.32.7"}],
  "super_pod_list":[{"super_pod_id":"3","server_list":[{"server_id":"10.0.1.31"},{"server_id":"10.0.1.32"}]}]}]}"""
)


def _on_the_wire(printed: str) -> bytes:
    """Blanks and breaks removed; the one blank inside a value is written `_` above."""
    return "".join(printed.split()).replace("800I_A2", "800I A2").encode()


@pytest.mark.parametrize(
    ("inputs", "coordinators", "expected"),
    [
        pytest.param({"a": (SINGLE, "0")}, 1, SINGLE_OUTPUT, id="3.1-single-a2"),
        pytest.param({"a": (PREFILL, "0"), "b": (DECODE, "1")}, 2, PAIR_OUTPUT, id="3.2-prefill-and-decode"),
        pytest.param({"a": (SUPER_POD, "1")}, 1, SUPER_POD_OUTPUT, id="3.3-super-pod-a3"),
    ],
)
def test_the_contracts_inputs_give_the_contracts_bytes(
    inputs: dict[str, tuple[str, str]], coordinators: int, expected: str
) -> None:
    table = global_table(
        {key: parse_hccl(text) for key, (text, _) in inputs.items()},
        deploy={key: value for key, (_, value) in inputs.items()},
        coordinators=(FIRST_COORDINATOR, SECOND_COORDINATOR)[:coordinators],
    )
    assert encode(table) == _on_the_wire(expected)
    assert validate(table) == ()


def test_digest_is_sha256_of_the_bytes() -> None:
    assert digest(b"{}") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


# Edge vectors 3.4 by their letter. A docstring says what the reference does where ours differs.


def test_edge_a_an_instance_that_is_left_out_keeps_its_id() -> None:
    """The reference renumbers the completed one to 2."""
    assert rejects(judge(parse_hccl('{"status":"initializing"}'))) == {"not-completed"}
    table = global_table({"b": instance()}, ids={"a": 2, "b": 3})
    assert [group.group_id for group in table.groups] == ["0", "1", "3"]


def test_edge_b_without_a_complete_instance_the_table_is_rejected() -> None:
    assert rejects(validate(global_table({}))) == {"no-servers"}


def test_edge_c_two_pods_on_one_node_name_the_host_once_in_the_super_pod() -> None:
    """The reference repeats the host; the consumer only needs the map host -> super pod."""
    first, second = super_pod_instance().servers
    cards = tuple(replace(card, device_id=str(position + 2)) for position, card in enumerate(second.devices))
    shared = replace(
        super_pod_instance(), servers=(first, replace(second, host_ip=first.host_ip, devices=cards))
    )
    assert rejects(judge(shared)) == set()
    group = global_table({"a": shared}).groups[2]
    assert [server.server_id for server in group.servers] == [first.host_ip, first.host_ip]
    assert [server.server_ip for server in group.servers] == [first.container_ip, second.container_ip]
    assert [server.devices[0].device_logical_id for server in group.servers] == ["0", "0"]
    assert group.super_pods[0].server_ids == (first.host_ip,)


def test_edge_d_completed_without_servers_is_not_published() -> None:
    """The reference publishes an empty group, which the consumer may take for a full scale-in."""
    empty = parse_hccl(
        '{"status":"completed","server_list":[],"server_count":"0","version":"1.2","super_pod_list":[]}'
    )
    assert rejects(judge(empty)) == {"no-servers"}
    assert rejects(validate(global_table({"a": empty, "b": instance()}))) == {"no-servers"}


def test_edge_e_version_2_is_refused_with_a_reason() -> None:
    """The reference publishes an empty group with an empty server_count."""
    with pytest.raises(RanktableError, match=r"2\.0 \(A5\) has ranks but no servers"):
        parse_hccl('{"status":"completed","version":"2.0","rank_list":[{"rank_id":0}],"rank_count":1}')


def test_edge_f_a_table_of_placeholders_is_not_published() -> None:
    """The reference publishes it with empty version, count, server_id and rank."""
    root = {"server_id": "serverId", "device": [{"device_id": "deviceId", "device_ip": "deviceIp"}]}
    with pytest.raises(RanktableError, match='"rank_id" is missing') as caught:
        parse_hccl(json.dumps({"status": "completed", "server_list": [root]}))
    assert caught.value.where == "$.server_list[0].device[0]"
    root["device"] = [{"device_id": "deviceId", "device_ip": "deviceIp", "rank_id": "0"}]
    table = parse_hccl(json.dumps({"status": "completed", "server_list": [root]}))
    assert rejects(judge(table, pods=())) == {"device-id", "device-ip", "pod-stale"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param('{"status":"completed","server_count":1}', "$.server_count", id="g-number-for-text"),
        pytest.param(None, "$", id="h-no-key"),
        pytest.param("", "$", id="h-empty"),
        pytest.param('{"status":"completed","server_list":[null]}', "$.server_list[0]", id="i-null-server"),
        pytest.param(
            '{"status":"completed","server_list":[{"server_id":"a","device":[null]}]}',
            "$.server_list[0].device[0]",
            id="i-null-device",
        ),
        pytest.param(
            '{"status":"completed","super_pod_list":[null]}', "$.super_pod_list[0]", id="i-null-super-pod"
        ),
    ],
)
def test_edges_g_h_i_are_one_named_error(text: str | None, where: str) -> None:
    """The reference fails the whole service (g, h) or crashes (i); ours loses this instance only."""
    with pytest.raises(RanktableError) as caught:
        parse_hccl(text)
    assert caught.value.where == where
    assert caught.value.advice


def test_mixed_versions_give_the_highest() -> None:
    assert global_table({"a": instance(1), "b": super_pod_instance(2)}).version == "1.2"


@pytest.mark.parametrize(
    ("table", "version"), [(instance(), "1.0"), (super_pod_instance(), "1.2")], ids=["a2", "a3"]
)
def test_a_missing_version_is_taken_from_the_devices(table: HcclTable, version: str) -> None:
    assert global_table({"a": replace(table, version="")}).version == version
