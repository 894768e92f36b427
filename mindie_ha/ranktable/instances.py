"""May this instance be published? Its hccl.json against its pods and the consumer's limits.

Promise: an instance without a rejecting finding lists exactly the live pods of the instance, each once,
by UID and address, with ranks 0..n-1 and cards that belong to one pod only; MS Controller's loader takes
its group. Everything wrong is named, not only the first thing, so a person corrects it once.

Pods decide, not ids in the table: a `server_id` that is a live pod's UID names that pod; an address or
any other opaque text says nothing, then the pod's address does; a UID of nobody alive is a table of a
past life, even if its address was given to a new pod.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from mindie_ha.model.ranktables import (
    COMPLETED,
    Device,
    Finding,
    FindingCode,
    HcclServer,
    HcclTable,
    InstancePod,
    Severity,
)
from mindie_ha.ranktable.consumers import (
    MAX_DEVICE_NUMBER,
    MAX_DEVICES,
    MAX_SERVERS,
    MAX_SUPER_DEVICE_ID,
    MIN_DEVICES,
    is_address,
    number,
)
from mindie_ha.ranktable.deploys import check_deploy
from mindie_ha.ranktable.documents import show

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


def check_instance(
    table: HcclTable, *, pods: Iterable[InstancePod], replicas: int, labels: Mapping[str, str]
) -> tuple[Finding, ...]:
    """All findings about one instance; publish it only if none rejects.

    `pods` are all pod objects of the instance, `replicas` the wanted number, `labels` those of its
    rings-config ConfigMap (the deploy labels).
    """
    deploy = check_deploy(labels)
    if not table.completed:
        message = f"status is {show(table.status)}, not {COMPLETED!r}: the operator waits for pods or devices"
        return (*deploy, _reject(FindingCode.NOT_COMPLETED, "$.status", message))
    version, content = _check_table(table)
    return (
        *deploy,
        *version,
        *_check_counts(table, replicas=replicas),
        *_check_members(table, pods=tuple(pod for pod in pods if pod.alive)),
        *content,
    )


@lru_cache(maxsize=1024)  # a service is looked at far more often than its tables change
def _check_table(table: HcclTable) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What the table alone says: about its version, and about its content."""
    content = (
        *_check_devices(table),
        *_check_ranks(table),
        *_check_cards(table),
        *_check_super_pods(table),
    )
    return tuple(_check_version(table)), content


def host_of(server: HcclServer) -> str:
    """The host address of a server: `host_ip`, or `server_id` where that is an address; else ""."""
    if server.host_ip:
        return server.host_ip
    return server.server_id if is_address(server.server_id) else ""


def _check_version(table: HcclTable) -> Iterator[Finding]:
    devices = [device for server in table.servers for device in server.devices]
    with_super_id = sum(1 for device in devices if device.super_device_id)
    if not table.version:
        yield _warn(FindingCode.VERSION, "$.version", "no version, taken from the devices")
    elif table.version == "1.0" and (table.super_pods or with_super_id):
        yield _warn(FindingCode.VERSION, "$.version", "1.0 (A2) with super pods, which belong to 1.2 (A3)")
    elif table.version == "1.2" and with_super_id < len(devices):
        missing = len(devices) - with_super_id
        yield _warn(
            FindingCode.VERSION, "$.version", f"1.2 (A3), but {missing} devices have no super_device_id"
        )


def _check_counts(table: HcclTable, *, replicas: int) -> Iterator[Finding]:
    count = len(table.servers)
    if count == 0:
        yield _reject(FindingCode.NO_SERVERS, "$.server_list", "completed without any server")
    if count > MAX_SERVERS:
        message = f"{count} servers, MS Controller takes {MAX_SERVERS}"
        yield _reject(FindingCode.SERVER_COUNT, "$.server_list", message)
    if count != replicas:
        message = f"{count} servers for {replicas} replicas"
        yield _reject(FindingCode.REPLICAS, "$.server_list", message)
    if not table.server_count:
        yield _warn(FindingCode.SERVER_COUNT, "$.server_count", "no server_count, counted from the list")
    elif table.server_count != str(count):
        message = f"server_count says {show(table.server_count)}, the list has {count}"
        yield _reject(FindingCode.SERVER_COUNT, "$.server_count", message)


def _check_members(table: HcclTable, *, pods: tuple[InstancePod, ...]) -> Iterator[Finding]:
    by_uid = {pod.uid: pod for pod in pods}
    by_ip = {pod.pod_ip: pod for pod in pods if pod.pod_ip}
    matched: Counter[str] = Counter()
    for index, server in enumerate(table.servers):
        where = f"$.server_list[{index}]"
        pod = by_uid.get(server.server_id)
        if pod is None and not _UUID.match(server.server_id):
            pod = by_ip.get(server.container_ip)
        if pod is None:
            yield _no_pod(server, pods, where)
            continue
        matched[pod.uid] += 1
        yield from _check_addresses(server, pod, where)
    for pod in pods:
        if matched[pod.uid] == 0:
            message = f"live pod {pod.name} (uid {pod.uid}) is not in the table"
            yield _reject(FindingCode.POD_MISSING, "$.server_list", message)
        elif matched[pod.uid] > 1:
            message = f"pod {pod.name} is listed {matched[pod.uid]} times"
            yield _reject(FindingCode.ADDRESS_REPEATED, "$.server_list", message)


def _no_pod(server: HcclServer, pods: tuple[InstancePod, ...], where: str) -> Finding:
    named = {server.server_id, server.host_ip}
    for pod in pods:
        if pod.host_ip and pod.host_ip == server.container_ip and pod.pod_ip in named:
            return _swapped(pod, where)
    message = f"no live pod has server_id {show(server.server_id)} or address {show(server.container_ip)}"
    return _reject(FindingCode.POD_STALE, where, message)


