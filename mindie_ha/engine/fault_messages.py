"""What consumers of fault messages are told of the faults we know. Pure.

A consumer hears of the nodes under its own pods: faults of cards that these pods hold, and faults of the
nodes as such. Faults of pods and members are ours to answer and nobody else's to hear.

A lost node is told when it counts as lost, not at the first missed heartbeat: a consumer takes `UnHealthy`
as a reason to give an instance up, and a `normal` afterwards does not stop it (motor contract §5.2). So is a
code that a silence window still bears with: the reference takes it out of its messages, too.

Source: fault input contract §4.7; rank table contract §5.1.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping

from mindie_ha.channels.fault_signals import CodeLevel, DeviceFaults, NodeFaults, SwitchCode
from mindie_ha.model.faults import CodeFact, Fault, FaultSource
from mindie_ha.model.health import worse_level
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod
from mindie_ha.policy.effects import row_of

SEPARATE = "SeparateNPU"
NPU, SWITCH, NODE = "NPU", "Switch", "Node"
NO_NUMBER = "-1"
_ON_SWITCH = re.compile(r"chip (\d+)(?: port (\d+))?\Z")
_ON_BOARD = re.compile(r"(.+) (\S+)\Z")
_TOLD = {
    FaultSource.DEVICE: NPU,
    FaultSource.PUBLIC: NPU,
    FaultSource.SWITCH: SWITCH,
    FaultSource.NODE_INFO: NODE,
    FaultSource.NODE: NODE,
}


def node_faults(
    faults: Iterable[Fault], *, nodes: Mapping[str, Node], pods: Iterable[Pod]
) -> tuple[NodeFaults, ...]:
    """`faults` by node, in the order of the wire. `pods` tell the addresses of their nodes."""
    by_node: dict[str, list[Fault]] = {}
    for fault in faults:
        if fault.node and fault.source in _TOLD and (fault.acts or fault.source is not FaultSource.NODE):
            by_node.setdefault(fault.node, []).append(fault)
    if not by_node:
        return ()
    host_ips = {pod.node: pod.host_ip for pod in pods if pod.host_ip}
    return tuple(
        sorted(
            told
            for name, found in by_node.items()
            if (told := _node(name, found, node=nodes.get(name), host_ip=host_ips.get(name, ""))).devices
        )
    )


def _node(name: str, faults: list[Fault], *, node: Node | None, host_ip: str) -> NodeFaults:
    by_device: dict[tuple[str, str], list[CodeFact]] = {}
    for fault in faults:
        for fact in _facts(fault):
            by_device.setdefault(_device_of(fault, fact), []).append(fact)
    return NodeFaults(
        ip=host_ip or _address(node),
        name=name,
        serial=node.serial if node is not None else "",
        devices=tuple(_device(*key, found) for key, found in sorted(by_device.items())),
    )


def _facts(fault: Fault) -> tuple[CodeFact, ...]:
    """The codes to tell: those that are answered later, if they last, are not told before."""
    if not fault.details:
        return (CodeFact("", Level.UNEXPLAINED, Family.CHIP, listed=True),)
    if fault.acts:
        return fault.details
    return tuple(fact for fact in fault.details if not row_of(fact.family, fact.level).inference.recovers)


def _device_of(fault: Fault, fact: CodeFact) -> tuple[str, str]:
    """Number and type."""
    kind = _TOLD[fault.source]
    board = _ON_BOARD.match(fact.part) if fault.source is FaultSource.NODE_INFO else None
    if board is not None:
        return board[2], board[1]
    return (fault.device.rpartition("-")[2] if kind == NPU and fault.device else NO_NUMBER), kind


def _device(number: str, kind: str, facts: list[CodeFact]) -> DeviceFaults:
    levels: dict[str, str] = {}
    for fact in facts:
        level = _level(fact)
        levels[fact.code] = worse_level(levels.get(fact.code, level), level)
    codes = tuple(CodeLevel(code, level) for code, level in sorted(levels.items()))
    switch = sorted({_switch_code(fact) for fact in facts}) if kind == SWITCH else ()
    return DeviceFaults(number, kind, codes, tuple(switch))


def _switch_code(fact: CodeFact) -> SwitchCode:
    place = _ON_SWITCH.match(fact.part)
    chip, port = (place[1], place[2] or "") if place is not None else ("", "")
    return SwitchCode(fact.code, chip, port, f"{fact.told_at_s:.0f}" if fact.told_at_s else "", _level(fact))


def _level(fact: CodeFact) -> str:
    """A text that consumers know; what its writer lists as unhealthy is, whatever it is called."""
    unknown = fact.level in (Level.UNKNOWN, Level.UNEXPLAINED)
    return SEPARATE if unknown and fact.listed else str(fact.level)


def _address(node: Node | None) -> str:
    for address in node.addresses if node is not None else ():
        try:
            return str(ipaddress.ip_address(address))
        except ValueError:
            continue  # a host name
    return ""


__all__ = ["node_faults"]
