"""What MS Controller makes of a rank table: the consumer's rules, good and bad.

An independent reading of the loader (source: motor contract §1.4, rank table contract §9.2), so that
it can judge tables that somebody else built. It keeps the loader's two dangerous habits: a structural error
up to the first server group rejects the table and the old state stays (`kept`); after that group nothing
is validated, and a bad or repeated server there is a *success with zero nodes*, which the Controller treats
as "every node was removed".
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PREFILL = "prefill"
DECODE = "decode"
UNDEFINED = "undefined"

_GROUPS = range(2, 99)
_SERVERS = range(97)
_DEVICES = range(1, 129)
_COORDINATORS = range(3)
_NUMBER = range(2049)
_SUPER_DEVICE = range(2**30 + 1)
_DEPTH = 10
_DEFAULT_MANAGEMENT_PORT = "1026"


class _RejectedError(Exception):
    """The loader returns -1."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One server group as the Controller schedules it. `servers` is ordered as in the table."""

    group_id: str
    role: str
    master_ip: str
    servers: tuple[str, ...]
    devices: int


@dataclass(frozen=True, slots=True)
class Load:
    """The result of reading one table.

    `accepted` False: the previous state is kept, `reason` says why. True with no instances and a reason:
    the zero-node success.
    """

    accepted: bool
    instances: tuple[Instance, ...] = ()
    coordinators: tuple[str, ...] = ()
    reason: str = ""

    @property
    def zeroed(self) -> bool:
        """Accepted, but everything is gone because of an error."""
        return self.accepted and bool(self.reason)


def load(text: str, *, prefill_distributed: bool = False, decode_distributed: bool = True) -> Load:
    """Read a table in multi-node mode; never raises."""
    try:
        groups = _groups(text)
        coordinators = _coordinators(groups)
        servers = [group for group in groups if _group_number(group) >= 2]
        _validate_first(servers)
    except _RejectedError as error:
        return Load(accepted=False, reason=str(error))
    try:
        instances = tuple(
            _instance(
                group, role=role_of(group.get("deploy_server"), prefill_distributed, decode_distributed)
            )
            for group in servers
        )
        _refuse_repeats(servers)
    except _RejectedError as error:
        return Load(accepted=True, coordinators=coordinators, reason=str(error))
    return Load(accepted=True, instances=tuple(i for i in instances if i.servers), coordinators=coordinators)


def role_of(deploy_server: object, prefill_distributed: bool, decode_distributed: bool) -> str:
    """What a group's `deploy_server` means under the Controller's two settings."""
    if deploy_server is None:
        return UNDEFINED
    if not (isinstance(deploy_server, str) and deploy_server.lstrip("-").isdecimal()):
        raise _RejectedError(f"deploy_server {deploy_server!r} is no number")
    if prefill_distributed == decode_distributed:
        return {"2": PREFILL, "1": DECODE}.get(deploy_server, UNDEFINED)
    return PREFILL if (int(deploy_server) != 0) == prefill_distributed else DECODE


def _groups(text: str) -> list[dict[str, Any]]:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _RejectedError(f"not JSON: {error}") from None
    if _depth(table) > _DEPTH:
        raise _RejectedError(f"nested deeper than {_DEPTH}")
    groups = table.get("server_group_list") if isinstance(table, dict) else None
    if not isinstance(groups, list) or len(groups) not in _GROUPS:
        raise _RejectedError("server_group_list must be a list of 2 to 98 groups")
    if not all(isinstance(group, dict) for group in groups):
        raise _RejectedError("a server group is not an object")
    return groups


def _coordinators(groups: list[dict[str, Any]]) -> tuple[str, ...]:
    group = next((group for group in groups if group.get("group_id") == "0"), None)
    if group is None:
        raise _RejectedError("no group 0")
    servers = _list(group, "server_list", _COORDINATORS)
    return tuple(_ip(server, "server_ip") for server in servers)


def _group_number(group: dict[str, Any]) -> int:
    value = group.get("group_id")
    if not (isinstance(value, str) and value.isdecimal()):
        raise _RejectedError(f"group_id {value!r} is not a number of 0 or more")
    return int(value)


def _validate_first(groups: list[dict[str, Any]]) -> None:
    if not groups:
        raise _RejectedError("no server group")
    group = groups[0]
    role_of(group.get("deploy_server"), False, True)
    for server in _list(group, "server_list", _SERVERS):
        _ip(server, "server_ip")
        _ip(server, "server_id")
        for device in _list(server, "device", _DEVICES):
            _ip(device, "device_ip")
            for key in ("device_id", "device_logical_id", "rank_id"):
                _number(device, key, _NUMBER)
            if "super_device_id" in device:
                _number(device, "super_device_id", _SUPER_DEVICE)


def _instance(group: dict[str, Any], *, role: str) -> Instance:
    servers = _list(group, "server_list", range(10**6))
    ips = tuple(_ip(server, "server_ip") for server in servers)
    lowest = min(
        ((rank, ip) for server, ip in zip(servers, ips, strict=True) for rank in _ranks(server)), default=None
    )
    master = lowest[1] if lowest else (ips[0] if ips else "")
    return Instance(
        group_id=group["group_id"],
        role=role,
        master_ip=master,
        servers=ips,
        devices=sum(len(list(_devices(server))) for server in servers),
    )


def _refuse_repeats(groups: list[dict[str, Any]]) -> None:
    seen: set[tuple[str, str]] = set()
    for group in groups:
        for server in group["server_list"]:
            identity = (server["server_ip"], str(server.get("mgmt_port", _DEFAULT_MANAGEMENT_PORT)))
            if identity in seen:
                raise _RejectedError(f"two servers at {identity[0]}:{identity[1]}")
            seen.add(identity)


def _devices(server: dict[str, Any]) -> Iterator[dict[str, Any]]:
    devices = server.get("device")
    return (
        (device for device in devices if isinstance(device, dict)) if isinstance(devices, list) else iter(())
    )


def _ranks(server: dict[str, Any]) -> Iterator[int]:
    for device in _devices(server):
        rank = device.get("rank_id")
        if isinstance(rank, str) and rank.isdecimal():
            yield int(rank)


def _list(holder: dict[str, Any], key: str, sizes: range) -> list[dict[str, Any]]:
    value = holder.get(key)
    if not isinstance(value, list) or len(value) not in sizes:
        raise _RejectedError(f"{key} must be a list of {sizes.start} to {sizes.stop - 1} entries")
    if not all(isinstance(item, dict) for item in value):
        raise _RejectedError(f"an entry of {key} is not an object")
    return value


def _ip(holder: dict[str, Any], key: str) -> str:
    value = holder.get(key)
    try:
        address = ipaddress.ip_address(value) if isinstance(value, str) else None
    except ValueError:
        address = None
    if address is None or address.is_unspecified:
        raise _RejectedError(f"{key} {value!r} is not a usable IP")
    return str(value)


def _number(holder: dict[str, Any], key: str, allowed: range) -> None:
    value = holder.get(key)
    if not (isinstance(value, str) and value.isdecimal() and int(value) in allowed):
        raise _RejectedError(f"{key} {value!r} is not a number of 0 to {allowed.stop - 1}")


def _depth(value: object) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max((_depth(child) for child in children), default=0)


__all__ = ["DECODE", "PREFILL", "UNDEFINED", "Instance", "Load", "load", "role_of"]
