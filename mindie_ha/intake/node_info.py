"""`mindx-dl-nodeinfo-<node>` -> what NodeD says about the board of one node.

The ConfigMap exists only while there are faults; its absence means healthy, not "no data". The checksum is
recomputed over the struct as NodeD writes it, and a mismatch refuses the update. NodeD judges a device by
the worst of its codes; the level stands for each of them, unless the table knows a code better.

Source: fault input contract §1.4, §1.7, §2.5; vectors V05, V07, V10, V45-V51; cases 029, 047.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mindie_ha.intake import bodies, code_tables, device_info, node_troubles
from mindie_ha.intake.code_tables import NodeCodes
from mindie_ha.intake.stamps import rfc3339
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause, CodeFact, FaultSource
from mindie_ha.model.levels import Family, Level, parse_level, worst
from mindie_ha.model.nodes import NodeTrouble

CONFIG_MAP_PREFIX = "mindx-dl-nodeinfo-"
KEY = "NodeInfo"
KEY_UPDATED = "updateTime"
MAX_DEVICES = 1024
MAX_CODES = 1024
UNHEALTHY = "UnHealthy"


@dataclass(frozen=True, slots=True)
class BoardDevice:
    """One entry of `FaultDevList`, fields in the writer's order. `codes` None: null."""

    kind: str
    id: int
    codes: tuple[str, ...] | None
    level: str


def parse(
    node: str, data: Mapping[str, str], *, now_s: float, tables: NodeCodes | None = None
) -> NodeTrouble:
    """Read the ConfigMap's `data`. Raises InputError for anything but a report with a right CheckCode."""
    where = f"{CONFIG_MAP_PREFIX}{node}[{KEY}]"
    text = data.get(KEY)
    if text is None:
        raise InputError(f"no key {KEY}", where=where, advice="is it written by NodeD?")
    root = bodies.parse_object(text, where=where)
    info = bodies.as_object(root.get("NodeInfo"), where=f"{where}.NodeInfo")
    devices, status = content(info, where=where)
    if root.get("CheckCode") != check_code(devices, status):
        raise InputError("CheckCode does not fit the content", where=where, advice="somebody edited it")
    return _trouble(
        node,
        devices or (),
        status,
        updated_at_s=rfc3339(data.get(KEY_UPDATED, "")),
        now_s=now_s,
        tables=tables,
        where=where,
    )


def read(
    node: str,
    body: Mapping[str, object],
    *,
    where: str,
    updated_at_s: float,
    now_s: float,
    tables: NodeCodes | None = None,
) -> NodeTrouble:
    """The same for the object in ClusterD's list, which has no checksum."""
    devices, status = content(body, where=where)
    return _trouble(
        node, devices or (), status, updated_at_s=updated_at_s, now_s=now_s, tables=tables, where=where
    )


def healthy(node: str) -> NodeTrouble:
    """The state of a node without a ConfigMap."""
    return NodeTrouble(node=node, source=FaultSource.NODE_INFO)


def check_code(devices: Sequence[BoardDevice] | None, status: str) -> str:
    """The checksum of a `NodeInfo`: SHA-256 over the struct as Go writes it."""
    listed = None
    if devices is not None:
        listed = [
            {"DeviceType": one.kind, "DeviceId": one.id, "FaultCode": one.codes, "FaultLevel": one.level}
            for one in devices
        ]
    text = json.dumps(
        {"FaultDevList": listed, "NodeStatus": status}, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(device_info.go_bytes(text)).hexdigest()


def judge(codes: Sequence[str], tables: NodeCodes) -> tuple[tuple[str, ...], Level]:
    """What NodeD makes of the raw codes of one device: unknown ones are invisible, the worst level counts."""
    known = tuple(code for code in codes if tables.level(code) is not Level.UNKNOWN)
    return known, worst((tables.level(code) for code in known), default=Level.NOT_HANDLE)


def content(info: Mapping[str, object], *, where: str) -> tuple[tuple[BoardDevice, ...] | None, str]:
    """`FaultDevList` (None: null) and `NodeStatus` of a `NodeInfo`. Raises InputError."""
    status = info.get("NodeStatus") or ""
    if not isinstance(status, str):
        raise InputError("NodeStatus is no string", where=where)
    listed = info.get("FaultDevList")
    if listed is None:
        return None, status
    if not isinstance(listed, list):
        raise InputError("FaultDevList is no array", where=where)
    if len(listed) > MAX_DEVICES:
        raise InputError(f"{len(listed)} devices are more than {MAX_DEVICES}", where=where)
    return tuple(_device(item, where=f"{where}.FaultDevList") for item in listed), status


def _device(item: object, *, where: str) -> BoardDevice:
    body = bodies.as_object(item, where=where)
    kind, level = body.get("DeviceType") or "", body.get("FaultLevel") or ""
    codes = body.get("FaultCode")
    if not isinstance(kind, str) or not isinstance(level, str):
        raise InputError("DeviceType and FaultLevel must be strings", where=where)
    if codes is not None and (not isinstance(codes, list) or not all(isinstance(one, str) for one in codes)):
        raise InputError("FaultCode must be an array of strings", where=where)
    if len(codes or ()) > MAX_CODES:
        raise InputError(f"more than {MAX_CODES} codes", where=where)
    number = bodies.as_whole_number(body.get("DeviceId"), where=f"{where}.DeviceId")
    return BoardDevice(kind, number, None if codes is None else tuple(codes), level)


def _trouble(
    node: str,
    devices: Sequence[BoardDevice],
    status: str,
    *,
    updated_at_s: float,
    now_s: float,
    tables: NodeCodes | None,
    where: str,
) -> NodeTrouble:
    known = tables or code_tables.defaults().node
    facts = [
        CodeFact(
            code=code.upper()[:64],
            level=_level(code, device, known),
            family=Family.NODE,
            part=f"{device.kind[:64]} {device.id}",
            listed=status == UNHEALTHY,
            first_seen_s=now_s,
        )
        for device in devices
        for code in device.codes or ("",)
    ]
    return node_troubles.trouble(
        node,
        source=FaultSource.NODE_INFO,
        cause=Cause.NODE_HARDWARE,
        family=Family.NODE,
        facts=facts,
        listed=status == UNHEALTHY,
        updated_at_s=updated_at_s,
        now_s=now_s,
        told_by=f"{where}: NodeStatus {status[:40] or 'not given'}",
    )


def _level(code: str, device: BoardDevice, tables: NodeCodes) -> Level:
    """The level of one code. NodeD tells one level for a device; a code that the table puts lower is lower,
    as long as another code of the device explains the level."""
    told = parse_level(device.level) if device.level else Level.UNKNOWN
    own = tables.level(code)
    if told is Level.UNKNOWN:
        return own if not device.level else told
    explained = any(tables.level(other) is told for other in device.codes or ())
    return own if explained and own is not Level.UNKNOWN and own.rank < told.rank else told
