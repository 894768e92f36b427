"""Would MS Controller load this global table as it is meant? Every group, not only the first.

The loader checks only the first server group and takes some bad tables as "every node was removed",
which scales the service in. So three things reject: what the loader refuses, what it would read as zero
nodes, and what breaks our own rules (groups 0 and 1 present, at least one server, completed). What it
takes although a person should look (wrong counts, repeated ids) warns.

Source: motor contract §1.1, §1.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mindie_ha.model.ranktables import (
    COMPLETED,
    CONTROLLER_GROUP,
    COORDINATOR_GROUP,
    FIRST_SERVER_GROUP,
    Device,
    Finding,
    FindingCode,
    GlobalTable,
    Group,
    Server,
    Severity,
)
from mindie_ha.ranktable import consumers as limits
from mindie_ha.ranktable.consumers import is_address, number
from mindie_ha.ranktable.documents import show


def validate(
    table: GlobalTable, *, multi_node: bool = True, heterogeneous: bool = False
) -> tuple[Finding, ...]:
    """All findings about `table`; publish it only if none rejects.

    `multi_node` is how we run the consumer: one group, one instance. False judges a table for its single-node
    mode (group 2 only, one server, one instance). `heterogeneous` demands a known `hardware_type`.
    """
    servers = [group for group in table.groups if _group_number(group) >= FIRST_SERVER_GROUP]
    return (
        *_check_top(table),
        *_check_groups(table, multi_node=multi_node),
        *_check_coordinators(table),
        *_check_controllers(table),
        *(finding for group in servers for finding in _check_server_group(group, multi_node, heterogeneous)),
        *_check_across(table, servers),
    )


def _check_top(table: GlobalTable) -> Iterator[Finding]:
    if table.status != COMPLETED:
        message = f"status is {show(table.status)}: every MindIE pod waits for {COMPLETED!r} when it boots"
        yield _reject(FindingCode.NOT_COMPLETED, "$.status", message)
    if table.version not in ("1.0", "1.2"):
        message = f"version {show(table.version)} is neither 1.0 nor 1.2; the consumer does not read it"
        yield _warn(FindingCode.VERSION, "$.version", message)


def _check_groups(table: GlobalTable, *, multi_node: bool) -> Iterator[Finding]:
    highest = limits.MAX_GROUPS if multi_node else limits.MAX_GROUPS_SINGLE_NODE
    if not limits.MIN_GROUPS <= len(table.groups) <= highest:
        message = f"{len(table.groups)} groups, expected {limits.MIN_GROUPS} to {highest}"
        yield _reject(FindingCode.GROUP_COUNT, "$.server_group_list", message)
    for index, group in enumerate(table.groups):
        where = f"$.server_group_list[{index}].group_id"
        if _group_number(group) < 0:
            yield _reject(FindingCode.GROUP_ID, where, f"{show(group.group_id)} is not a group number")
        if group.server_count != str(len(group.servers)):
            message = f"server_count says {show(group.server_count)}, the list has {len(group.servers)}"
            yield _warn(FindingCode.SERVER_COUNT, _where(group), message)
    for text, times in Counter(group.group_id for group in table.groups).items():
        if times > 1:
            message = f"group {show(text)} occurs {times} times"
            yield _reject(FindingCode.GROUP_ID, "$.server_group_list", message)
    for group_id, who in ((COORDINATOR_GROUP, "Coordinator"), (CONTROLLER_GROUP, "Controller")):
        if table.group(group_id) is None:
            message = f"no group {group_id}: a {who} pod does not find itself"
            yield _reject(FindingCode.GROUP_MISSING, "$.server_group_list", message)


def _check_coordinators(table: GlobalTable) -> Iterator[Finding]:
    group = table.group(COORDINATOR_GROUP)
    if group is None:
        return
    if len(group.servers) > limits.MAX_COORDINATORS:
        message = f"{len(group.servers)} Coordinators, MS Controller takes {limits.MAX_COORDINATORS}"
        yield _reject(FindingCode.SERVER_COUNT, _where(group), message)
    for index, server in enumerate(group.servers):
        if not is_address(server.server_ip):
            message = f"server_ip {show(server.server_ip)} is not an address"
            yield _reject(FindingCode.SERVER_IP, _where(group, index), message)


def _check_controllers(table: GlobalTable) -> Iterator[Finding]:
    group = table.group(CONTROLLER_GROUP)
    for index, server in enumerate(group.servers if group else ()):
        if group and not is_address(server.server_ip):
            message = (
                f"server_ip {show(server.server_ip)} is not an address: that Controller does not find itself"
            )
            yield _warn(FindingCode.SERVER_IP, _where(group, index), message)


def _check_server_group(group: Group, multi_node: bool, heterogeneous: bool) -> Iterator[Finding]:
    where = _where(group)
    if not group.servers:
        yield _reject(
            FindingCode.NO_SERVERS, where, "no servers: the consumer may take it as all nodes removed"
        )
    if len(group.servers) > limits.MAX_SERVERS:
        message = f"{len(group.servers)} servers, MS Controller takes {limits.MAX_SERVERS}"
        yield _reject(FindingCode.SERVER_COUNT, where, message)
    if group.deploy_server:
        if number(group.deploy_server, at_most=limits.MAX_DEPLOY_VALUE) is None:
            message = f"deploy_server {show(group.deploy_server)} is not a number"
            yield _reject(FindingCode.DEPLOY_VALUE, where, message)
    elif multi_node:
        yield _warn(FindingCode.DEPLOY_NONE, where, "no deploy_server: P and D cannot be told apart by it")
    for index, server in enumerate(group.servers):
        yield from _check_server(server, where=_where(group, index), heterogeneous=heterogeneous)
    if multi_node:
        yield from _check_group_ranks(group)
    yield from _check_super_pods(group)


def _check_server(server: Server, *, where: str, heterogeneous: bool) -> Iterator[Finding]:
    if not is_address(server.server_ip):
        message = f"{show(server.server_ip)} is not an address"
        yield _reject(FindingCode.SERVER_IP, f"{where}.server_ip", message)
    if not is_address(server.server_id):
        message = f"{show(server.server_id)} is not the address of a host"
        yield _reject(FindingCode.SERVER_ID, f"{where}.server_id", message)
    if heterogeneous and server.hardware_type not in limits.HARDWARE_TYPES:
        message = f"{show(server.hardware_type)} is not one of {', '.join(limits.HARDWARE_TYPES)}"
        yield _reject(FindingCode.HARDWARE_TYPE, f"{where}.hardware_type", message)
    ports = server.ports
    for port in (ports.predict, ports.mgmt, ports.metric, ports.inter_comm):
        if port and number(port, at_least=limits.MIN_PORT, at_most=limits.MAX_PORT) is None:
            message = f"port {show(port)} is not between {limits.MIN_PORT} and {limits.MAX_PORT}"
            yield _reject(FindingCode.PORT, where, message)
    if not limits.MIN_DEVICES <= len(server.devices) <= limits.MAX_DEVICES:
        message = f"{len(server.devices)} devices, expected {limits.MIN_DEVICES} to {limits.MAX_DEVICES}"
        yield _reject(FindingCode.DEVICE_COUNT, f"{where}.device", message)
    for position, device in enumerate(server.devices):
        yield from _check_device(device, where=f"{where}.device[{position}]")


def _check_device(device: Device, *, where: str) -> Iterator[Finding]:
    if not is_address(device.device_ip):
        message = f"{show(device.device_ip)} is not an address"
        yield _reject(FindingCode.DEVICE_IP, f"{where}.device_ip", message)
    numbers = (
        (FindingCode.DEVICE_ID, "device_id", device.device_id),
        (FindingCode.DEVICE_ID, "device_logical_id", device.device_logical_id),
        (FindingCode.RANK, "rank_id", device.rank_id),
    )
    for code, key, text in numbers:
        if number(text, at_most=limits.MAX_DEVICE_NUMBER) is None:
            message = f"{show(text)} is not a number from 0 to {limits.MAX_DEVICE_NUMBER}"
            yield _reject(code, f"{where}.{key}", message)
    super_id = device.super_device_id
    if super_id and number(super_id, at_most=limits.MAX_SUPER_DEVICE_ID) is None:
        message = f"{show(super_id)} is not a number from 0 to {limits.MAX_SUPER_DEVICE_ID}"
        yield _reject(FindingCode.SUPER_DEVICE_ID, f"{where}.super_device_id", message)


def _check_group_ranks(group: Group) -> Iterator[Finding]:
    ranks = Counter(device.rank_id for server in group.servers for device in server.devices)
    repeated = [rank for rank, times in ranks.items() if times > 1]
    if repeated:
        message = f"rank {show(repeated[0])} occurs {ranks[repeated[0]]} times: the master is the lowest rank"
        yield _warn(FindingCode.RANK, _where(group), message)


def _check_super_pods(group: Group) -> Iterator[Finding]:
    if not group.super_pods:
        return
    hosts = {server.server_id for server in group.servers}
    listed = Counter(host for pod in group.super_pods for host in set(pod.server_ids))
    unknown = sorted(set(listed) - hosts)
    if unknown:
        yield _warn(
            FindingCode.SUPER_POD, _where(group), f"super pod names {show(unknown[0])}, no host of the group"
        )
    missing = sorted(hosts - set(listed))
    if missing:
        yield _warn(FindingCode.SUPER_POD, _where(group), f"host {show(missing[0])} is in no super pod")
    several = sorted(host for host, times in listed.items() if times > 1)
    if several:
        yield _warn(FindingCode.SUPER_POD, _where(group), f"host {show(several[0])} is in several super pods")


def _check_across(table: GlobalTable, groups: list[Group]) -> Iterator[Finding]:
    servers = [server for group in groups for server in group.servers]
    if not servers:
        message = "no server in any group: the consumer would scale the whole service in"
        yield _reject(FindingCode.NO_SERVERS, "$.server_group_list", message)
    yield from _check_endpoints(servers)
    hosts = Counter(server.server_id for server in servers)
    for host in sorted(host for host, times in hosts.items() if times > 1):
        message = f"{hosts[host]} servers have server_id {show(host)}; server_ip and cards tell them apart"
        yield _warn(FindingCode.SERVER_ID_REPEATED, "$.server_group_list", message)
    cards = Counter((server.server_id, device.device_id) for server in servers for device in server.devices)
    for host, device_id in sorted(card for card, times in cards.items() if times > 1):
        message = f"card {show(device_id)} of host {show(host)} belongs to several servers"
        yield _warn(FindingCode.CARD_REPEATED, "$.server_group_list", message)
    addresses = Counter(device.device_ip for server in servers for device in server.devices)
    for address in sorted(address for address, times in addresses.items() if times > 1):
        message = f"several cards have device_ip {show(address)}"
        yield _warn(FindingCode.DEVICE_IP_REPEATED, "$.server_group_list", message)
    ms = [server.server_ip for group in table.groups if group not in groups for server in group.servers]
    pods = Counter([*ms, *{server.server_ip for server in servers}])
    for address in sorted(address for address, times in pods.items() if times > 1):
        message = f"{show(address)} stands in several groups: its pod boots as one of them only"
        yield _warn(FindingCode.ADDRESS_REPEATED, "$.server_group_list", message)


def _check_endpoints(servers: list[Server]) -> Iterator[Finding]:
    """The loader answers a repeated ip+port with success and zero nodes."""
    kinds = (
        ("mgmt_port", Counter((s.server_ip, s.ports.mgmt or limits.DEFAULT_MGMT_PORT) for s in servers)),
        (
            "predict_port",
            Counter((s.server_ip, s.ports.predict or limits.DEFAULT_PREDICT_PORT) for s in servers),
        ),
    )
    for key, endpoints in kinds:
        for address, port in sorted(endpoint for endpoint, times in endpoints.items() if times > 1):
            message = f"several servers have address {show(address)} and {key} {show(port)}"
            yield _reject(FindingCode.ADDRESS_REPEATED, "$.server_group_list", message)


def _group_number(group: Group) -> int:
    value = number(group.group_id, at_most=limits.MAX_DEPLOY_VALUE)
    return value if value is not None and str(value) == group.group_id else -1


def _where(group: Group, server: int | None = None) -> str:
    place = f"group {show(group.group_id)}"
    return place if server is None else f"{place} server_list[{server}]"


def _reject(code: FindingCode, where: str, message: str) -> Finding:
    return Finding(Severity.REJECT, code, where, message)


def _warn(code: FindingCode, where: str, message: str) -> Finding:
    return Finding(Severity.WARN, code, where, message)


__all__ = ["validate"]
