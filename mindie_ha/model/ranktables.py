"""Rank tables as frozen facts: what an instance's hccl.json says, and the global table made of them.

Two shapes, kept apart because they mean different things. `HcclTable` is what the Ascend Operator wrote
for one instance (its `server_id` is a pod UID or a host address). `GlobalTable` is what MS Controller
reads (its `server_id` is always the host address). All scalars stay text as on the wire; nothing here
interprets them.

A `Finding` is one sentence about one place. Severities mean: accept = fine, said for completeness; warn
= the consumer takes it, a person should know; reject = this object must not be published.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.model.errors import InputError

COMPLETED = "completed"
COORDINATOR_GROUP = 0
CONTROLLER_GROUP = 1
FIRST_SERVER_GROUP = 2


class RanktableError(InputError):
    """A rank table that cannot be read at all: what is wrong, where (JSON path), what to do (`advice`)."""


class PdRole(StrEnum):
    """Which half of a request an instance serves."""

    PREFILL = "prefill"
    DECODE = "decode"
    HYBRID = "hybrid"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """How bad a finding is, mildest first."""

    ACCEPT = "accept"
    WARN = "warn"
    REJECT = "reject"


class FindingCode(StrEnum):
    """Every reason a rank table can be remarked on; a bounded set, so it may label a metric."""

    UNREADABLE = "unreadable"
    NOT_COMPLETED = "not-completed"
    VERSION = "version"
    SERVER_COUNT = "server-count"
    REPLICAS = "replicas"
    POD_STALE = "pod-stale"
    POD_MISSING = "pod-missing"
    POD_IP = "pod-ip"
    HOST_IP = "host-ip"
    SWAPPED = "swapped"
    DEVICE_COUNT = "device-count"
    DEVICE_IP = "device-ip"
    DEVICE_IP_REPEATED = "device-ip-repeated"
    DEVICE_ID = "device-id"
    CARD_REPEATED = "card-repeated"
    RANK = "rank"
    SUPER_DEVICE_ID = "super-device-id"
    SUPER_POD = "super-pod"
    DEPLOY_BOTH = "deploy-both"
    DEPLOY_NONE = "deploy-none"
    DEPLOY_VALUE = "deploy-value"
    GROUP_COUNT = "group-count"
    GROUP_ID = "group-id"
    GROUP_MISSING = "group-missing"
    SERVER_IP = "server-ip"
    SERVER_ID = "server-id"
    SERVER_ID_REPEATED = "server-id-repeated"
    ADDRESS_REPEATED = "address-repeated"
    NO_SERVERS = "no-servers"
    PORT = "port"
    HARDWARE_TYPE = "hardware-type"


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark about one place of one table, in words for a person. `code` is a FindingCode."""

    severity: Severity
    code: str
    where: str
    message: str


def verdict(findings: Iterable[Finding]) -> Severity:
    """The worst severity among `findings`; accept when there are none."""
    seen = {finding.severity for finding in findings}
    for severity in (Severity.REJECT, Severity.WARN):
        if severity in seen:
            return severity
    return Severity.ACCEPT


@dataclass(frozen=True, slots=True)
class Device:
    """One card. `device_logical_id` is empty in hccl.json and filled in the global table."""

    device_id: str
    device_ip: str
    rank_id: str
    super_device_id: str = ""
    device_logical_id: str = ""


@dataclass(frozen=True, slots=True)
class SuperPod:
    """A super pod and the servers in it; the ids are those of the table it stands in."""

    super_pod_id: str
    server_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HcclServer:
    """One pod of an instance as the operator wrote it. `server_id` is the pod UID or the host address."""

    server_id: str
    devices: tuple[Device, ...]
    host_ip: str = ""
    container_ip: str = ""
    hardware_type: str = ""


@dataclass(frozen=True, slots=True)
class HcclTable:
    """A parsed hccl.json. Unless `completed`, only `status` has a meaning and the rest is empty."""

    status: str
    version: str = ""
    server_count: str = ""
    servers: tuple[HcclServer, ...] = ()
    super_pods: tuple[SuperPod, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether the operator says that every pod of the instance has its devices."""
        return self.status == COMPLETED


@dataclass(frozen=True, slots=True)
class InstancePod:
    """A pod of a server instance. `alive` is false once it terminates, failed or succeeded."""

    name: str
    uid: str
    host_ip: str
    pod_ip: str
    alive: bool = True


@dataclass(frozen=True, slots=True)
class MsPod:
    """A Coordinator or Controller pod. `alive` is false once it terminates, failed or succeeded."""

    name: str
    host_ip: str
    pod_ip: str
    alive: bool = True


@dataclass(frozen=True, slots=True)
class TableInstance:
    """A checked instance, ready for the global table. `key` is its stable name, "namespace/name"."""

    key: str
    table: HcclTable
    deploy_server: str = ""


@dataclass(frozen=True, slots=True)
class Ports:
    """Optional ports of a server; only tables written by hand carry them. Empty means the default."""

    predict: str = ""
    mgmt: str = ""
    metric: str = ""
    inter_comm: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """One entry of a group: `server_id` is the host address, `server_ip` the pod address."""

    server_id: str
    server_ip: str
    devices: tuple[Device, ...] = ()
    hardware_type: str = ""
    ports: Ports = Ports()


@dataclass(frozen=True, slots=True)
class Group:
    """Group "0" Coordinators, "1" Controllers, from "2" one server instance each."""

    group_id: str
    servers: tuple[Server, ...]
    server_count: str
    deploy_server: str = ""
    super_pods: tuple[SuperPod, ...] = ()


@dataclass(frozen=True, slots=True)
class GlobalTable:
    """The global rank table of one service."""

    version: str
    groups: tuple[Group, ...]
    status: str = COMPLETED

    def group(self, group_id: int) -> Group | None:
        """The group with that id, wherever it stands in the list; None if there is none."""
        return next((group for group in self.groups if group.group_id == str(group_id)), None)


__all__ = [
    "COMPLETED",
    "CONTROLLER_GROUP",
    "COORDINATOR_GROUP",
    "FIRST_SERVER_GROUP",
    "Device",
    "Finding",
    "FindingCode",
    "GlobalTable",
    "Group",
    "HcclServer",
    "HcclTable",
    "InstancePod",
    "MsPod",
    "PdRole",
    "Ports",
    "RanktableError",
    "Server",
    "Severity",
    "SuperPod",
    "TableInstance",
    "verdict",
]
