"""`SwitchInfoCfg` of the device report -> what the in-node switch (A3, A5) suffers.

It has no checksum. It is taken whole or not at all: one element that is no JSON refuses the update, and the
caller keeps the last good one. An empty `NodeStatus` means that nothing is known about the switch, which is
no fault. Equal codes on two ports are two facts; both forms of the time map's keys are read
(`<code>`, `<code>_<chip>_<port>`). A status that no code explains (all L1-L2 ports down) acts by itself.

Source: fault input contract §1.3, §1.5, §2.4, §8.1; vectors V33-V44; cases 037, 047.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mindie_ha.intake import bodies, code_tables, node_troubles
from mindie_ha.intake.code_tables import SwitchCodes
from mindie_ha.intake.stamps import to_seconds
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause, CodeFact, FaultSource
from mindie_ha.model.levels import Family, Level, parse_level
from mindie_ha.model.nodes import NodeTrouble

KEY = "SwitchInfoCfg"
MAX_CODES = 1024  # the driver answers at most 128 events
UNHEALTHY = "UnHealthy"
_PORT_KEY = re.compile(r"(?P<code>.*)_(?P<chip>[0-9]{1,10})_(?P<port>[0-9]{1,10})\Z", re.DOTALL)
_WHOLE_CHIP = 0xFFFFFFFF


def parse(
    node: str, text: str, *, where: str, now_s: float, tables: SwitchCodes | None = None
) -> NodeTrouble | None:
    """The switch's state by the text of the key; None: there is no information."""
    return read(node, bodies.parse_object(text, where=where), where=where, now_s=now_s, tables=tables)


def read(
    node: str,
    body: Mapping[str, object],
    *,
    where: str,
    now_s: float,
    tables: SwitchCodes | None = None,
) -> NodeTrouble | None:
    """The same for the parsed object, as ClusterD's list holds it."""
    status = _text(body, "NodeStatus", where)
    codes = body.get("FaultCode")
    if codes is not None and not isinstance(codes, list):
        raise InputError("FaultCode is no array", where=where)
    if len(codes or ()) > MAX_CODES:
        raise InputError(f"{len(codes or ())} faults are more than {MAX_CODES}", where=where)
    updated_at_s = to_seconds(body.get("UpdateTime"))
    if not status:
        return None
    times = _times(body.get("FaultTimeAndLevelMap"))
    summary = _text(body, "FaultLevel", where)
    known = tables or code_tables.defaults().switch
    facts = [
        _fact(element, times, summary, known, listed=status == UNHEALTHY, where=where, now_s=now_s)
        for element in codes or ()
    ]
    return node_troubles.trouble(
        node,
        source=FaultSource.SWITCH,
        cause=Cause.SWITCH_UNHEALTHY,
        family=Family.SWITCH,
        facts=facts,
        listed=status == UNHEALTHY,
        updated_at_s=updated_at_s,
        now_s=now_s,
        told_by=f"{where}: NodeStatus {status[:40]}",
    )


def split_key(key: str) -> tuple[str, str]:
    """A key of the time map as code and part: `<code>_3_17` is chip 3 port 17 of `<code>`."""
    match = _PORT_KEY.match(key)
    return (match["code"], _part(int(match["chip"]), int(match["port"]))) if match else (key, "")


def _fact(
    element: object,
    times: Mapping[tuple[str, str], tuple[str, float]],
    summary: str,
    tables: SwitchCodes,
    *,
    listed: bool,
    where: str,
    now_s: float,
) -> CodeFact:
    body = element if isinstance(element, dict) else None
    if isinstance(element, str):
        body = bodies.parse_object(element, where=f"{where}.FaultCode")
    if body is None:
        raise InputError("an element of FaultCode is neither an object nor a string", where=where)
    code = _text(body, "AssembledFaultCode", where).strip()[:64]
    part = _part(_number(body, "SwitchChipId", where), _number(body, "SwitchPortId", where))
    level_text, time_s = times.get((code, part)) or times.get((code, "")) or ("", 0.0)
    level = parse_level(level_text) if level_text else tables.level(code)
    if level is Level.UNKNOWN and not level_text and summary:
        level = parse_level(summary)
    return CodeFact(
        code=code,
        level=level,
        family=Family.SWITCH,
        part=part,
        listed=listed,
        first_seen_s=now_s,
        told_at_s=time_s or to_seconds(body.get("AlarmRaisedTime")),
    )


def _times(value: object) -> dict[tuple[str, str], tuple[str, float]]:
    found: dict[tuple[str, str], tuple[str, float]] = {}
    for key, entry in list(value.items())[:MAX_CODES] if isinstance(value, dict) else ():
        if isinstance(entry, dict):
            level = entry.get("fault_level")
            told = level if isinstance(level, str) else ""
            found[split_key(key)] = (told, to_seconds(entry.get("fault_time")))
    return found


def _part(chip: int, port: int) -> str:
    return f"chip {chip}" if port == _WHOLE_CHIP else f"chip {chip} port {port}"


def _number(body: Mapping[str, object], name: str, where: str) -> int:
    return bodies.as_whole_number(body.get(name), where=f"{where}.{name}")


def _text(body: Mapping[str, object], name: str, where: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{name} is no string", where=where)
    return value
