"""The bodies of `mindx-dl-deviceinfo-<node>` and of `cluster-info-device-<i>` (pure).

`CheckCode` is the SHA-256 of the re-serialised `DeviceInfo` by Go's rules: compact, sorted map keys, and
five characters escaped. Source: fault inputs contract §1.2, §1.4, §1.5 and §1.8.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mindie_ha.sim.actors.documents import dig, load_json, mapping, number, text, texts
from mindie_ha.sim.actors.faults import ChipFault, chip_is_unhealthy, gravest, network_is_unhealthy
from mindie_ha.sim.actors.machines import RESOURCE, NodeModel
from mindie_ha.sim.client import Object

PREFIX = "mindx-dl-deviceinfo-"
SHARD_LIMIT = 800 * 1024
_GO_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}

FirstSeen = Mapping[ChipFault, int]  # when each fault was first seen, in ms


def go_json(value: object) -> str:
    """`value` as Go's encoding/json writes it; mappings must already be in field order."""
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for plain, escaped in _GO_ESCAPES.items():
        written = written.replace(plain, escaped)
    return written


def check_code(device_list: Mapping[str, str] | None, update_time: int) -> str:
    """The CheckCode of a DeviceInfo."""
    ordered = None if device_list is None else dict(sorted(device_list.items()))
    written = go_json({"DeviceList": ordered, "UpdateTime": update_time})
    return hashlib.sha256(written.encode(errors="replace")).hexdigest()


def device_list(
    cards: Sequence[str], faults: Iterable[ChipFault], *, used: AbstractSet[str], seen: FirstSeen
) -> dict[str, str]:
    """The DeviceList of a node: the five keys and their values."""
    chip: dict[str, list[ChipFault]] = {}
    network: dict[str, list[ChipFault]] = {}
    for fault in faults:
        (network if fault.network else chip).setdefault(fault.device, []).append(fault)
    unhealthy = [
        card for card in cards
        if chip_is_unhealthy(gravest([f.level for f in chip.get(card, ())]), in_use=card in used)
    ]  # fmt: skip
    unlinked = [
        card for card in cards if network_is_unhealthy(gravest([f.level for f in network.get(card, ())]))
    ]
    listed = [
        fault_object(kind, card, by_card[card], seen)
        for card in cards
        for kind, by_card in (("CardNetworkUnhealthy", network), ("CardUnhealthy", chip))
        if card in by_card
    ]
    free = [card for card in cards if card not in used and card not in unhealthy]
    return {
        RESOURCE: ",".join(free),
        f"{RESOURCE}-Fault": go_json(listed),
        f"{RESOURCE}-NetworkUnhealthy": ",".join(unlinked),
        f"{RESOURCE}-Recovering": "",
        f"{RESOURCE}-Unhealthy": ",".join(unhealthy),
    }


def fault_object(kind: str, card: str, faults: Sequence[ChipFault], seen: FirstSeen) -> Object:
    """One entry of the `-Fault` list: all codes of one family on one card."""
    level = gravest([fault.level for fault in faults])
    codes: dict[str, Object] = {}
    for fault in sorted(faults, key=lambda fault: fault.code):
        known = codes.get(fault.code, {"fault_time": seen.get(fault, 0), "fault_level": fault.level})
        worst = gravest([str(known["fault_level"]), fault.level])
        codes[fault.code] = {"fault_time": known["fault_time"], "fault_level": worst}
    return {
        "fault_type": kind,
        "npu_name": card,
        "large_model_fault_level": level,
        "fault_level": level,
        "fault_handling": level,
        "fault_code": ",".join(codes),
        "fault_time_and_level_map": codes,
    }


def device_info_data(
    model: NodeModel, devices: Mapping[str, str], *, update_time: int, switch: str = ""
) -> dict[str, str]:
    """The data of the node's ConfigMap; `switch` is the text of `SwitchInfoCfg`, if any."""
    body = {
        "DeviceInfo": {"DeviceList": dict(sorted(devices.items())), "UpdateTime": update_time},
        "SuperPodID": model.super_pod,
        "ServerIndex": model.server_index,
        "CheckCode": check_code(devices, update_time),
    }
    data = {
        "DeviceInfoCfg": go_json(body),
        "ManuallySeparateNPU": "",
        "UpgradeFaultReason": "{}",
        "Description": "The available list is being phased out; the scheduler maintains availability itself.",
    }
    if switch:
        data["SwitchInfoCfg"] = switch
    return data


def read_device_info(data: Mapping[str, str]) -> Object | None:
    """ClusterD's view of a node's ConfigMap; None where it is broken or its CheckCode does not match."""
    body = load_json(data.get("DeviceInfoCfg", ""))
    listed = dig(body, "DeviceInfo", "DeviceList")
    devices = texts(body, "DeviceInfo", "DeviceList") if isinstance(listed, dict) else None
    updated = number(body, "DeviceInfo", "UpdateTime")
    if devices != listed or text(body, "CheckCode") != check_code(devices, updated):
        return None
    return {
        "DeviceList": devices,
        "UpdateTime": updated,
        "SuperPodID": number(body, "SuperPodID", default=-1),
        "RackID": number(body, "RackID"),
        "ServerIndex": number(body, "ServerIndex", default=-1),
    }


def shards(entries: Mapping[str, Object], limit: int = SHARD_LIMIT) -> list[str]:
    """The entries as JSON maps of at most `limit` bytes; one entry above it gets a map of its own."""
    parts: list[list[str]] = []
    size = limit + 1
    for key in sorted(entries):
        part = f"{json.dumps(key)}:{go_json(entries[key])}"
        length = len(part.encode(errors="replace")) + 1
        if size + length + 1 > limit:
            parts.append([])
            size = 1
        parts[-1].append(part)
        size += length
    return ["{" + ",".join(part) + "}" for part in parts]


def read_cluster_devices(bodies: Iterable[str]) -> dict[str, dict[str, str]]:
    """Node name to DeviceList out of the values of all `cluster-info-device-<i>`."""
    found: dict[str, dict[str, str]] = {}
    for body in bodies:
        decoded = mapping(load_json(body))
        for key in decoded:
            found[key.removeprefix(PREFIX)] = texts(decoded, key, "DeviceList")
    return found
