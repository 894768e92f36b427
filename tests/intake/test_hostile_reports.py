"""Every parser of fault input against garbage: one declared error at most, never a fault out of nothing.

500 examples each; `make fuzz` takes 10,000."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from mindie_ha.intake import (
    cluster_infos,
    code_tables,
    device_info,
    fault_configs,
    manual_separations,
    node_info,
    relations,
    rules,
    silences,
    switch_info,
)
from mindie_ha.model.errors import InputError
from mindie_ha.model.workloads import Role
from tests.intake.fuzzing import FUZZED

TABLES = code_tables.defaults()
WORDS = st.sampled_from(
    [
        "DeviceInfo", "DeviceList", "UpdateTime", "CheckCode", "huawei.com/Ascend910-Unhealthy",
        "huawei.com/Ascend910-Fault", "Ascend910-1", "npu_name", "fault_code", "fault_level", "SeparateNPU",
        "fault_time_and_level_map", "NodeInfo", "FaultDevList", "NodeStatus", "UnHealthy", "FaultCode",
        "FaultLevel", "DeviceType", "DeviceId", "FaultTimeAndLevelMap", "AssembledFaultCode", "SwitchChipId",
        "FaultTypeCode", "SeparateFaultCodes", "SeparateNPUCodes", "TriggerFault", "RelationFaults",
        "FaultStrategy", "Separate", "TimeOutInterval", "FaultFrequency", "EventId", "TimeWindow",
        "mindx-dl-deviceinfo-n1", "mindx-dl-nodeinfo-n1", "mindx-dl-switchinfo-n1", "CmName", "2C000031",
    ]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=True), st.text(max_size=20), WORDS
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(WORDS, st.text(max_size=8)), inner, max_size=4)
    ),
    max_leaves=20,
)
TEXTS = st.one_of(st.text(max_size=200), VALUES.map(json.dumps))

Parser = Callable[[str], object]
PARSERS: dict[str, Parser] = {
    "device-info": lambda text: device_info.parse("n", {device_info.KEY: text}, now_s=1.0),
    "separations": lambda text: manual_separations.parse("n", {manual_separations.KEY: text}, now_s=1.0),
    "upgrade-reasons": lambda text: manual_separations.reasons(text, where="t"),
    "switch-info": lambda text: switch_info.parse("n", text, where="t", now_s=1.0),
    "node-info": lambda text: node_info.parse("n", {node_info.KEY: text}, now_s=1.0),
    "fused-devices": lambda text: cluster_infos.devices(text, where="t", now_s=1.0, tables=TABLES),
    "fused-switches": lambda text: cluster_infos.switches(text, where="t", now_s=1.0, tables=TABLES),
    "fused-boards": lambda text: cluster_infos.boards(text, where="t", now_s=1.0, tables=TABLES),
    "chip-codes": lambda text: code_tables.parse_chip(text, where="t"),
    "switch-codes": lambda text: code_tables.parse_switch(text, where="t"),
    "node-codes": lambda text: code_tables.parse_node(text, where="t"),
    "rules": lambda text: rules.parse(text, where="t"),
    "relation-rules": lambda text: relations.parse(text, "[]", where="t"),
    "relation-durations": lambda text: relations.parse("[]", text, where="t"),
}


@FUZZED
@given(text=TEXTS)
def test_garbage_is_one_declared_error_at_most(text: str) -> None:
    for name, parse in PARSERS.items():
        try:
            parse(text)
        except InputError as refused:
            note(f"{name}: {refused}")


@FUZZED
@given(text=TEXTS)
def test_a_report_without_the_right_checksum_is_no_report(text: str) -> None:
    for read in ("device-info", "node-info"):
        with pytest.raises(InputError):
            PARSERS[read](text)


def reported(devices: dict[str, str]) -> device_info.DeviceInfo:
    body = {
        "DeviceInfo": {"DeviceList": devices, "UpdateTime": 1},
        "CheckCode": device_info.check_code(devices, 1),
    }
    return device_info.parse("n", {device_info.KEY: json.dumps(body)}, now_s=1.0)


@FUZZED
@given(listed=TEXTS)
def test_no_fault_list_makes_a_card_act_that_names_no_level(listed: str) -> None:
    """A verified report whose fault list is garbage: only a named level may act, and only on a named card."""
    found = reported({"huawei.com/Ascend910": "", "huawei.com/Ascend910-Fault": listed})
    for fault in found.faults:
        assert fault.device in listed
        assert (
            not fault.acts or fault.level in listed or any(code in TABLES.chip.chip for code in fault.codes)
        )


@FUZZED
@given(key=st.text(max_size=30), text=st.text(max_size=50))
def test_no_strange_key_of_the_device_list_invents_a_fault(key: str, text: str) -> None:
    try:
        found = reported({"huawei.com/Ascend910": "", key: text})
    except InputError:
        return
    assert all(fault.device for fault in found.faults)
    assert not found.faults or key.endswith(("Unhealthy", "Recovering", "Fault"))


@FUZZED
@given(data=st.dictionaries(st.sampled_from(["faultCode.json", "SwitchFaultCode.json", "x"]), TEXTS))
def test_no_custom_table_raises_or_loses_the_last_one(data: dict[str, str]) -> None:
    last = fault_configs.shipped()
    found = fault_configs.chip_config(data, last=last)
    if any(error.where.endswith("[faultCode.json]") for error in found.refused):
        assert found.tables.chip is last.tables.chip


@FUZZED
@given(
    text=st.text(alphabet=st.one_of(st.sampled_from("[],:0123456789abcNPU \uff0c\uff1a"), st.characters()))
)
def test_no_annotation_raises_and_every_window_is_in_bounds(text: str) -> None:
    found = silences.windows({silences.CODES: text, silences.LEVELS: text}, role=Role.SERVER)
    assert all(0 <= seconds <= silences.MAX_S for seconds in (*found.codes.values(), *found.levels.values()))
