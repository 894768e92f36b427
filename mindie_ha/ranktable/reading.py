"""Text of a global rank table from anywhere -> a table and what is to be said about it.

Used for files, for the ConfigMap as it stands in the cluster, and for `lint`. Unlike hccl.json the text
may come from other producers (the deploy script writes server groups first and no `server_id` in groups
0 and 1), so a missing field is left to `validate`, which knows where it matters. A wrong type is
refused, except in the fields that the consumer never reads (`version`, `server_count`), where it only
warns.

Promise: never an exception; text that is no table gives `table=None` and one rejecting finding.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.ranktables import (
    Device,
    Finding,
    FindingCode,
    GlobalTable,
    Group,
    Ports,
    RanktableError,
    Server,
    Severity,
)
from mindie_ha.ranktable.documents import JsonObject, decode, objects_at, optional_text_at, show
from mindie_ha.ranktable.hccl import parse_super_pods
from mindie_ha.ranktable.validate import validate

MAX_GLOBAL_BYTES = 4 * 1024 * 1024
"""A default gRPC client takes no larger message. Source: rank table contract §4.1."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text turned out to be; `table` is None if it could not be read at all."""

    table: GlobalTable | None
    findings: tuple[Finding, ...]


def read_global(text: str | None, *, multi_node: bool = True, heterogeneous: bool = False) -> Reading:
    """Read and validate a global table; the two switches are those of `validate`."""
    remarks: list[Finding] = []
    try:
        table = _table(text, remarks)
    except RanktableError as error:
        finding = Finding(
            Severity.REJECT, FindingCode.UNREADABLE, error.where, f"{error.what}; {error.advice}"
        )
        return Reading(table=None, findings=(*remarks, finding))
    found = validate(table, multi_node=multi_node, heterogeneous=heterogeneous)
    return Reading(table=table, findings=(*remarks, *found))


def _table(text: str | None, remarks: list[Finding]) -> GlobalTable:
    document = decode(text, max_bytes=MAX_GLOBAL_BYTES, name="global rank table")
    if document.repeated_keys:
        what = f"key {show(document.repeated_keys[0])} occurs twice in one object"
        raise RanktableError(what, where="$", advice="keep one of them")
    root = document.root
    return GlobalTable(
        version=_unread_text(root, "version", where="$", remarks=remarks),
        status=optional_text_at(root, "status", where="$"),
        groups=tuple(
            _group(item, path, remarks)
            for path, item in objects_at(root, "server_group_list", where="$", required=False)
        ),
    )


def _group(item: JsonObject, path: str, remarks: list[Finding]) -> Group:
    return Group(
        group_id=optional_text_at(item, "group_id", where=path),
        server_count=_unread_text(item, "server_count", where=path, remarks=remarks),
        deploy_server=optional_text_at(item, "deploy_server", where=path),
        servers=tuple(
            _server(server, server_path)
            for server_path, server in objects_at(item, "server_list", where=path, required=True)
        ),
        super_pods=parse_super_pods(item, where=path),
    )


def _server(item: JsonObject, path: str) -> Server:
    return Server(
        server_id=optional_text_at(item, "server_id", where=path),
        server_ip=optional_text_at(item, "server_ip", where=path),
        hardware_type=optional_text_at(item, "hardware_type", where=path),
        ports=Ports(
            predict=optional_text_at(item, "predict_port", where=path),
            mgmt=optional_text_at(item, "mgmt_port", where=path),
            metric=optional_text_at(item, "metric_port", where=path),
            inter_comm=optional_text_at(item, "inter_comm_port", where=path),
        ),
        devices=tuple(
            _device(device, device_path)
            for device_path, device in objects_at(item, "device", where=path, required=False)
        ),
    )


def _device(item: JsonObject, path: str) -> Device:
    return Device(
        device_id=optional_text_at(item, "device_id", where=path),
        device_ip=optional_text_at(item, "device_ip", where=path),
        rank_id=optional_text_at(item, "rank_id", where=path),
        super_device_id=optional_text_at(item, "super_device_id", where=path),
        device_logical_id=optional_text_at(item, "device_logical_id", where=path),
    )


def _unread_text(item: JsonObject, key: str, *, where: str, remarks: list[Finding]) -> str:
    """A field that the consumer never reads: a wrong type is a remark, the value then counts as absent."""
    try:
        return optional_text_at(item, key, where=where)
    except RanktableError as error:
        remarks.append(Finding(Severity.WARN, FindingCode.UNREADABLE, error.where, error.what))
        return ""


__all__ = ["MAX_GLOBAL_BYTES", "Reading", "read_global"]
