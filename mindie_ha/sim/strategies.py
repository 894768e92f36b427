"""What single kinds do on create and update beyond storing: the rows that differ, as data where possible.

Status is not writable through the main resource nor spec through `status`; generation moves with the spec
alone; a pod's spec is frozen but for a few fields; defaults are those that clients and actors read back.
"""

from __future__ import annotations

from typing import Any

from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Cause

Object = dict[str, Any]  # one Kubernetes object as decoded JSON

GENERATIONS = frozenset(
    {"Deployment", "StatefulSet", "ReplicaSet", "PodDisruptionBudget", "NetworkPolicy", "Pod"}
)
NEEDS_VERSION_ON_UPDATE = frozenset({"Lease", "CustomResourceDefinition", "PodDisruptionBudget"})
IMMUTABLE: dict[str, tuple[str, ...]] = {
    "Deployment": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "StatefulSet": ("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    "PriorityClass": ("value", "globalDefault"),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "Secret": ("type",),
    "Service": ("spec.clusterIP",),
}
BLOB_BYTES = 1024 * 1024  # data of a ConfigMap or Secret

_POD_FROZEN = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
_POD_DEFAULTS: Object = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
    "serviceAccountName": "default",
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
}
_NOT_READY_S = 300


def has_status(resource: Resource) -> bool:
    """Whether status is written through its own subresource."""
    return "status" in resource.subresources


def prepare_create(obj: Object, resource: Resource) -> None:
    """Drop what a client may not set on create; set defaults and the first generation."""
    meta = obj["metadata"]
    if has_status(resource) and resource.kind != "Node":
        obj.pop("status", None)
    if resource.custom or resource.kind in GENERATIONS:
        meta["generation"] = 1
    else:
        meta.pop("generation", None)
    default = _DEFAULTS.get(resource.kind) if not resource.custom else None
    if default is not None:
        default(obj)


def prepare_update(new: Object, old: Object, resource: Resource, subresource: str) -> None:
    """Keep what this path may not change; move the generation if the spec moved."""
    if subresource == "status":
        for field in [*new, *old]:
            if field not in ("status", "metadata", "apiVersion", "kind"):
                _keep(new, old, field)
        if resource.custom:
            new["metadata"] = dict(old["metadata"])
    elif has_status(resource):
        _keep(new, old, "status")
    if resource.kind == "Pod" and isinstance(new.get("spec"), dict):
        _default_pod_spec(new["spec"])
    if resource.kind == "Node":
        _default_node(new)
    meta, before = new["metadata"], old["metadata"]
    _keep(meta, before, "generation")
    if (resource.custom or resource.kind in GENERATIONS) and _desired(new) != _desired(old):
        meta["generation"] = before.get("generation", 0) + 1


def _keep(new: Object, old: Object, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _desired(obj: Object) -> Object:
    return {field: obj[field] for field in obj if field not in ("metadata", "status", "apiVersion", "kind")}


def check_size(obj: Object, resource: Resource) -> list[Cause]:
    """ConfigMaps and Secrets hold at most 1 MiB."""
    if resource.kind not in ("ConfigMap", "Secret") or resource.custom:
        return []
    parts = [obj.get("data"), obj.get("binaryData")]
    pairs = [pair for part in parts if isinstance(part, dict) for pair in part.items()]
    size = sum(len(key) + len(value.encode()) for key, value in pairs if isinstance(value, str))
    if size <= BLOB_BYTES:
        return []
    return [Cause("FieldValueTooLong", f"Too long: may not be more than {BLOB_BYTES} bytes", "")]


def check_update(new: Object, old: Object, resource: Resource) -> list[Cause]:
    """Causes for a change of what may not change."""
    if resource.custom:
        return []
    causes = [
        Cause("FieldValueInvalid", "Invalid value: field is immutable", path)
        for path in IMMUTABLE.get(resource.kind, ())
        if _at(new, path) != _at(old, path)
    ]
    if resource.kind in ("ConfigMap", "Secret") and old.get("immutable"):
        causes += [
            Cause("FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set", field)
            for field in ("data", "binaryData", "immutable")
            if new.get(field) != old.get(field)
        ]
    if resource.kind == "Pod" and _frozen_pod_part(new) != _frozen_pod_part(old):
        causes.append(Cause("FieldValueForbidden", _POD_FROZEN, "spec"))
    elif resource.kind == "Pod" and not _only_added(
        _at(new, "spec.tolerations"), _at(old, "spec.tolerations")
    ):
        text = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        causes.append(Cause("FieldValueForbidden", text, "spec.tolerations"))
    return causes


def _at(obj: Object, path: str) -> Any:
    found: Any = obj
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _frozen_pod_part(pod: Object) -> Object:
    spec = dict(pod.get("spec") or {})
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        spec.pop(field, None)
    for field in ("containers", "initContainers"):
        listed = spec.get(field)
        if isinstance(listed, list):
            spec[field] = [
                {k: v for k, v in each.items() if k != "image"} if isinstance(each, dict) else each
                for each in listed
            ]
    return spec


def _only_added(new: Any, old: Any) -> bool:
    def identity(toleration: Any) -> Any:
        if not isinstance(toleration, dict):
            return toleration
        return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}

    present = [identity(each) for each in new or []]
    return all(identity(each) in present for each in old or [])


def _default_pod(obj: Object) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    _default_pod_spec(spec)
    obj["status"] = {"phase": "Pending", "qosClass": "BestEffort" if _no_resources(spec) else "Burstable"}


def _default_pod_spec(spec: Object) -> None:
    for field, value in _POD_DEFAULTS.items():
        spec.setdefault(field, value)
    tolerations = spec.get("tolerations", [])
    if isinstance(tolerations, list):
        keys = [each.get("key") for each in tolerations if isinstance(each, dict)]
        everything = any(not each.get("key") for each in tolerations if isinstance(each, dict))
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
            if key not in keys and not everything:
                added = {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _NOT_READY_S,
                }
                tolerations = [*tolerations, added]
        spec["tolerations"] = tolerations


def _no_resources(spec: Object) -> bool:
    containers = spec.get("containers")
    return isinstance(containers, list) and not any(
        (each.get("resources") or {}) for each in containers if isinstance(each, dict)
    )


def _default_namespace(obj: Object) -> None:
    meta = obj["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def _default_service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if isinstance(spec, dict):
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        ports = spec.get("ports")
        for port in ports if isinstance(ports, list) else []:
            if isinstance(port, dict):
                port.setdefault("protocol", "TCP")
                port.setdefault("targetPort", port.get("port", 0))
    obj["status"] = {"loadBalancer": {}}


def _default_node(obj: Object) -> None:
    """What a node has it can give, unless it says less."""
    status = obj.get("status")
    if isinstance(status, dict) and status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = status["capacity"]


def _default_secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")


_DEFAULTS = {
    "Pod": _default_pod,
    "Namespace": _default_namespace,
    "Node": _default_node,
    "Service": _default_service,
    "Secret": _default_secret,
}
