"""Rank tables of public projects: accept, warn or reject, and why.

The verdicts follow the consumer's loader (motor contract §1.4) and the assertions of its own tests (§6.1).
Global tables go through `read_global`, hccl.json goes through `parse_hccl` and `check_instance` with the pods
that it describes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mindie_ha.model.ranktables import Severity, verdict
from mindie_ha.ranktable.encode import encode
from mindie_ha.ranktable.hccl import parse_hccl
from mindie_ha.ranktable.reading import read_global
from mindie_ha.ranktable.validate import validate
from tests.ranktable.examples import codes, global_table, judge

DATA = Path(__file__).parent.parent / "data" / "ranktables"

GLOBAL_TABLES = [
    # Loaded by the consumer in single-node mode ("heterogeneous pair: ok"): two instances in group 2.
    pytest.param(
        "motor_global_rank_table.json",
        False,
        True,
        Severity.WARN,
        {"server-count", "server-id-repeated", "card-repeated", "address-repeated"},
        id="plain-single-node",
    ),
    # In multi-node mode the two servers would be one instance, whose master is ambiguous.
    pytest.param(
        "motor_global_rank_table.json",
        True,
        False,
        Severity.WARN,
        {"server-count", "server-id-repeated", "card-repeated", "address-repeated", "rank", "deploy-none"},
        id="plain-multi-node",
    ),
    # "cross-node table: 2 instances x 2 servers".
    pytest.param(
        "motor_global_rank_table_cross_node.json",
        True,
        False,
        Severity.WARN,
        {"deploy-none", "rank", "device-ip-repeated"},
        id="cross-node",
    ),
    # "4 groups in single mode: fail".
    pytest.param(
        "motor_global_rank_table_cross_node.json",
        False,
        False,
        Severity.REJECT,
        {"group-count", "device-ip-repeated"},
        id="cross-node-in-single-node-mode",
    ),
    pytest.param(
        "motor_global_rank_table_cross_node_a2.json",
        True,
        False,
        Severity.WARN,
        {"rank", "device-ip-repeated", "super-pod"},
        id="cross-node-a2",
    ),
    # "unknown hardware type: fail" where the heterogeneous mode asks for one.
    pytest.param(
        "motor_global_rank_table_cross_node_a2.json",
        True,
        True,
        Severity.REJECT,
        {"rank", "device-ip-repeated", "super-pod", "hardware-type"},
        id="cross-node-a2-heterogeneous",
    ),
    # "list missing: fail"; it is the placeholder from before the boot.
    pytest.param(
        "motor_global_ranktable_initializing.json",
        True,
        False,
        Severity.REJECT,
        {"not-completed", "group-count", "group-missing", "no-servers"},
        id="initializing",
    ),
]

INSTANCE_TABLES = [
    pytest.param("hccl_a3_mindie_ep_16npu_completed.json", 16, "1.2", id="a3-16-cards"),
    pytest.param("pymotor_hccl_a2.json", 3, "1.0", id="a2-3-cards"),
]


@pytest.mark.parametrize(("name", "multi_node", "heterogeneous", "expected", "reasons"), GLOBAL_TABLES)
def test_global_tables(
    name: str, multi_node: bool, heterogeneous: bool, expected: Severity, reasons: set[str]
) -> None:
    reading = read_global((DATA / name).read_text(), multi_node=multi_node, heterogeneous=heterogeneous)
    assert verdict(reading.findings) is expected
    assert codes(reading.findings) == reasons
    assert all(finding.where and finding.message for finding in reading.findings)


@pytest.mark.parametrize(("name", "cards", "version"), INSTANCE_TABLES)
def test_instance_tables_are_accepted_and_make_a_table(name: str, cards: int, version: str) -> None:
    """Neither has `host_ip`; their `server_id` is the host's address and stands in for it."""
    table = parse_hccl((DATA / name).read_text())
    assert sum(len(server.devices) for server in table.servers) == cards
    assert verdict(judge(table)) is Severity.ACCEPT
    whole = global_table({"a": table})
    assert whole.version == version
    assert validate(whole) == ()


def test_every_file_is_judged() -> None:
    judged = {case.values[0] for case in (*GLOBAL_TABLES, *INSTANCE_TABLES)}
    assert judged == {path.name for path in DATA.glob("*.json")}


def test_what_was_read_is_written_back_with_nothing_lost() -> None:
    text = (DATA / "motor_global_rank_table_cross_node_a2.json").read_text()
    table = read_global(text).table
    assert table is not None
    assert read_global(encode(table).decode()).table == table
