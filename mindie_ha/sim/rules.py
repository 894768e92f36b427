"""Rules of single built-in kinds beyond their types: one small function a kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from mindie_ha.sim import crd_rules, syntax
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Cause

Object = dict[str, Any]

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_USER_PRIORITY = 1_000_000_000


def check(resource: Resource, obj: Object) -> Iterator[Cause]:
    """Causes for an object of a built-in kind."""
    rule = _RULES.get(resource.kind)
    if rule is not None:
        yield from rule(obj)


def _config(obj: Object) -> Iterator[Cause]:
    for field in ("data", "binaryData"):
        for key in obj.get(field) or ():
            if len(key) > 253:
                yield syntax.invalid(f"{field}[{key}]", key, "must be no more than 253 characters")
            elif not _KEY.fullmatch(key) or key in (".", ".."):
                yield syntax.invalid(f"{field}[{key}]", key, _KEY_TEXT)
    for key in (obj.get("data") or {}).keys() & (obj.get("binaryData") or {}).keys():
        yield syntax.invalid("data", key, "duplicate of key present in binaryData")


def _node(obj: Object) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        where = f"metadata.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        yield from syntax.qualified_name(key, f"{where}.key")
        if effect not in _EFFECTS:
            yield (
                syntax.unsupported(f"{where}.effect", effect, _EFFECTS)
                if effect
                else syntax.required(f"{where}.effect")
            )
        if (key, effect) in seen:
            text = f'Duplicate value: {{"key":"{key}","effect":"{effect}"}}'
            yield Cause("FieldValueDuplicate", f"{text}: taints must be unique by key and effect pair", where)
        seen.add((key, effect))


def _service(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    kind = spec.get("type", "ClusterIP")
    ports = spec.get("ports") or []
    if kind not in _SERVICE_TYPES:
        yield syntax.unsupported("spec.type", kind, _SERVICE_TYPES)
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield syntax.required("spec.ports")
    for index, port in enumerate(ports):
        where = f"spec.ports[{index}]"
        if len(ports) > 1 and not port.get("name"):
            yield syntax.required(f"{where}.name")
        if not 0 < port.get("port", 0) < 65536:
            text = "must be between 1 and 65535, inclusive"
            yield syntax.invalid(f"{where}.port", port.get("port", 0), text)


def _workload(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if spec.get("replicas", 1) < 0:
        yield syntax.invalid("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    selector = spec.get("selector") or {}
    wanted = selector.get("matchLabels") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    yield from syntax.labels(labels, "spec.template.labels")
    if not spec.get("selector"):
        yield syntax.required("spec.selector")
    elif not wanted and not selector.get("matchExpressions"):
        yield syntax.invalid("spec.selector", "{}", "empty selector is invalid for deployment")
    elif any(labels.get(key) != value for key, value in wanted.items()):
        text = "`selector` does not match template `labels`"
        yield syntax.invalid("spec.template.metadata.labels", str(labels), text)
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "Always")
    if policy != "Always":
        yield syntax.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _priority(obj: Object) -> Iterator[Cause]:
    name = obj["metadata"].get("name", "")
    if obj.get("value", 0) > _USER_PRIORITY and not name.startswith("system-"):
        text = f"Forbidden: maximum allowed value of a user defined priority is {_USER_PRIORITY}"
        yield Cause("FieldValueForbidden", text, "value")


def _lease(obj: Object) -> Iterator[Cause]:
    duration_s = (obj.get("spec") or {}).get("leaseDurationSeconds")
    if duration_s is not None and duration_s <= 0:
        yield syntax.invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0")
    transitions = (obj.get("spec") or {}).get("leaseTransitions")
    if transitions is not None and transitions < 0:
        yield syntax.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def _event(obj: Object) -> Iterator[Cause]:
    involved = (obj.get("involvedObject") or {}).get("namespace") or "default"
    if involved != (obj["metadata"].get("namespace") or "default"):
        yield syntax.invalid("involvedObject.namespace", involved, "does not match event.namespace")


def _budget(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        text = "minAvailable and maxUnavailable cannot be both set"
        yield syntax.invalid("spec", "", text)


def _binding(obj: Object) -> Iterator[Cause]:
    role = obj.get("roleRef") or {}
    if role.get("kind") not in ("Role", "ClusterRole"):
        yield syntax.unsupported("roleRef.kind", role.get("kind", ""), ("Role", "ClusterRole"))
    if not role.get("name"):
        yield syntax.required("roleRef.name")


_RULES: dict[str, Callable[[Object], Iterator[Cause]]] = {
    "ConfigMap": _config,
    "CustomResourceDefinition": crd_rules.check,
    "Secret": _config,
    "Node": _node,
    "Service": _service,
    "Deployment": _workload,
    "StatefulSet": _workload,
    "ReplicaSet": _workload,
    "PriorityClass": _priority,
    "Lease": _lease,
    "Event": _event,
    "PodDisruptionBudget": _budget,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
}
