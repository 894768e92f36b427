"""hccl.json of one instance -> HcclTable.

The operator writes it into ConfigMap `rings-config-<AscendJob>`; users can write there too. Reading is
strict, so that one bad table is one named error and never a half-understood instance. Unless `status` is
exactly "completed" the rest is ignored unseen: the operator leaves the previous life's servers inside.

Versions 1.0 and 1.2 are read. 2.0 is recognised and refused: it has no server list, so no group can be
made. Unknown keys are dropped; the text in the ConfigMap is never written back by us, so nothing is lost
there.

Source: rank table contract §2.1, §6.2, §6.3.
"""

from __future__ import annotations

from functools import lru_cache

from mindie_ha.model.ranktables import COMPLETED, Device, HcclServer, HcclTable, RanktableError, SuperPod
from mindie_ha.ranktable.documents import (
    Document,
    JsonObject,
    decode,
    objects_at,
    optional_text_at,
    show,
    text_at,
)

HCCL_KEY = "hccl.json"
RINGS_CONFIG_PREFIX = "rings-config-"
MAX_HCCL_BYTES = 1024 * 1024
"""A ConfigMap cannot be larger than this."""
KNOWN_VERSIONS = ("1.0", "1.2")


def rings_config_name(job_name: str) -> str:
    """The ConfigMap that holds the hccl.json of that AscendJob."""
    return RINGS_CONFIG_PREFIX + job_name


@lru_cache(maxsize=1024)  # a service is looked at far more often than its tables change
def parse_hccl(text: str | None) -> HcclTable:
    """Read `text`; raises RanktableError and nothing else."""
    document = decode(text, max_bytes=MAX_HCCL_BYTES, name=HCCL_KEY)
    root = document.root
    status = text_at(root, "status", where="$")
    if status != COMPLETED:
        return HcclTable(status=status)
    _refuse_repeated_keys(document)
    return HcclTable(
        status=status,
        version=_version(root),
        server_count=optional_text_at(root, "server_count", where="$"),
        servers=tuple(
            _server(item, path) for path, item in objects_at(root, "server_list", where="$", required=False)
        ),
        super_pods=parse_super_pods(root, where="$"),
    )


def parse_super_pods(item: JsonObject, *, where: str) -> tuple[SuperPod, ...]:
    """The `super_pod_list` of `item`; empty if absent."""
    return tuple(
        SuperPod(
            super_pod_id=text_at(pod, "super_pod_id", where=path),
            server_ids=tuple(
                text_at(server, "server_id", where=server_path)
                for server_path, server in objects_at(pod, "server_list", where=path, required=True)
            ),
        )
        for path, pod in objects_at(item, "super_pod_list", where=where, required=False)
    )


def _version(root: JsonObject) -> str:
    version = optional_text_at(root, "version", where="$")
    if version == "2.0" or (not version and "rank_list" in root):
        raise RanktableError(
            "version 2.0 (A5) has ranks but no servers, MS Controller cannot use it",
            where="$.version",
            advice="run the instance on A2 or A3, or wait for a consumer that reads 2.0",
        )
    if version and version not in KNOWN_VERSIONS:
        raise RanktableError(
            f"unknown version {show(version)}",
            where="$.version",
            advice=f"expected one of {', '.join(KNOWN_VERSIONS)}",
        )
    return version


def _server(item: JsonObject, path: str) -> HcclServer:
    return HcclServer(
        server_id=text_at(item, "server_id", where=path),
        host_ip=optional_text_at(item, "host_ip", where=path),
        container_ip=optional_text_at(item, "container_ip", where=path),
        hardware_type=optional_text_at(item, "hardware_type", where=path),
        devices=tuple(
            _device(device, device_path)
            for device_path, device in objects_at(item, "device", where=path, required=True)
        ),
    )


def _device(item: JsonObject, path: str) -> Device:
    return Device(
        device_id=text_at(item, "device_id", where=path),
        device_ip=text_at(item, "device_ip", where=path),
        rank_id=text_at(item, "rank_id", where=path),
        super_device_id=optional_text_at(item, "super_device_id", where=path),
    )


def _refuse_repeated_keys(document: Document) -> None:
    if document.repeated_keys:
        raise RanktableError(
            f"key {show(document.repeated_keys[0])} occurs twice in one object",
            where="$",
            advice="keep one of them",
        )


__all__ = [
    "HCCL_KEY",
    "KNOWN_VERSIONS",
    "MAX_HCCL_BYTES",
    "RINGS_CONFIG_PREFIX",
    "parse_hccl",
    "parse_super_pods",
    "rings_config_name",
]
