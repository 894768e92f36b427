"""Board reports of NodeD: checksum vectors, content vectors, hostile bodies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from mindie_ha.intake.code_tables import NodeCodes, parse_node
from mindie_ha.intake.node_info import BoardDevice, check_code, healthy, judge, parse
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Level

SAMPLES = Path(__file__).parent.parent / "data" / "faults"
ONE_OF_EACH = json.dumps(
    {
        "FaultTypeCode": {
            "NotHandleFaultCodes": ["00000001"],
            "PreSeparateFaultCodes": ["00000002"],
            "SeparateFaultCodes": ["00000003"],
        }
    }
)


def data(
    *devices: BoardDevice, status: str = "UnHealthy", code: str | None = None, updated: str | None = None
) -> dict[str, str]:
    listed = [
        {"DeviceType": one.kind, "DeviceId": one.id, "FaultCode": one.codes, "FaultLevel": one.level}
        for one in devices
    ]
    body = {
        "NodeInfo": {"FaultDevList": listed, "NodeStatus": status},
        "CheckCode": check_code(devices, status) if code is None else code,
    }
    return {"NodeInfo": json.dumps(body)} | ({} if updated is None else {"updateTime": updated})


def device(level: str, *codes: str, kind: str = "CPU", number: int = 1) -> BoardDevice:
    return BoardDevice(kind, number, codes, level)


@pytest.mark.parametrize(
    ("devices", "status", "expected"),
    [
        pytest.param(None, "", "4c97cddcb947bd707778eb50b0986a69768afc2ef3e4f351db0b92e9d07d1fed", id="V05"),
        pytest.param(
            [], "Healthy", "de38ed93b4fcbb7e7314695274a68ccf4aaece2c8fa2df361942d25731584886", id="V10"
        ),
        pytest.param(
            [device("SeparateFault", "00000011")],
            "UnHealthy",
            "215f43b3551aaa62df1f78f345a0847f6b06f8b5a55e51efa30180a794ee6f0b",
            id="V07-recomputed",
        ),
    ],
)
def test_check_codes_of_the_contract(devices: list[BoardDevice] | None, status: str, expected: str) -> None:
    assert check_code(devices, status) == expected


def test_the_documented_dump_does_not_verify() -> None:
    """V07, 029."""
    sample = yaml.safe_load((SAMPLES / "cm_nodeinfo_cpu_separate_checkcode_mismatch.yaml").read_text())
    with pytest.raises(InputError, match="CheckCode does not fit"):
        parse("node133", sample["data"], now_s=1.0)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({}, id="no-key"),
        pytest.param(data(code=""), id="empty-code"),
        pytest.param({"NodeInfo": "{"}, id="no-json"),
        pytest.param({"NodeInfo": '{"NodeInfo": []}'}, id="no-object"),
        pytest.param({"NodeInfo": '{"NodeInfo": {"FaultDevList": 3}}'}, id="no-array"),
        pytest.param(
            {"NodeInfo": '{"NodeInfo": {"FaultDevList": [{"FaultCode": [1]}]}}'}, id="code-a-number"
        ),
        pytest.param({"NodeInfo": '{"NodeInfo": {"FaultDevList": [{"DeviceId": "x"}]}}'}, id="id-a-string"),
        pytest.param({"NodeInfo": '{"NodeInfo": {"NodeStatus": 1}}'}, id="status-a-number"),
    ],
)
def test_a_refused_report_says_where(content: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        parse("n0", content, now_s=1.0)
    assert "mindx-dl-nodeinfo-n0" in caught.value.where


@pytest.mark.parametrize(
    ("devices", "status", "acts", "shown"),
    [
        pytest.param(
            [device("NotHandleFault", "0300000D", kind="PSU", number=4)],
            "Healthy",
            False,
            "NotHandleFault",
            id="V48",
        ),
        pytest.param([device("SeparateFault", "2C000031")], "UnHealthy", True, "SeparateNPU", id="separate"),
        pytest.param([device("Separate", "2C000031")], "UnHealthy", True, "SeparateNPU", id="047-spelling"),
        pytest.param(
            [device("PreSeparateFault", "0000001D")],
            "PreSeparate",
            False,
            "PreSeparateNPU",
            id="V51-pre-separate",
        ),
        pytest.param([device("Odd", "0000001D")], "PreSeparate", False, "Unknown", id="047-unknown"),
        pytest.param([device("Odd", "0000001D")], "UnHealthy", True, "Unknown", id="unknown-but-listed"),
        pytest.param([], "UnHealthy", True, "", id="unhealthy-without-device"),
        pytest.param(
            [device("SeparateFault", "0000001D")], "Healthy", True, "SeparateNPU", id="never-by-summary"
        ),
        pytest.param([device("", "2C000031")], "Healthy", True, "SeparateNPU", id="level-by-the-table"),
    ],
)
def test_what_a_board_fault_means(devices: list[BoardDevice], status: str, acts: bool, shown: str) -> None:
    (fault,) = parse("n0", data(*devices, status=status), now_s=1.0).faults
    assert (fault.acts, fault.level) == (acts, shown)


def test_each_code_of_a_device_has_its_own_level() -> None:
    (fault,) = parse("n0", data(device("SeparateFault", "2C000031", "0300000D")), now_s=1.0).faults
    assert [(fact.code, fact.level) for fact in fault.details] == [
        ("2C000031", Level.SEPARATE),
        ("0300000D", Level.NOT_HANDLE),
    ]


def test_a_node_without_config_map_is_healthy() -> None:
    """V49."""
    assert healthy("n0").faults == ()


@pytest.mark.parametrize(
    ("text", "updated_at_s"),
    [
        pytest.param(None, 0.0, id="V50-missing"),
        pytest.param("yesterday", 0.0, id="V50-no-time"),
        pytest.param("2025-01-01T00:00:00", 0.0, id="V50-no-zone"),
        pytest.param("2025-01-01T08:00:00+08:00", 1735689600.0, id="with-zone"),
        pytest.param("2025-01-01T00:00:00Z", 1735689600.0, id="zulu"),
    ],
)
def test_a_missing_time_is_unknown_and_the_record_valid(text: str | None, updated_at_s: float) -> None:
    assert parse("n0", data(status="Healthy", updated=text), now_s=1.0).updated_at_s == updated_at_s


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param(["00000001", "00000002"], (("00000001", "00000002"), Level.PRE_SEPARATE), id="V45"),
        pytest.param(["00000001", "00000000"], (("00000001",), Level.NOT_HANDLE), id="V46"),
    ],
)
def test_raw_codes_are_judged_by_the_table(codes: list[str], expected: tuple[tuple[str, ...], Level]) -> None:
    table: NodeCodes = parse_node(ONE_OF_EACH, where="t")
    assert judge(codes, table) == expected
