"""Builders of small honest tables, so that a test shows only what is special about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mindie_ha.model.ranktables import (
    Device,
    Finding,
    GlobalTable,
    HcclServer,
    HcclTable,
    InstancePod,
    MsPod,
    Severity,
    SuperPod,
    TableInstance,
)
from mindie_ha.ranktable.build import build
from mindie_ha.ranktable.ids import assign_ids
from mindie_ha.ranktable.instances import check_instance

DECODE_LABELS = {"grt-group/deploy-server": "1"}
COORDINATOR = MsPod(name="coordinator-0", host_ip="10.0.0.11", pod_ip="192.168.10.5")
CONTROLLER = MsPod(name="controller-0", host_ip="10.0.0.12", pod_ip="192.168.11.6")


def instance(number: int = 1, *, servers: int = 1, cards: int = 2) -> HcclTable:
    """A completed 1.0 table whose addresses are unique per `number`, from 1."""
    return HcclTable(
        status="completed",
        version="1.0",
        server_count=str(servers),
        servers=tuple(
            HcclServer(
                server_id=f"10.0.{number}.{index + 1}",
                host_ip=f"10.0.{number}.{index + 1}",
                container_ip=f"172.16.{number}.{index + 1}",
                devices=tuple(
                    Device(
                        device_id=str(card),
                        device_ip=f"29.{number}.{index + 1}.{card + 1}",
                        rank_id=str(index * cards + card),
                    )
                    for card in range(cards)
                ),
            )
            for index in range(servers)
        ),
    )


def super_pod_instance(number: int = 1, *, servers: int = 2, cards: int = 2) -> HcclTable:
    """A completed 1.2 table whose server ids are pod UIDs, in one super pod "3"."""
    plain = instance(number, servers=servers, cards=cards)
    renamed = tuple(
        replace(
            server,
            server_id=uid(number, index),
            devices=tuple(
                replace(device, super_device_id=str(1000 * index + position))
                for position, device in enumerate(server.devices)
            ),
        )
        for index, server in enumerate(plain.servers)
    )
    super_pod = SuperPod("3", tuple(server.server_id for server in renamed))
    return replace(plain, version="1.2", servers=renamed, super_pods=(super_pod,))


def uid(number: int, index: int) -> str:
    """The UID of a pod of `instance(number)`."""
    return f"{number:08x}-0000-4000-8000-{index:012x}"


def pods_of(table: HcclTable, number: int = 1) -> tuple[InstancePod, ...]:
    """The live pods that `table` describes."""
    return tuple(
        InstancePod(
            name=f"server-{index}",
            uid=uid(number, index),
            host_ip=server.host_ip or server.server_id,
            pod_ip=server.container_ip,
        )
        for index, server in enumerate(table.servers)
    )


def hccl_text(table: HcclTable) -> str:
    """`table` as the operator writes it."""
    root: dict[str, object] = {
        "status": table.status,
        "server_list": [
            {
                "device": [
                    {
                        "device_id": device.device_id,
                        "device_ip": device.device_ip,
                        **({"super_device_id": device.super_device_id} if device.super_device_id else {}),
                        "rank_id": device.rank_id,
                    }
                    for device in server.devices
                ],
                "server_id": server.server_id,
                "host_ip": server.host_ip,
                "container_ip": server.container_ip,
            }
            for server in table.servers
        ],
        "server_count": table.server_count,
        "version": table.version,
    }
    if table.version == "1.2":
        root["super_pod_list"] = [
            {
                "super_pod_id": pod.super_pod_id,
                "server_list": [{"server_id": item} for item in pod.server_ids],
            }
            for pod in table.super_pods
        ]
    return json.dumps(root)


def judge(
    table: HcclTable,
    *,
    pods: Sequence[InstancePod] | None = None,
    replicas: int | None = None,
    labels: Mapping[str, str] = DECODE_LABELS,
) -> tuple[Finding, ...]:
    """`check_instance` with honest surroundings unless told otherwise."""
    return check_instance(
        table,
        pods=pods_of(table) if pods is None else pods,
        replicas=len(table.servers) if replicas is None else replicas,
        labels=labels,
    )


def global_table(
    tables: Mapping[str, HcclTable],
    *,
    deploy: Mapping[str, str] | None = None,
    coordinators: Iterable[MsPod] = (COORDINATOR,),
    controllers: Iterable[MsPod] = (CONTROLLER,),
    ids: Mapping[str, int] | None = None,
) -> GlobalTable:
    """The global table of these instances; deploy_server "1" unless told otherwise."""
    return build(
        coordinators=coordinators,
        controllers=controllers,
        instances=[TableInstance(key, table, (deploy or {}).get(key, "1")) for key, table in tables.items()],
        ids=assign_ids({}, tables) if ids is None else ids,
    )


def codes(findings: Iterable[Finding], severity: Severity | None = None) -> set[str]:
    """The codes of the findings, of one severity if given."""
    return {finding.code for finding in findings if severity in (None, finding.severity)}


def rejects(findings: Iterable[Finding]) -> set[str]:
    """The codes of what forbids publishing."""
    return codes(findings, Severity.REJECT)
