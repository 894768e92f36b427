"""Checked instances and MS pods -> the global table of one service.

Promise: a pure function whose result does not depend on any input order. Groups 0 and 1 are always
there, then the instances by id; inside a group of an instance servers stand by rank, in groups 0 and 1
pods by name. `server_count` is counted, never copied. Devices keep the order of hccl.json, because their
position is their logical id.

`version` is the highest of the instances: services may mix 1.0 and 1.2, the reference then takes an
arbitrary one, the consumer never reads it, and the highest is the one whose fields include the others'.

Source: rank table contract §2; where it is better than the reference,
tests/ranktable/test_worked_examples.py says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from mindie_ha.model.ranktables import (
    CONTROLLER_GROUP,
    COORDINATOR_GROUP,
    FIRST_SERVER_GROUP,
    Device,
    GlobalTable,
    Group,
    HcclServer,
    HcclTable,
    MsPod,
    RanktableError,
    Server,
    SuperPod,
    TableInstance,
)
from mindie_ha.ranktable.consumers import MAX_DEVICE_NUMBER, is_address, number
from mindie_ha.ranktable.instances import host_of


def build(
    *,
    coordinators: Iterable[MsPod],
    controllers: Iterable[MsPod],
    instances: Iterable[TableInstance],
    ids: Mapping[str, int],
) -> GlobalTable:
    """The global table. `instances` have passed `check_instance`; `ids` comes from `assign_ids`.

    MS pods that are not alive or have no addresses yet are left out. Raises RanktableError if an instance has
    no id, two have the same, or one is listed twice: that is our own mistake, and publishing would spread it.
    """
    chosen = sorted(instances, key=lambda instance: (ids.get(instance.key, 0), instance.key))
    _check_ids(chosen, ids)
    return GlobalTable(
        version=_version([instance.table for instance in chosen]),
        groups=(
            _ms_group(COORDINATOR_GROUP, coordinators),
            _ms_group(CONTROLLER_GROUP, controllers),
            *(_instance_group(ids[instance.key], instance) for instance in chosen),
        ),
    )


def _check_ids(instances: list[TableInstance], ids: Mapping[str, int]) -> None:
    owners: dict[int, str] = {}
    for instance in instances:
        group_id = ids.get(instance.key, 0)
        if group_id < FIRST_SERVER_GROUP:
            raise RanktableError("no group id", where=instance.key, advice="assign ids before building")
        if group_id in owners:
            what = f"group id {group_id} already belongs to {owners[group_id]}"
            raise RanktableError(what, where=instance.key, advice="list it once, with its own id")
        owners[group_id] = instance.key


def _version(tables: list[HcclTable]) -> str:
    return max((table.version or _version_of_devices(table) for table in tables), default="1.0")


def _version_of_devices(table: HcclTable) -> str:
    super_ids = any(device.super_device_id for server in table.servers for device in server.devices)
    return "1.2" if super_ids or table.super_pods else "1.0"


def _ms_group(group_id: int, pods: Iterable[MsPod]) -> Group:
    usable = [pod for pod in pods if pod.alive and is_address(pod.host_ip) and is_address(pod.pod_ip)]
    usable.sort(key=lambda pod: (pod.name, pod.pod_ip, pod.host_ip))
    servers = tuple(Server(server_id=pod.host_ip, server_ip=pod.pod_ip) for pod in usable)
    return Group(group_id=str(group_id), servers=servers, server_count=str(len(servers)))


def _instance_group(group_id: int, instance: TableInstance) -> Group:
    servers, super_pods = _content(instance.table)
    return Group(
        group_id=str(group_id),
        servers=servers,
        server_count=str(len(servers)),
        deploy_server=instance.deploy_server,
        super_pods=super_pods,
    )


@lru_cache(maxsize=1024)  # a service is looked at far more often than its tables change
def _content(table: HcclTable) -> tuple[tuple[Server, ...], tuple[SuperPod, ...]]:
    ordered = sorted(table.servers, key=_server_order)
    return tuple(_server(server) for server in ordered), _super_pods(ordered, table.super_pods)


def _server_order(server: HcclServer) -> tuple[int, str, str]:
    return (
        min((_order(device.rank_id) for device in server.devices), default=0),
        server.container_ip,
        server.server_id,
    )


def _server(server: HcclServer) -> Server:
    return Server(
        server_id=host_of(server),
        server_ip=server.container_ip,
        devices=tuple(_numbered(device, position) for position, device in enumerate(server.devices)),
        hardware_type=server.hardware_type,
    )


def _numbered(device: Device, position: int) -> Device:
    return replace(device, device_logical_id=str(position))


def _super_pods(ordered: list[HcclServer], super_pods: tuple[SuperPod, ...]) -> tuple[SuperPod, ...]:
    """Super pods by number, their hosts by rank and each once; empty ones are left out."""
    hosts_of: dict[str, dict[str, None]] = {pod.super_pod_id: {} for pod in super_pods}
    members = [(pod.super_pod_id, frozenset(pod.server_ids)) for pod in super_pods]
    for server in ordered:
        for super_pod_id, server_ids in members:
            if server.server_id in server_ids:
                hosts_of[super_pod_id][host_of(server)] = None
    by_number = sorted(hosts_of.items(), key=lambda item: (_order(item[0]), item[0]))
    return tuple(SuperPod(super_pod_id=key, server_ids=tuple(hosts)) for key, hosts in by_number if hosts)


def _order(text: str) -> int:
    value = number(text, at_most=10**10)
    return MAX_DEVICE_NUMBER + 1 if value is None else value


__all__ = ["build"]
