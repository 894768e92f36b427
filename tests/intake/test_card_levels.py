"""What the codes of a card mean: naming of products, levels per code, other keys of the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from mindie_ha.intake import device_info, device_lists, manual_separations
from mindie_ha.intake.freshness import unreported
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause, Fault
from mindie_ha.model.levels import Level
from mindie_ha.model.nodes import DeviceReport

SAMPLES = Path(__file__).parent.parent / "data" / "faults"
RESOURCE = "huawei.com/Ascend910"


def info(devices: dict[str, str], *, now_s: float = 1.0) -> device_info.DeviceInfo:
    body = {
        "DeviceInfo": {"DeviceList": devices, "UpdateTime": 7},
        "CheckCode": device_info.check_code(devices, 7),
    }
    return device_info.parse("n0", {device_info.KEY: json.dumps(body)}, now_s=now_s)


def entry(
    levels: dict[str, str | None],
    *,
    kind: str = "CardUnhealthy",
    name: str = "Ascend910-1",
    summary: str = "",
    key: str = "fault_time_and_level_map",
) -> dict[str, object]:
    told = {code: {"fault_time": 5, "fault_level": level} for code, level in levels.items() if level}
    return {
        "fault_type": kind,
        "npu_name": name,
        "fault_level": summary,
        "fault_code": ",".join(levels),
        key: told,
    }


def card(*entries: dict[str, object], unhealthy: str = "Ascend910-1") -> Fault:
    devices = {f"{RESOURCE}-Unhealthy": unhealthy, f"{RESOURCE}-Fault": json.dumps(entries)}
    (fault,) = info(devices).faults
    return fault


@pytest.mark.parametrize(
    ("key", "name", "card_name"),
    [
        pytest.param("huawei.com/Ascend910", "Ascend910-3", "Ascend910-3", id="910-A2-A3"),
        pytest.param("huawei.com/npu", "npu-12", "npu-12", id="A5"),
        pytest.param("huawei.com/Ascend310P", "Ascend310P-0", "Ascend310P-0", id="310P"),
        pytest.param("huawei.com/Ascend310P-VPro", "Ascend310P-2", "Ascend310P-2", id="310P-mixed"),
        pytest.param("huawei.com/Ascend310", "Ascend310-1", "Ascend310-1", id="310"),
        pytest.param("huawei.com/Ascend910", "Ascend910-2c-100-0", "Ascend910-0", id="vnpu"),
        pytest.param("huawei.com/Ascend310P", "Ascend310P-4c.3cpu-101-2", "Ascend310P-2", id="vnpu-template"),
        pytest.param("huawei.com/Ascend910", "Ascend910-5-1", "Ascend910-5", id="share-mode"),
        pytest.param("ai.example/board", "card_x-3", "card_x-3", id="renamed"),
    ],
)
def test_names_of_all_products(key: str, name: str, card_name: str) -> None:
    found = info({f"{key}-Unhealthy": name})
    assert found.report.unhealthy == {card_name}
    assert [(fault.device, fault.acts) for fault in found.faults] == [(card_name, True)]


def test_a_virtual_name_in_the_fault_list_explains_its_physical_card() -> None:
    fault = card(entry({"80E18005": "RestartNPU"}, name="Ascend910-2c-100-1"))
    assert (fault.device, fault.codes, fault.level) == ("Ascend910-1", ("80E18005",), "RestartNPU")


def test_a_310_node_lists_its_faults_under_the_name_of_the_310p() -> None:
    listed = [entry({"80E18005": "RestartNPU"}, name="Ascend310-1")]
    devices = {
        "huawei.com/Ascend310-Unhealthy": "Ascend310-1",
        "huawei.com/Ascend310P-Fault": json.dumps(listed),
    }
    (fault,) = info(devices).faults
    assert (fault.device, fault.codes) == ("Ascend310-1", ("80E18005",))


@pytest.mark.parametrize(
    ("level", "listed", "acts"),
    [
        pytest.param("RestartRequest", True, True, id="RestartRequest"),
        pytest.param("RestartBusiness", True, True, id="RestartBusiness"),
        pytest.param("FreeRestartNPU", True, True, id="FreeRestartNPU"),
        pytest.param("FreeRestartNPU", False, False, id="FreeRestartNPU-in-use"),
        pytest.param("RestartNPU", True, True, id="RestartNPU"),
        pytest.param("SeparateNPU", True, True, id="SeparateNPU"),
        pytest.param("ManuallySeparateNPU", True, True, id="ManuallySeparateNPU"),
        pytest.param("PreSeparateNPU", False, False, id="V81-PreSeparateNPU-used"),
        pytest.param("PreSeparateNPU", True, False, id="V81-PreSeparateNPU-unused"),
        pytest.param("SubHealthFault", False, False, id="SubHealthFault"),
        pytest.param("NotHandleFault", False, False, id="NotHandleFault"),
        pytest.param("NotHandleFault", True, True, id="listed-and-not-explained"),
        pytest.param("Brandnew", False, False, id="047-unknown-level"),
        pytest.param("Brandnew", True, True, id="unknown-level-but-listed"),
    ],
)
def test_what_a_level_does(level: str, listed: bool, acts: bool) -> None:
    fault = card(entry({"80E18005": level}), unhealthy="Ascend910-1" if listed else "")
    assert fault.acts is acts


def test_a_restart_code_hidden_behind_pre_separate_acts() -> None:
    """The plugin's summary is PreSeparate, so it keeps the card in use out of its unhealthy list."""
    devices = {
        f"{RESOURCE}-Fault": json.dumps(
            [entry({"8118043C": "PreSeparateNPU", "8C204E00": "RestartBusiness"}, summary="PreSeparateNPU")]
        )
    }
    found = info(devices)
    (fault,) = found.faults
    assert (fault.cause, fault.acts, fault.level) == (Cause.CHIP_UNHEALTHY, True, "RestartBusiness")
    assert found.report.unhealthy == {"Ascend910-1"}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param(
            [entry({"80E01801      ": "RestartBusiness", "  80C98009": "NotHandleFault"})],
            [("80E01801", "RestartBusiness"), ("80C98009", "NotHandleFault")],
            id="V12-033-blanks",
        ),
        pytest.param(
            [entry({"0x1": "NotHandleFault", "0x2": "SubHealthFault"})],
            [("0X1", "NotHandleFault"), ("0X2", "SubHealthFault"), ("", "Unexplained")],
            id="V13",
        ),
        pytest.param(
            [entry({"80E18005": None}, summary="RestartNPU")],
            [("80E18005", "RestartNPU")],
            id="map-lacks-code",
        ),
        pytest.param(
            [entry({"80E18005": "RestartNPU"}, key="fault_time_map")],
            [("80E18005", "RestartNPU")],
            id="033-old-key",
        ),
        pytest.param([entry({"A2301001": None})], [("A2301001", "SeparateNPU")], id="V22-035-by-the-table"),
        pytest.param([entry({"FFFF0000": None})], [("FFFF0000", "Unknown")], id="unknown-without-level"),
        pytest.param(
            [entry({"": None}, summary="ManuallySeparateNPU")],
            [("ManuallySeparateNPU", "ManuallySeparateNPU")],
            id="V14-033-empty-code",
        ),
        pytest.param(
            [entry({"80E01801": "RestartBusiness"}, summary="ManuallySeparateNPU")],
            [("80E01801", "RestartBusiness"), ("ManuallySeparateNPU", "ManuallySeparateNPU")],
            id="V17",
        ),
        pytest.param([entry({"": None}, summary="NormalNPU")], [("", "NormalNPU")], id="V31-neighbour"),
        pytest.param(
            [
                entry({"010001001": "SeparateNPU"}, kind="PublicFault"),
                entry({"010001001": "SeparateNPU"}, kind="PublicFault"),
            ],
            [("010001001", "SeparateNPU")],
            id="V21-two-origins",
        ),
        pytest.param(
            [entry({"4C1F8608": "PreSeparateNPU"}), entry({"010001001": "SeparateNPU"}, kind="PublicFault")],
            [("4C1F8608", "PreSeparateNPU"), ("010001001", "SeparateNPU")],
            id="V69-public-beside-chip",
        ),
    ],
)
def test_codes_and_levels_of_one_card(
    listed: list[dict[str, object]], expected: list[tuple[str, str]]
) -> None:
    assert [(fact.code, fact.level) for fact in card(*listed).details] == expected


