"""What a container sees when it starts: environment and ConfigMap volumes (pure).

Missing ConfigMaps give no files and no variables; only a missing `rings-config-*` volume keeps the pod from
starting, as the manifests of the field name several ConfigMaps that only a real MindIE image needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mindie_ha.sim.actors.documents import (
    annotations_of,
    items,
    labels_of,
    mapping,
    name_of,
    namespace_of,
    text,
    texts,
    uid_of,
)
from mindie_ha.sim.client import Object

Lookup = Callable[[str], Object | None]  # ConfigMap name -> object
BLOCKING_PREFIX = "rings-config-"
_REFERENCE = re.compile(r"\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def volume_sources(pod: Object) -> dict[str, Object]:
    """Volume name to its `configMap` source."""
    return {
        text(volume, "name"): mapping(volume, "configMap")
        for volume in items(pod, "spec", "volumes")
        if mapping(volume, "configMap")
    }


def missing_volumes(pod: Object, lookup: Lookup) -> list[str]:
    """Names of absent ConfigMaps without which the pod does not start."""
    names = [text(source, "name") for source in volume_sources(pod).values() if not source.get("optional")]
    return [name for name in names if name.startswith(BLOCKING_PREFIX) and lookup(name) is None]


def volume_files(source: Object, lookup: Lookup) -> dict[str, str]:
    """File name to text of one ConfigMap volume."""
    data = texts(lookup(text(source, "name")) or {}, "data")
    chosen = items(source, "items")
    if not chosen:
        return data
    return {text(item, "path"): data[text(item, "key")] for item in chosen if text(item, "key") in data}


def read_volumes(pod: Object, lookup: Lookup) -> dict[str, dict[str, str]]:
    """All ConfigMap volumes of a pod."""
    return {name: volume_files(source, lookup) for name, source in volume_sources(pod).items()}


def resolve_env(pod: Object, lookup: Lookup, *, pod_ip: str, host_ip: str) -> dict[str, str]:
    """The environment of the first container; later entries win, `$(NAME)` sees earlier ones."""
    container = next(iter(items(pod, "spec", "containers")), {})
    env: dict[str, str] = {}
    for source in items(container, "envFrom"):
        data = texts(lookup(text(source, "configMapRef", "name")) or {}, "data")
        env |= {text(source, "prefix") + key: value for key, value in data.items()}
    for entry in items(container, "env"):
        value = _value(entry, pod, lookup, pod_ip=pod_ip, host_ip=host_ip)
        env[text(entry, "name")] = _expand(value, env)
    return env


def _value(entry: Object, pod: Object, lookup: Lookup, *, pod_ip: str, host_ip: str) -> str:
    source = mapping(entry, "valueFrom")
    if not source:
        return text(entry, "value")
    config = mapping(source, "configMapKeyRef")
    if config:
        return texts(lookup(text(config, "name")) or {}, "data").get(text(config, "key"), "")
    path = text(source, "fieldRef", "fieldPath")
    fields = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": text(pod, "spec", "nodeName"),
        "spec.serviceAccountName": text(pod, "spec", "serviceAccountName"),
        "status.podIP": pod_ip,
        "status.podIPs": pod_ip,
        "status.hostIP": host_ip,
    }
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript:
        table = labels_of(pod) if subscript[1] == "labels" else annotations_of(pod)
        return table.get(subscript[2], "")
    return fields.get(path, "")


def _expand(value: str, env: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda found: env.get(found[1], found[0]), value)
