"""Device reports: checksum vectors, content vectors, hostile bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.intake.device_info import KEY, check_code, continued, parse
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause
from tests.intake.fuzzing import FUZZED

NOW_S = 100.0
RESOURCE = "huawei.com/Ascend910"
ALL = ",".join(f"Ascend910-{i}" for i in range(8))


def entry(
    kind: str, name: str, level: str, codes: dict[str, tuple[int, str]], order: str = ""
) -> dict[str, Any]:
    """One fault object as the device plugin writes it, keys in its order."""
    return {
        "fault_type": kind,
        "npu_name": name,
        "large_model_fault_level": level,
        "fault_level": level,
        "fault_handling": level,
        "fault_code": order or ",".join(codes),
        "fault_time_and_level_map": {
            code: {"fault_time": time, "fault_level": code_level}
            for code, (time, code_level) in codes.items()
        },
    }


A3_FAULTS = [
    entry(
        "CardNetworkUnhealthy",
        "Ascend910-0",
        "PreSeparateNPU",
        {"81078603": (1744168468259, "PreSeparateNPU")},
    ),
    entry(
        "CardUnhealthy",
        "Ascend910-4",
        "SeparateNPU",
        {
            "80E18401": (1744167455784, "NotHandleFault"),
            "80E18402": (1744167455784, "SeparateNPU"),
            "A4028801": (1744167455784, "NotHandleFault"),
            "A8028801": (1744167455784, "SeparateNPU"),
        },
        order="A8028801,A4028801,80E18402,80E18401",
    ),
]
A3_SAMPLE = {
    RESOURCE: "Ascend910-0,Ascend910-1,Ascend910-2,Ascend910-3,Ascend910-5,Ascend910-6,Ascend910-7",
    f"{RESOURCE}-Fault": json.dumps(A3_FAULTS, separators=(",", ":")),
    f"{RESOURCE}-NetworkUnhealthy": "Ascend910-0",
    f"{RESOURCE}-Recovering": "",
    f"{RESOURCE}-Unhealthy": "Ascend910-4",
}
QUIET = {
    RESOURCE: ALL,
    f"{RESOURCE}-Fault": "[]",
    f"{RESOURCE}-NetworkUnhealthy": "",
    f"{RESOURCE}-Unhealthy": "",
}
V02_CODE = "4f00cf1d220da26a8fdbeb5ba163a751d4b264c48b81d22149257e272ae3b413"


def body(
    devices: object, update_time: object = 1, *, code: str | None = None, **extra: object
) -> dict[str, str]:
    """The ConfigMap's data; the checksum is right unless `code` says otherwise."""
    if code is None:
        assert devices is None or isinstance(devices, dict)
        assert isinstance(update_time, int)
        code = check_code(devices, update_time)
    info = {"DeviceList": devices, "UpdateTime": update_time}
    return {
        KEY: json.dumps({"DeviceInfo": info, "SuperPodID": -2, "ServerIndex": -2, "CheckCode": code, **extra})
    }


@pytest.mark.parametrize(
    ("devices", "update_time", "expected"),
    [
        pytest.param(None, 0, "aaa60c794e2dbec298a2f3c18ea64dea9a1fd2ccdb0cc577b8dfe2c3c5966965", id="V01"),
        pytest.param(QUIET, 1718702470, V02_CODE, id="V02"),
        pytest.param(
            A3_SAMPLE,
            1744182144,
            "a550811fdfafb5717555526816af2ca4ac6c3e102f5907574048578e0c8fcc73",
            id="V03",
        ),
        pytest.param(
            {key: value for key, value in QUIET.items() if not key.endswith("-Fault")},
            1657527526,
            "6b8de396fd9945be231d24720ca66ed950baf0a5972717f335aad7571cb6457a",
            id="V04",
        ),
        pytest.param(
            {**QUIET, RESOURCE: ALL.removeprefix("Ascend910-0,")},
            1718702470,
            "97c1534bb016dfb37963e078635bd102ad1a7dd85c68dfaafd020938b0a93909",
            id="V06-correct",
        ),
    ],
)
def test_check_codes_of_the_contract(devices: dict[str, str] | None, update_time: int, expected: str) -> None:
    assert check_code(devices, update_time) == expected


