"""Lint: the right verdict on real objects, and on what people get wrong in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.intake import device_info
from mindie_ha.intake.lints.checking import check
from mindie_ha.intake.lints.remarks import CheckCode, Sheet
from mindie_ha.intake.lints.subjects import Subject, read
from mindie_ha.model.errors import InputError
from tests.intake.fuzzing import FUZZED

SAMPLES = Path("tests/data/faults")
MESSAGE = {
    "id": "message-1",
    "timestamp": 1741159983000,
    "version": "1.0",
    "resource": "CCAE",
    "faults": [
        {
            "faultId": "fault-0001",
            "faultType": "NPU",
            "faultCode": "220001001",
            "faultTime": 1736926605000,
            "assertion": "occur",
            "influence": [{"nodeName": "node173", "deviceIds": [2, 3]}],
        }
    ],
}


def config_map(name: str, data: dict[str, object], *, namespace: str, label: str = "") -> Subject:
    labels = {label: "true"} if label else {}
    body = {"metadata": {"labels": labels}, "data": data}
    return Subject(file="f", kind="ConfigMap", namespace=namespace, name=name, body=body)


def report(devices: dict[str, str], **more: object) -> Subject:
    code = device_info.check_code(devices, 5)
    body = {"DeviceInfo": {"DeviceList": devices, "UpdateTime": 5}, "CheckCode": code}
    data: dict[str, object] = {"DeviceInfoCfg": json.dumps(body), **more}
    return config_map("mindx-dl-deviceinfo-n", data, namespace="kube-system", label="mx-consumer-cim")


def public(message: object) -> Subject:
    data: dict[str, object] = {"PublicFault": json.dumps(message)}
    return config_map("any", data, namespace="x", label="mc-consumer-publicfault")


def codes(sheet: Sheet) -> set[str]:
    return {remark.code for remark in sheet.remarks}


@pytest.mark.parametrize(
    ("name", "wrong", "check_code", "found"),
    [
        pytest.param(
            "cm_deviceinfo_a3_two_faults_valid_checkcode", False, CheckCode.FITS, set(), id="V03-valid"
        ),
        pytest.param(
            "cm_deviceinfo_manually_separate_checkcode_mismatch",
            True,
            CheckCode.MISMATCH,
            {"check-code", "no-label"},
            id="V06-device-mismatch",
        ),
        pytest.param(
            "cm_nodeinfo_cpu_separate_checkcode_mismatch",
            True,
            CheckCode.MISMATCH,
            {"check-code", "no-label", "unknown-code"},
            id="V07-node-mismatch",
        ),
        pytest.param(
            "cm_public_fault_recover_json_with_comment", True, CheckCode.NONE, {"bad-json"}, id="comment"
        ),
    ],
)
def test_real_objects_get_the_right_verdict(
    name: str, wrong: bool, check_code: CheckCode, found: set[str]
) -> None:
    (subject,) = read((SAMPLES / f"{name}.yaml").read_text(), file=name)
    sheet = check(subject)
    assert (sheet.is_wrong, sheet.check_code, codes(sheet)) == (wrong, check_code, found)


def test_a_comment_inside_json_is_named_with_its_line() -> None:
    name = "cm_public_fault_recover_json_with_comment.yaml"
    (subject,) = read((SAMPLES / name).read_text(), file=name)
    (remark,) = check(subject).remarks
    assert remark.where == "data.PublicFault"
    assert remark.advice.startswith("line 11 holds a comment; JSON has none, remove it:")


BASE = {"huawei.com/Ascend910": "Ascend910-0"}


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        pytest.param(report(BASE), set(), id="well"),
        pytest.param(report(BASE, Description="text"), set(), id="description"),
        pytest.param(report({}), {"no-device"}, id="V19-empty"),
        pytest.param(report({**BASE, "huawei.com/Ascend910-Fault": "{"}), {"bad-fault-list"}, id="V12"),
        pytest.param(
            report({**BASE, "huawei.com/Ascend910-Unhealthy": "Ascend910-0"}), {"contradiction"}, id="both"
        ),
        pytest.param(
            report({**BASE, "huawei.com/Ascend910-Unhealthy": "../x"}), {"bad-report"}, id="bad-name"
        ),
        pytest.param(
            report(
                {
                    "huawei.com/Ascend910-Fault": json.dumps(
                        [{"npu_name": "Ascend910-0", "fault_code": "80E18005", "fault_level": "Separate_"}]
                    )
                }
            ),
            {"unknown-level"},
            id="unknown-level",
        ),
        pytest.param(report(BASE, ManuallySeparateNPU=0), {"no-string"}, id="number"),
        pytest.param(report(BASE, ManuallySeparateNPU="../0"), {"bad-separation"}, id="bad-separation"),
        pytest.param(report(BASE, UpgradeFaultReason="[]"), {"bad-reasons"}, id="bad-reasons"),
        pytest.param(report(BASE, SwitchInfoCfg='{"FaultCode": 3}'), {"switch-info"}, id="switch"),
        pytest.param(report(BASE, SwitchInfoCfg='{"FaultCode": null, "NodeStatus": ""}'), set(), id="A5"),
        pytest.param(report(BASE, Typo="x"), {"unknown-key"}, id="unknown-key"),
        pytest.param(
            config_map("mindx-dl-deviceinfo-n", {}, namespace="default"),
            {"wrong-namespace", "no-label", "no-report"},
            id="elsewhere",
        ),
        pytest.param(public(MESSAGE), set(), id="public"),
        pytest.param(public({**MESSAGE, "version": "2"}), {"bad-message"}, id="V55-version"),
        pytest.param(public({**MESSAGE, "timestamp": 1741159983}), {"bad-message"}, id="V53-seconds"),
        pytest.param(
            public({**MESSAGE, "faults": [*MESSAGE["faults"], {"faultId": "x"}]}),  # type: ignore[misc]
            {"bad-fault"},
            id="V57-one-bad-fault",
        ),
        pytest.param(
            config_map("mindx-dl-fault-config", {"faultCode.json": "{"}, namespace="kube-system"),
            {"bad-table"},
            id="tables",
        ),
        pytest.param(
            config_map("mindx-dl-fault-config", {"PollInterval": "5"}, namespace="kube-system"),
            {"bad-poll"},
            id="poll",
        ),
        pytest.param(
            config_map("mindx-dl-node-fault-config", {"NodeDConfiguration.json": "3"}, namespace="mindx-dl"),
            {"bad-table"},
            id="node-table",
        ),
        pytest.param(
            config_map(
                "cluster-info-device-0",
                {"cluster-info-device-0": '{"node-1": {}}'},
                namespace="mindx-dl",
                label="mx-consumer-volcano",
            ),
            {"bad-entry"},
            id="cluster-list",
        ),
        pytest.param(
            config_map(
                "cluster-info-node-cm",
                {"cluster-info-node-cm": ""},
                namespace="mindx-dl",
                label="mx-consumer-volcano",
            ),
            set(),
            id="empty-cluster-list",
        ),
    ],
)
def test_what_is_wrong_is_named(subject: Subject, found: set[str]) -> None:
    sheet = check(subject)
    assert codes(sheet) == found
    assert sheet.is_wrong == bool(found)


def test_what_nobody_knows_is_no_finding() -> None:
    sheet = check(Subject(file="f", kind="Secret", namespace="a", name="b", body={}))
    assert (sheet.rule, sheet.is_wrong) == ("", False)


def test_dumps_are_lists_of_objects() -> None:
    text = json.dumps({"kind": "List", "items": [{"kind": "ConfigMap", "metadata": {"name": "a"}}] * 2})
    assert [subject.name for subject in read(text, file="f")] == ["a", "a"]


@pytest.mark.parametrize(
    "text",
    ["", "a: [", "- 1", "kind: List\nitems: [3]", "metadata: {}", "[" * 5000, "a: !!python/object:x {}"],
)
def test_a_file_that_holds_no_objects_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read(text, file="f")


names = st.sampled_from(
    [
        "mindx-dl-deviceinfo-n",
        "mindx-dl-nodeinfo-n",
        "mindx-dl-fault-config",
        "mindx-dl-node-fault-config",
        "cluster-info-device-0",
        "cluster-info-switch-0",
        "cluster-info-node-cm",
        "other",
    ]
)
keys = st.sampled_from(
    ["DeviceInfoCfg", "SwitchInfoCfg", "NodeInfo", "PublicFault", "faultCode.json", "cluster-info-device-0"]
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["DeviceInfo", "NodeInfo", "DeviceList", "FaultCode", "faults", "CheckCode", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@FUZZED
@given(name=names, data=st.dictionaries(keys, junk | junk.map(json.dumps) | st.text(max_size=30), max_size=3))
def test_no_object_breaks_it(name: str, data: dict[str, object]) -> None:
    check(config_map(name, data, namespace="mindx-dl"))
