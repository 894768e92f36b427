"""The columns that `kubectl get` shows for each kind, as data.

Names, order and priorities are a real server's: people read them, scripts cut them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mindie_ha.sim import cells
from mindie_ha.sim.cells import NONE, dig

Object = dict[str, Any]
Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `cell(object, now_s)` gives the value; priority 1 shows only with `-o wide`."""

    name: str
    cell: Callable[[Object, float], Cell]
    type: str = "string"
    priority: int = 0
    description: str = ""


def _path(name: str, *path: str, default: Cell = NONE, type: str = "string", wide: bool = False) -> Column:  # noqa: A002
    def cell(obj: Object, _now_s: float) -> Cell:
        value: Cell = dig(obj, *path)
        return default if value is None or value == "" else value

    return Column(name, cell, type, int(wide))


def _text(name: str, text: Callable[[Object], Cell], *, type: str = "string", wide: bool = False) -> Column:  # noqa: A002
    return Column(name, lambda obj, _now_s: text(obj), type, int(wide))


NAME = _path("Name", "metadata", "name")
AGE = Column("Age", lambda obj, now_s: cells.age(dig(obj, "metadata", "creationTimestamp"), now_s))
CREATED_AT = _path("Created At", "metadata", "creationTimestamp", type="date")
DEFAULT = (NAME, AGE)


def _size(*fields: str) -> Callable[[Object], int]:
    return lambda obj: sum(len(obj.get(field) or ()) for field in fields)


def _ratio(part: str, whole: tuple[str, ...]) -> Callable[[Object], str]:
    def ratio(obj: Object) -> str:
        total = dig(obj, *whole)
        return f"{dig(obj, 'status', part) or 0}/{1 if total is None else total}"

    return ratio


def _template(field: str) -> Callable[[Object], str]:
    return lambda obj: cells.containers(dig(obj, "spec", "template", "spec"), field)


def _budget(field: str) -> Callable[[Object], str]:
    def value(obj: Object) -> str:
        found = dig(obj, "spec", field)
        return "N/A" if found is None else str(found)

    return value


def _subjects(kind: str) -> Callable[[Object], str]:
    def names(obj: Object) -> str:
        chosen = [s for s in obj.get("subjects") or () if s.get("kind") == kind]
        return ", ".join(
            f"{s.get('namespace', '')}/{s['name']}" if kind == "ServiceAccount" else s["name"] for s in chosen
        )

    return names


def _role(obj: Object) -> str:
    return f"{dig(obj, 'roleRef', 'kind')}/{dig(obj, 'roleRef', 'name')}"


def _pod_ip(pod: Object) -> str:
    return dig(pod, "status", "podIP") or NONE


def _gates(pod: Object) -> str:
    gates = dig(pod, "spec", "readinessGates") or ()
    conditions = {c["type"]: c["status"] for c in dig(pod, "status", "conditions") or ()}
    ready = sum(1 for gate in gates if conditions.get(gate.get("conditionType")) == "True")
    return f"{ready}/{len(gates)}" if gates else NONE


def _event_object(event: Object) -> str:
    involved = event.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _event_source(event: Object) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    return f"{component}, {source['host']}" if source.get("host") else component


def _first_seen(event: Object, now_s: float) -> str:
    return cells.age(event.get("firstTimestamp") or event.get("eventTime"), now_s)


def _last_seen(event: Object, now_s: float) -> str:
    series = dig(event, "series", "lastObservedTime")
    return cells.age(series or event.get("lastTimestamp") or event.get("eventTime"), now_s)