def test_check_code_escapes_as_go_does() -> None:
    plain = check_code({"a": "<>&\u2028\u2029\ud800"}, 1)
    assert plain != check_code({"a": ""}, 1)
    assert plain == check_code({"a": "<>&\u2028\u2029\ufffd"}, 1)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param({}, "no key", id="V11-no-key"),
        pytest.param(
            body({**QUIET, RESOURCE: ALL.removeprefix("Ascend910-0,")}, 1718702470, code=V02_CODE),
            "CheckCode",
            id="V06-content-does-not-fit",
        ),
        pytest.param(body(None, 0, code=""), "CheckCode", id="V08-empty-code"),
        pytest.param(body({}, 0), "no device", id="V19-no-reporter"),
        pytest.param({KEY: "{"}, "not JSON", id="not-json"),
        pytest.param({KEY: "[" * 100_000}, "not JSON", id="too-deep"),
        pytest.param({KEY: '{"DeviceInfo": NaN}'}, "not JSON", id="nan"),
        pytest.param({KEY: "[]"}, "expected an object", id="array"),
        pytest.param({KEY: '{"DeviceInfo": null}'}, "expected an object", id="null"),
        pytest.param(body({RESOURCE: 1}, code="x"), "must be a string", id="number-for-string"),
        pytest.param(body({RESOURCE: None}, code="x"), "must be a string", id="null-for-string"),
        pytest.param(body(QUIET, "1", code="x"), "whole number", id="string-for-number"),
        pytest.param(body(QUIET, 10**400, code="x"), "out of range", id="huge-number"),
        pytest.param(body({f"{RESOURCE}-Unhealthy": "card 3"}), "not a device name", id="bad-name"),
        pytest.param(
            body({f"{RESOURCE}-Unhealthy": ",".join(f"Ascend910-{i}" for i in range(2000))}),
            "more than",
            id="too-many",
        ),
    ],
)
def test_a_refused_report_says_what_is_wrong_and_where(data: dict[str, str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        parse("n0", data, now_s=NOW_S)
    assert "mindx-dl-deviceinfo-n0" in caught.value.where


def test_fields_outside_the_checksum_do_not_matter() -> None:
    """V09: the super pod id is not covered; unknown fields and key order are nobody's business."""
    text = json.loads(body(QUIET)[KEY])
    text = {"Unknown": [None], **dict(reversed(text.items())), "SuperPodID": 1}
    assert parse("n0", {KEY: json.dumps(text)}, now_s=NOW_S).report.unhealthy == frozenset()


def test_the_a3_sample() -> None:
    """V18."""
    info = parse("n0", body(A3_SAMPLE, 1744182144), now_s=NOW_S)
    assert info.report.unhealthy == {"Ascend910-4"}
    assert info.report.network_unhealthy == {"Ascend910-0"}
    chip, network = info.faults
    assert (chip.device, chip.cause, chip.acts, chip.level) == (
        "Ascend910-4",
        Cause.CHIP_UNHEALTHY,
        True,
        "SeparateNPU",
    )
    assert set(chip.codes) == {"80E18402", "A8028801", "80E18401", "A4028801"}
    assert (network.device, network.acts, network.codes) == ("Ascend910-0", False, ("81078603",))


def test_an_unreadable_fault_list_leaves_the_card_unhealthy() -> None:
    """V20."""
    devices = {f"{RESOURCE}-Fault": "not json", f"{RESOURCE}-Unhealthy": "Ascend910-3"}
    (fault,) = parse("n0", body(devices), now_s=NOW_S).faults
    assert (fault.device, fault.acts, fault.codes) == ("Ascend910-3", True, ())


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        pytest.param("80E01801      ,  80C98009    ", ("80E01801", "80C98009"), id="V12-spaces"),
        pytest.param("0x1,0x2", ("0X1", "0X2"), id="V13"),
        pytest.param("", (), id="V14-no-code"),
        pytest.param("010001001,010001001", ("010001001",), id="V21-twice"),
    ],
)
def test_codes_are_read_one_by_one(text: str, codes: tuple[str, ...]) -> None:
    listed = [{"fault_type": "CardUnhealthy", "npu_name": "Ascend910-1", "fault_code": text}]
    devices = {f"{RESOURCE}-Unhealthy": "Ascend910-1", f"{RESOURCE}-Fault": json.dumps(listed)}
    (fault,) = parse("n0", body(devices), now_s=NOW_S).faults
    assert fault.codes == codes


def test_an_entry_of_the_fault_list_alone_is_recorded_only() -> None:
    listed = [{"fault_type": "CardUnhealthy", "npu_name": "Ascend910-1", "fault_level": "SubHealthFault"}]
    devices = {
        f"{RESOURCE}-Unhealthy": "",
        f"{RESOURCE}-Fault": json.dumps([None, 7, {"npu_name": 3}, *listed]),
    }
    (fault,) = parse("n0", body(devices), now_s=NOW_S).faults
    assert (fault.cause, fault.acts, fault.level) == (Cause.CHIP_FAULT_LISTED, False, "SubHealthFault")


def test_cards_named_npu_are_known() -> None:
    (fault,) = parse("n0", body({"huawei.com/npu-Unhealthy": "npu-5"}), now_s=NOW_S).faults
    assert fault.device == "npu-5"


def test_a_fault_keeps_the_time_of_its_first_report() -> None:
    data = body({f"{RESOURCE}-Unhealthy": "Ascend910-1"})
    first = parse("n0", data, now_s=1.0).faults
    again = continued(parse("n0", data, now_s=9.0).faults, previous=first)
    assert [(fault.first_seen_s, fault.last_seen_s) for fault in again] == [(1.0, 9.0)]


@FUZZED
@given(
    st.one_of(
        st.text(),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps),
    )
)
def test_no_text_raises_anything_else(text: str) -> None:
    for value in (text, json.dumps({"DeviceInfo": {"DeviceList": text}}), f'{{"DeviceInfo": {text}}}'):
        with pytest.raises(InputError):
            parse("n0", {KEY: value}, now_s=NOW_S)