def test_chip_and_link_stay_two_faults() -> None:
    """V16."""
    listed = [entry({"0X1": "NotHandleFault"}), entry({"0X2": "SeparateNPU"}, kind="CardNetworkUnhealthy")]
    devices = {
        f"{RESOURCE}-NetworkUnhealthy": "Ascend910-1",
        f"{RESOURCE}-Fault": json.dumps(listed),
    }
    found = info(devices).faults
    assert [(fault.cause, fault.codes, fault.acts) for fault in found] == [
        (Cause.CHIP_FAULT_LISTED, ("0X1",), False),
        (Cause.NETWORK_UNHEALTHY, ("0X2",), False),
    ]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (1744168468259, 1744168468.259),
        (1736926605, 1736926605.0),
        (0, 0.0),
        (-1, 0.0),
        ("x", 0.0),
        (True, 0.0),
    ],
    ids=["milliseconds", "seconds", "zero", "manual", "text", "boolean"],
)
def test_times_are_told_by_their_magnitude(time: object, seconds: float) -> None:
    listed = entry({"80E18005": "RestartNPU"})
    listed["fault_time_and_level_map"] = {"80E18005": {"fault_time": time, "fault_level": "RestartNPU"}}
    assert [fact.told_at_s for fact in card(listed).details] == [seconds]


