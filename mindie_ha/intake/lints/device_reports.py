"""`mindx-dl-deviceinfo-<node>`: each of its keys, and whether the checksum fits.

The parts are looked at one by one, so that a report whose checksum is wrong still shows what else is. What
its readers take from it is told as if the checksum were right; they drop the whole where it is not.

Source: fault input contract §1.2-1.5, §8.1; vectors V01-V21, V31-V34.
"""

from __future__ import annotations

from collections.abc import Mapping

from mindie_ha.intake import bodies, code_tables, device_info, device_lists, manual_separations, switch_info
from mindie_ha.intake.lints.notebooks import Notebook, as_mapping
from mindie_ha.intake.lints.remarks import CheckCode, Sheet
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.model.errors import InputError
from mindie_ha.model.levels import Level, parse_level

NAMESPACE = "kube-system"
LABEL = "mx-consumer-cim"
KEYS = (
    device_info.KEY,
    manual_separations.KEY,
    manual_separations.KEY_REASONS,
    "Description",
    switch_info.KEY,
)
LEVEL_FIELDS = ("fault_handling", "fault_level", "large_model_fault_level")


def knows(subject: Subject) -> bool:
    """Whether it is a device report."""
    return subject.kind == "ConfigMap" and subject.name.startswith(device_info.CONFIG_MAP_PREFIX)


def look(subject: Subject) -> Sheet:
    """Every key."""
    book = Notebook(subject, rule="device report")
    node = subject.name.removeprefix(device_info.CONFIG_MAP_PREFIX)
    if not node:
        book.error("no-node", "metadata.name", "names no node", "mindx-dl-deviceinfo-<node>")
    book.belongs(namespace=NAMESPACE, label=LABEL, writer="the device plugin")
    data = book.texts(KEYS)
    _report(book, node, data)
    _manual(book, node, data)
    if switch_info.KEY in data:
        with book.reading("switch-info"):
            told = switch_info.parse(node, data[switch_info.KEY], where=f"data.{switch_info.KEY}", now_s=0.0)
            if told is not None:
                book.means_faults(told.faults)
    return book.sheet()


def _report(book: Notebook, node: str, data: Mapping[str, str]) -> None:
    where = f"data.{device_info.KEY}"
    book.check_code = CheckCode.UNKNOWN
    if device_info.KEY not in data:
        book.error("no-report", "data", f"has no key {device_info.KEY}", "the device plugin writes it")
        return
    root = book.json_object(data[device_info.KEY], where=where)
    if root is None:
        return
    with book.reading("bad-report"):
        info = bodies.as_object(root.get("DeviceInfo"), where=f"{where}.DeviceInfo")
        devices = device_lists.device_list(info.get("DeviceList"), where=f"{where}.DeviceInfo.DeviceList")
        updated = bodies.as_whole_number(info.get("UpdateTime"), where=f"{where}.DeviceInfo.UpdateTime")
        book.judge_code(root.get("CheckCode"), device_info.check_code(devices, updated), where=where)
        if not updated:
            book.warn("no-time", f"{where}.DeviceInfo.UpdateTime", "is 0 or absent", "its age is unknown")
        if not devices:
            advice = "an empty report means that the plugin does not report, not that all is well"
            book.error("no-device", f"{where}.DeviceInfo.DeviceList", "lists no device", advice)
            return
        _lists(book, devices, where=f"{where}.DeviceInfo.DeviceList")
        read = device_info.from_list(
            node, devices, updated_at_s=float(updated), now_s=0.0, tables=None, where=where, told_by=where
        )
        book.means_faults(read.faults)


def _lists(book: Notebook, devices: Mapping[str, str], *, where: str) -> None:
    suffixes = (device_lists.UNHEALTHY, device_lists.NETWORK_UNHEALTHY, device_lists.RECOVERING)
    free: set[str] = set()
    for key, text in devices.items():
        if "/" not in key:
            book.warn("odd-list", f"{where}.{key}", "is no resource name", "for example huawei.com/Ascend910")
        elif key.endswith(device_lists.FAULT):
            _faults(book, text, where=f"{where}.{key}")
        elif not key.endswith(suffixes):
            try:
                free.update(device_lists.split_names(text, where=f"{where}.{key}"))
            except InputError as error:
                book.warn("odd-name", error.where, error.what, error.advice)
    unhealthy = device_lists.names(devices, device_lists.UNHEALTHY, where=where)
    for name in sorted(free & unhealthy):
        what = f"{name} is listed as available and as unhealthy"
        book.warn("contradiction", where, what, "it counts as unhealthy")


def _faults(book: Notebook, text: str, *, where: str) -> None:
    if text in ("", "[]", "null"):
        return
    advice = "the causes are lost; the unhealthy lists still count"
    try:
        items = bodies.parse(text, where=where)
    except InputError as error:
        book.warn("bad-fault-list", where, error.what, advice)
        return
    if not isinstance(items, list):
        book.warn("bad-fault-list", where, "is no array", advice)
        return
    for number, item in enumerate(items[:1000]):
        place = f"{where}[{number}]"
        if not isinstance(item, dict) or not isinstance(item.get("npu_name"), str):
            book.warn("bad-fault", place, "is no fault object with npu_name", "it is left out")
            continue
        _levels(book, item, where=place)


def _levels(book: Notebook, item: Mapping[str, object], *, where: str) -> None:
    codes = item.get("fault_code")
    if not isinstance(codes, str):
        book.warn("bad-fault", f"{where}.fault_code", "is no string", "codes joined by commas")
        codes = ""
    for field in LEVEL_FIELDS:
        text = item.get(field)
        if isinstance(text, str) and text and parse_level(text) is Level.UNKNOWN:
            advice = "no writer defines it: the card gets no new work, nothing is restarted"
            book.warn("unknown-level", f"{where}.{field}", f"{text[:40]!r} is no level", advice)
    known = code_tables.defaults().chip
    told = as_mapping(item.get("fault_time_and_level_map"))
    for code in (part.strip().upper() for part in codes.split(",")):
        if code and code not in told and known.level(code) is Level.UNKNOWN and code not in known.network:
            book.note("unknown-code", where, f"code {code[:64]} is in no shipped table", "its level decides")


def _manual(book: Notebook, node: str, data: Mapping[str, str]) -> None:
    with book.reading("bad-separation"):
        for fault in manual_separations.parse(node, data, now_s=0.0):
            book.means(f"{fault.device} gets no new work until a person takes it out of the list")
    text = data.get(manual_separations.KEY_REASONS, "")
    where = f"data.{manual_separations.KEY_REASONS}"
    if text.strip() and text.strip() != "{}" and not manual_separations.reasons(text, where=where):
        what = "cannot be read as a whole"
        book.warn("bad-reasons", where, what, "an object of <card>-<number> to arrays; it counts as absent")