_CONTAINERS = (
    _text("Containers", _template("name"), wide=True),
    _text("Images", _template("image"), wide=True),
)
_SELECTOR = _text("Selector", lambda obj: cells.selector(dig(obj, "spec", "selector")), wide=True)
_BINDING = (
    NAME,
    _text("Role", _role),
    AGE,
    _text("Users", _subjects("User"), wide=True),
    _text("Groups", _subjects("Group"), wide=True),
    _text("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_RBAC = "rbac.authorization.k8s.io"

BUILTIN: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Pod"): (
        NAME,
        _text("Ready", cells.pod_ready),
        _text("Status", cells.pod_status),
        Column("Restarts", cells.pod_restarts),
        AGE,
        _text("IP", _pod_ip, wide=True),
        _path("Node", "spec", "nodeName", wide=True),
        _path("Nominated Node", "status", "nominatedNodeName", wide=True),
        _text("Readiness Gates", _gates, wide=True),
    ),
    ("", "Node"): (
        NAME,
        _text("Status", cells.node_status),
        _text("Roles", cells.node_roles),
        AGE,
        _path("Version", "status", "nodeInfo", "kubeletVersion", default=""),
        _text("Internal-IP", lambda node: cells.node_address(node, "InternalIP"), wide=True),
        _text("External-IP", lambda node: cells.node_address(node, "ExternalIP"), wide=True),
        _path("OS-Image", "status", "nodeInfo", "osImage", default=cells.UNKNOWN, wide=True),
        _path("Kernel-Version", "status", "nodeInfo", "kernelVersion", default=cells.UNKNOWN, wide=True),
        _path(
            "Container-Runtime",
            "status",
            "nodeInfo",
            "containerRuntimeVersion",
            default=cells.UNKNOWN,
            wide=True,
        ),
    ),
    ("", "Namespace"): (NAME, _path("Status", "status", "phase", default=""), AGE),
    ("", "ConfigMap"): (NAME, _text("Data", _size("data", "binaryData")), AGE),
    ("", "Secret"): (
        NAME,
        _path("Type", "type", default="Opaque"),
        _text("Data", _size("data"), type="integer"),
        AGE,
    ),
    ("", "Service"): (
        NAME,
        _path("Type", "spec", "type", default="ClusterIP"),
        _path("Cluster-IP", "spec", "clusterIP"),
        _text("External-IP", cells.service_external),
        _text("Port(s)", cells.service_ports),
        AGE,
        _text("Selector", lambda obj: cells.pairs(dig(obj, "spec", "selector")), wide=True),
    ),
    ("", "Endpoints"): (NAME, _text("Endpoints", cells.endpoints), AGE),
    ("", "ServiceAccount"): (NAME, _text("Secrets", _size("secrets"), type="integer"), AGE),
    ("", "Event"): (
        Column("Last Seen", _last_seen),
        _path("Type", "type", default=""),
        _path("Reason", "reason", default=""),
        _text("Object", _event_object),
        _path("Subobject", "involvedObject", "fieldPath", default="", wide=True),
        _text("Source", _event_source, wide=True),
        _text("Message", lambda event: str(event.get("message", "")).strip()),
        Column("First Seen", _first_seen, priority=1),
        _path("Count", "count", default=1, type="integer", wide=True),
        _path("Name", "metadata", "name", wide=True),
    ),
    ("apps", "Deployment"): (
        NAME,
        _text("Ready", _ratio("readyReplicas", ("spec", "replicas"))),
        _path("Up-to-date", "status", "updatedReplicas", default=0, type="integer"),
        _path("Available", "status", "availableReplicas", default=0, type="integer"),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    ("apps", "StatefulSet"): (
        NAME,
        _text("Ready", _ratio("readyReplicas", ("spec", "replicas"))),
        AGE,
        *_CONTAINERS,
    ),
    ("apps", "ReplicaSet"): (
        NAME,
        _path("Desired", "spec", "replicas", default=1, type="integer"),
        _path("Current", "status", "replicas", default=0, type="integer"),
        _path("Ready", "status", "readyReplicas", default=0, type="integer"),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    ("coordination.k8s.io", "Lease"): (NAME, _path("Holder", "spec", "holderIdentity", default=""), AGE),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        _path("Value", "value", default=0, type="integer"),
        _path("Global-Default", "globalDefault", default=False, type="boolean"),
        AGE,
        _path("PreemptionPolicy", "preemptionPolicy", default="PreemptLowerPriority"),
    ),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        _text("Min Available", _budget("minAvailable")),
        _text("Max Unavailable", _budget("maxUnavailable")),
        _path("Allowed Disruptions", "status", "disruptionsAllowed", default=0, type="integer"),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        NAME,
        _text("Pod-Selector", lambda obj: cells.selector(dig(obj, "spec", "podSelector"))),
        AGE,
    ),
    (_RBAC, "Role"): (NAME, CREATED_AT),
    (_RBAC, "ClusterRole"): (NAME, CREATED_AT),
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (NAME, CREATED_AT),
}


def custom_columns(printer_columns: Iterable[Object]) -> tuple[Column, ...]:
    """Name, then what a CRD's `additionalPrinterColumns` ask for."""
    return (NAME, *(_printer_column(entry) for entry in printer_columns))


def _printer_column(entry: Object) -> Column:
    path, kind = entry["jsonPath"], entry["type"]

    def cell(obj: Object, now_s: float) -> Cell:
        value = cells.json_path(obj, path)
        if value is None or kind != "date":
            return value if value is None or isinstance(value, str | int | float | bool) else str(value)
        return cells.age(value, now_s)

    return Column(entry["name"], cell, kind, entry.get("priority", 0), entry.get("description", ""))
