"""Rules of pod specs beyond their types, in a Pod and in every template of a built-in workload.

One rule of the real server is missing on purpose: that mount paths of a container be unique. Published
manifests of MindIE mount `/home` twice, and what they do to a kubelet is not what this server is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindie_ha.sim import syntax
from mindie_ha.sim.statuses import Cause

Object = dict[str, Any]

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TOLERATED = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_NATIVE = ("cpu", "memory", "ephemeral-storage")


def check(spec: Object, path: str) -> Iterator[Cause]:
    """Causes for a pod spec; `path` is where it stands in its object."""
    volumes = [volume.get("name", "") for volume in spec.get("volumes") or ()]
    yield from _volumes(spec.get("volumes") or [], f"{path}.volumes")
    if not spec.get("containers"):
        yield syntax.required(f"{path}.containers")
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            yield from _container(container, where, volumes)
            name = container.get("name", "")
            if name in names:
                yield Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{where}.name")
            names.add(name)
    for field, allowed in (("restartPolicy", _RESTART), ("dnsPolicy", _DNS)):
        if spec.get(field) and spec[field] not in allowed:
            yield syntax.unsupported(f"{path}.{field}", spec[field], allowed)
    grace_s = spec.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s < 0:
        field = f"{path}.terminationGracePeriodSeconds"
        yield syntax.invalid(field, grace_s, "must be greater than or equal to 0")
    yield from syntax.labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


def _volumes(volumes: list[Object], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        yield from syntax.dns_label(name, f"{path}[{index}].name")
        if name in seen:
            yield Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{path}[{index}].name")
        seen.add(name)
        sources = [key for key in volume if key != "name"]
        for extra in sources[1:]:
            text = "Forbidden: may not specify more than 1 volume type"
            yield Cause("FieldValueForbidden", text, f"{path}[{index}].{extra}")


def _container(container: Object, path: str, volumes: list[str]) -> Iterator[Cause]:
    yield from syntax.dns_label(container.get("name", ""), f"{path}.name")
    if not container.get("image"):
        yield syntax.required(f"{path}.image")
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL:
        yield syntax.unsupported(f"{path}.imagePullPolicy", policy, _PULL)
    yield from _environment(container.get("env") or [], f"{path}.env")
    yield from _mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", volumes)
    for index, port in enumerate(container.get("ports") or ()):
        yield from _port(port, f"{path}.ports[{index}]")
    for probe in _PROBES:
        yield from _probe(container.get(probe), f"{path}.{probe}")
    yield from _resources(container.get("resources") or {}, f"{path}.resources")


def _environment(variables: list[Object], path: str) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        if not variable.get("name"):
            yield syntax.required(f"{path}[{index}].name")
        if variable.get("value") and variable.get("valueFrom"):
            text = "may not be specified when `value` is not empty"
            yield syntax.invalid(f"{path}[{index}].valueFrom", "", text)


def _mounts(mounts: list[Object], path: str, volumes: list[str]) -> Iterator[Cause]:
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        if not mount.get("name"):
            yield syntax.required(f"{where}.name")
        elif mount["name"] not in volumes:
            yield Cause("FieldValueNotFound", f'Not found: "{mount["name"]}"', f"{where}.name")
        if not mount.get("mountPath"):
            yield syntax.required(f"{where}.mountPath")


def _port(port: Object, path: str) -> Iterator[Cause]:
    number = port.get("containerPort", 0)
    if not number:
        yield syntax.required(f"{path}.containerPort")
    elif not 0 < number < 65536:
        yield syntax.invalid(f"{path}.containerPort", number, "must be between 1 and 65535, inclusive")
    if port.get("protocol") and port["protocol"] not in _PROTOCOLS:
        yield syntax.unsupported(f"{path}.protocol", port["protocol"], _PROTOCOLS)


def _probe(probe: Object | None, path: str) -> Iterator[Cause]:
    if probe is None:
        return
    handlers = [handler for handler in _HANDLERS if probe.get(handler) is not None]
    if not handlers:
        yield Cause("FieldValueRequired", "Required value: must specify a handler type", path)
    for extra in handlers[1:]:
        text = "Forbidden: may not specify more than 1 handler type"
        yield Cause("FieldValueForbidden", text, f"{path}.{extra}")
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold"):
        if probe.get(field, 0) < 0:
            text = "must be greater than or equal to 0"
            yield syntax.invalid(f"{path}.{field}", probe[field], text)


def _resources(resources: Object, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from syntax.qualified_name(name, f"{path}.{field}[{name}]")
            value = syntax.quantity(amount)
            if value < 0:
                text = "must be greater than or equal to 0"
                yield syntax.invalid(f"{path}.{field}[{name}]", str(amount), text)
            elif "/" in name and value.denominator != 1:
                yield syntax.invalid(f"{path}.{field}[{name}]", str(amount), "must be an integer")
    for name, amount in requests.items():
        shared = name in _NATIVE
        if name not in limits:
            if not shared:
                text = "Required value: Limit must be set for non overcommitable resources"
                yield Cause("FieldValueRequired", text, f"{path}.limits")
        elif shared and syntax.quantity(amount) > syntax.quantity(limits[name]):
            text = f"must be less than or equal to {name} limit of {limits[name]}"
            yield syntax.invalid(f"{path}.requests", str(amount), text)
        elif not shared and syntax.quantity(amount) != syntax.quantity(limits[name]):
            text = f"must be equal to {name} limit of {limits[name]}"
            yield syntax.invalid(f"{path}.requests", str(amount), text)


def _toleration(toleration: Object, path: str) -> Iterator[Cause]:
    operator = toleration.get("operator") or "Equal"
    if operator not in ("Equal", "Exists"):
        yield syntax.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    elif operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        yield syntax.invalid(f"{path}.operator", toleration["value"], text)
    elif operator == "Equal" and not toleration.get("key"):
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield syntax.invalid(f"{path}.operator", operator, text)
    if toleration.get("effect") and toleration["effect"] not in _TOLERATED:
        yield syntax.unsupported(f"{path}.effect", toleration["effect"], _TOLERATED)