def test_a_code_keeps_the_time_of_its_first_report_while_others_come() -> None:
    first = card(entry({"80E18005": "RestartNPU"}))
    later = info(
        {
            f"{RESOURCE}-Unhealthy": "Ascend910-1",
            f"{RESOURCE}-Fault": json.dumps(
                [entry({"80E18005": "RestartNPU", "8C204E00": "RestartBusiness"})]
            ),
        },
        now_s=50.0,
    ).faults
    (fault,) = device_info.continued(later, previous=(first,))
    assert [fact.first_seen_s for fact in fault.details] == [1.0, 50.0]
    assert (fault.first_seen_s, fault.last_seen_s) == (1.0, 50.0)


def test_cards_in_reset_are_no_loss_of_all_cards() -> None:
    """045."""
    names = "Ascend910-0,Ascend910-1"
    found = info({RESOURCE: "", f"{RESOURCE}-Recovering": names, f"{RESOURCE}-Fault": "[]"})
    assert [(fault.cause, fault.acts) for fault in found.faults] == [(Cause.CHIP_RESETTING, False)] * 2
    assert found.report.unhealthy == frozenset()


def test_an_unhealthy_card_in_reset_is_unhealthy() -> None:
    found = info({f"{RESOURCE}-Recovering": "Ascend910-1", f"{RESOURCE}-Unhealthy": "Ascend910-1"})
    assert [(fault.cause, fault.acts) for fault in found.faults] == [(Cause.CHIP_UNHEALTHY, True)]


def test_a_manual_separation_counts_though_the_report_beside_it_is_refused() -> None:
    """031."""
    sample = yaml.safe_load((SAMPLES / "cm_deviceinfo_manually_separate_checkcode_mismatch.yaml").read_text())
    with pytest.raises(InputError, match="CheckCode"):
        device_info.parse("n0", sample["data"], now_s=1.0)
    (fault,) = manual_separations.parse("n0", sample["data"], now_s=1.0)
    assert (fault.device, fault.cause, fault.acts) == ("Ascend910-0", Cause.CHIP_SEPARATED, False)


def test_the_valid_sample_verifies() -> None:
    sample = yaml.safe_load((SAMPLES / "cm_deviceinfo_a3_two_faults_valid_checkcode.yaml").read_text())
    assert device_info.parse("n0", sample["data"], now_s=1.0).report.unhealthy == {"Ascend910-4"}


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        pytest.param('{"npu":[]}', set(), id="V32"),
        pytest.param("not json", set(), id="no-json"),
        pytest.param('{"Ascend910-0": 3}', set(), id="no-array"),
        pytest.param(
            '{"Ascend910-0":[{"upgrade_time":1,"fault_code":"AutofillFaultCode","fault_level":'
            '"ManuallySeparateNPU","upgrade_type":"FaultAutofill"}]}',
            {"Ascend910-0"},
            id="autofill",
        ),
    ],
)
def test_upgrade_reasons_only_explain(text: str, devices: set[str]) -> None:
    assert set(manual_separations.reasons(text, where="t")) == devices
    data = {manual_separations.KEY: "Ascend910-0", manual_separations.KEY_REASONS: text}
    (fault,) = manual_separations.parse("n0", data, now_s=1.0)
    assert fault.codes == (("AutofillFaultCode",) if devices else ())


def test_nobody_is_separated_by_an_empty_key() -> None:
    assert manual_separations.parse("n0", {manual_separations.KEY: " "}, now_s=1.0) == ()
    with pytest.raises(InputError):
        manual_separations.parse("n0", {manual_separations.KEY: "all of them"}, now_s=1.0)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        pytest.param(None, "", id="no-plugin"),
        pytest.param(DeviceReport("n", updated_at_s=500.0), "", id="fresh"),
        pytest.param(DeviceReport("n", updated_at_s=100.0), "900 s old", id="old"),
        pytest.param(DeviceReport("n", updated_at_s=100.0, advanced_at_s=900.0), "", id="clock-behind"),
        pytest.param(DeviceReport("n", updated_at_s=100.0, stale_reason="why"), "refused: why", id="refused"),
        pytest.param(DeviceReport("n", stale_reason="why"), "no valid report", id="V19-never"),
    ],
)
def test_a_stale_report_is_a_condition(report: DeviceReport | None, words: str) -> None:
    told = unreported(report, stale_s=600.0, now_s=1000.0)
    assert words in told
    assert bool(told) is bool(words)


def test_levels_beside_the_list_are_merged_by_physical_name() -> None:
    assert device_lists.physical_name("Ascend910-0") == "Ascend910-0"
    assert Level.RESTART_NPU in {fact.level for fact in card(entry({"80E18005": "RestartNPU"})).details}
