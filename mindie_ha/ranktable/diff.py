"""What changed between two global tables, for people.

Data only; the command line and the page put it into words. Groups are compared by id, servers by pod
address (a pod that came back with another address is another server, as for the consumer), devices by
rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from mindie_ha.model.ranktables import Device, GlobalTable, Group, Server

T = TypeVar("T")


class Change(StrEnum):
    """What happened to one thing."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class DeviceDiff:
    """One card of a server; the side that lacks it is None."""

    rank_id: str
    change: Change
    before: Device | None
    after: Device | None


@dataclass(frozen=True, slots=True)
class ServerDiff:
    """One server of a group. `devices` names the cards of a changed, added or removed server."""

    server_ip: str
    change: Change
    before: Server | None
    after: Server | None
    devices: tuple[DeviceDiff, ...]


@dataclass(frozen=True, slots=True)
class GroupDiff:
    """One group. `fields` are the group's own keys that differ."""

    group_id: str
    change: Change
    fields: tuple[str, ...]
    servers: tuple[ServerDiff, ...]


@dataclass(frozen=True, slots=True)
class TableDiff:
    """Two tables. Empty means equal in everything that is encoded, up to the order of lists."""

    version: tuple[str, str] | None
    status: tuple[str, str] | None
    groups: tuple[GroupDiff, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return self.version is None and self.status is None and not self.groups


def diff(before: GlobalTable | None, after: GlobalTable | None) -> TableDiff:
    """The difference; None stands for "no table yet"."""
    old = before or GlobalTable(version="", status="", groups=())
    new = after or GlobalTable(version="", status="", groups=())
    groups = [
        _group_diff(group_id, left, right)
        for group_id, left, right in _pairs(old.groups, new.groups, key=lambda group: group.group_id)
        if left != right
    ]
    return TableDiff(
        version=None if old.version == new.version else (old.version, new.version),
        status=None if old.status == new.status else (old.status, new.status),
        groups=tuple(group for group in sorted(groups, key=_group_order) if not _unchanged(group)),
    )


def _group_diff(group_id: str, left: Group | None, right: Group | None) -> GroupDiff:
    servers = [
        _server_diff(server_ip, old, new)
        for server_ip, old, new in _pairs(
            left.servers if left else (), right.servers if right else (), key=lambda server: server.server_ip
        )
        if old != new
    ]
    return GroupDiff(
        group_id=group_id,
        change=_change(left, right),
        fields=_changed_fields(left, right),
        servers=tuple(sorted(servers, key=lambda server: server.server_ip)),
    )


def _changed_fields(left: Group | None, right: Group | None) -> tuple[str, ...]:
    if left is None or right is None:
        return ()
    pairs = (
        ("deploy_server", left.deploy_server, right.deploy_server),
        ("server_count", left.server_count, right.server_count),
        ("super_pod_list", set(left.super_pods), set(right.super_pods)),
    )
    return tuple(name for name, old, new in pairs if old != new)


def _server_diff(server_ip: str, left: Server | None, right: Server | None) -> ServerDiff:
    devices = [
        DeviceDiff(rank_id=rank_id, change=_change(old, new), before=old, after=new)
        for rank_id, old, new in _pairs(
            left.devices if left else (), right.devices if right else (), key=lambda device: device.rank_id
        )
        if old != new
    ]
    devices.sort(key=lambda device: (len(device.rank_id), device.rank_id))
    return ServerDiff(
        server_ip=server_ip, change=_change(left, right), before=left, after=right, devices=tuple(devices)
    )


def _pairs(
    left: Iterable[T], right: Iterable[T], *, key: Callable[[T], str]
) -> list[tuple[str, T | None, T | None]]:
    """Both sides by key; of entries with the same key on one side the last one counts."""
    old = {key(item): item for item in left}
    new = {key(item): item for item in right}
    return [(name, old.get(name), new.get(name)) for name in {**old, **new}]


def _change(left: object | None, right: object | None) -> Change:
    if left is None:
        return Change.ADDED
    return Change.REMOVED if right is None else Change.CHANGED


def _unchanged(group: GroupDiff) -> bool:
    return group.change is Change.CHANGED and not group.fields and not group.servers


def _group_order(group: GroupDiff) -> tuple[int, str]:
    return len(group.group_id), group.group_id


__all__ = ["Change", "DeviceDiff", "GroupDiff", "ServerDiff", "TableDiff", "diff"]