def _check_addresses(server: HcclServer, pod: InstancePod, where: str) -> Iterator[Finding]:
    host = host_of(server)
    if server.container_ip == pod.host_ip != pod.pod_ip and host in {pod.pod_ip, ""}:
        yield _swapped(pod, where)
        return
    if not is_address(server.container_ip):
        message = (
            f"container_ip {show(server.container_ip)} is not an address, pod {pod.name} has {pod.pod_ip}"
        )
        yield _reject(FindingCode.POD_IP, f"{where}.container_ip", message)
    elif server.container_ip != pod.pod_ip:
        message = f"container_ip {server.container_ip}, but pod {pod.name} has {show(pod.pod_ip)}"
        yield _reject(FindingCode.POD_IP, f"{where}.container_ip", message)
    if not is_address(host):
        message = f"host address {show(host)} is not an address, pod {pod.name} runs on {pod.host_ip}"
        yield _reject(FindingCode.HOST_IP, f"{where}.host_ip", message)
    elif host != pod.host_ip:
        message = f"host address {host}, but pod {pod.name} runs on {show(pod.host_ip)}"
        yield _reject(FindingCode.HOST_IP, f"{where}.host_ip", message)


def _swapped(pod: InstancePod, where: str) -> Finding:
    message = f"host and pod address are swapped: pod {pod.name} has {pod.pod_ip} on host {pod.host_ip}"
    return _reject(FindingCode.SWAPPED, where, message)


def _check_devices(table: HcclTable) -> Iterator[Finding]:
    seen: Counter[str] = Counter()
    for index, server in enumerate(table.servers):
        where = f"$.server_list[{index}].device"
        count = len(server.devices)
        if not MIN_DEVICES <= count <= MAX_DEVICES:
            message = f"{count} devices, expected {MIN_DEVICES} to {MAX_DEVICES}"
            yield _reject(FindingCode.DEVICE_COUNT, where, message)
        node = host_of(server) or server.server_id
        for position, device in enumerate(server.devices):
            seen[device.device_ip] += 1
            yield from _check_device(device, node=node, where=f"{where}[{position}]")
    repeated = sorted(address for address, times in seen.items() if times > 1 and is_address(address))
    if repeated:
        message = f"several cards have the same device_ip {repeated[0]}"
        yield _warn(FindingCode.DEVICE_IP_REPEATED, "$.server_list", message)


def _check_device(device: Device, *, node: str, where: str) -> Iterator[Finding]:
    if not is_address(device.device_ip):
        message = f"device IP unknown on node {show(node)}: {show(device.device_ip)} is not an address"
        yield _reject(FindingCode.DEVICE_IP, f"{where}.device_ip", message)
    if number(device.device_id, at_most=MAX_DEVICE_NUMBER) is None:
        message = f"{show(device.device_id)} is not a number from 0 to {MAX_DEVICE_NUMBER}"
        yield _reject(FindingCode.DEVICE_ID, f"{where}.device_id", message)
    if device.super_device_id and number(device.super_device_id, at_most=MAX_SUPER_DEVICE_ID) is None:
        message = f"{show(device.super_device_id)} is not a number from 0 to {MAX_SUPER_DEVICE_ID}"
        yield _reject(FindingCode.SUPER_DEVICE_ID, f"{where}.super_device_id", message)


def _check_ranks(table: HcclTable) -> Iterator[Finding]:
    ranks: list[int] = []
    for index, server in enumerate(table.servers):
        for position, device in enumerate(server.devices):
            rank = number(device.rank_id, at_most=MAX_DEVICE_NUMBER)
            if rank is None:
                message = f"{show(device.rank_id)} is not a number from 0 to {MAX_DEVICE_NUMBER}"
                yield _reject(FindingCode.RANK, f"$.server_list[{index}].device[{position}].rank_id", message)
            else:
                ranks.append(rank)
    repeated = sorted(rank for rank, times in Counter(ranks).items() if times > 1)
    if repeated:
        yield _reject(FindingCode.RANK, "$.server_list", f"rank {repeated[0]} occurs more than once")
    missing = sorted(set(range(len(ranks))) - set(ranks))
    if missing:
        message = f"ranks are not 0..{len(ranks) - 1} without gaps: {missing[0]} is missing"
        yield _reject(FindingCode.RANK, "$.server_list", message)


def _check_cards(table: HcclTable) -> Iterator[Finding]:
    cards = Counter(
        (host_of(server), device.device_id) for server in table.servers for device in server.devices
    )
    for (host, device_id), times in sorted(cards.items()):
        if times > 1:
            message = f"card {show(device_id)} of host {show(host)} is listed {times} times"
            yield _reject(FindingCode.CARD_REPEATED, "$.server_list", message)


def _check_super_pods(table: HcclTable) -> Iterator[Finding]:
    known = {server.server_id for server in table.servers}
    for index, pod in enumerate(table.super_pods):
        unknown = [server_id for server_id in pod.server_ids if server_id not in known]
        if unknown:
            message = f"{show(unknown[0])} is not in server_list, left out of the super pod"
            yield _warn(FindingCode.SUPER_POD, f"$.super_pod_list[{index}]", message)


def _reject(code: FindingCode, where: str, message: str) -> Finding:
    return Finding(Severity.REJECT, code, where, message)


def _warn(code: FindingCode, where: str, message: str) -> Finding:
    return Finding(Severity.WARN, code, where, message)


__all__ = ["check_instance", "host_of"]
