"""How one value of an object becomes one cell of a printed table: ages, pod states, node states, JSON paths.

The rules are those of the real server's printers, because people and scripts read these words: a pod being
deleted is `Terminating`, a crashed container shows its reason, ages are rounded as kubectl rounds them.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

Object = dict[str, Any]

NONE = "<none>"
UNKNOWN = "<unknown>"

_STEP = re.compile(
    r"\.([A-Za-z0-9_\-]+)|\['([^']+)'\]|\[(-?\d+)(:?)\]|\[\?\(@\.([\w.]+)==[\"']([^\"']*)[\"']\)\]"
)


def dig(obj: Any, *path: str) -> Any:
    """The value at a path of keys, or None where any step is missing."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def age(timestamp: str | None, now_s: float) -> str:
    """Time since an RFC 3339 timestamp, as kubectl rounds it; `<unknown>` without one."""
    if not timestamp:
        return UNKNOWN
    try:
        since_s = now_s - datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return "<invalid>"
    return duration(since_s)


def duration(seconds: float) -> str:
    """`90s`, `5m30s`, `45m`, `3h10m`, `20h`, `3d4h`, `200d`: two units only while the first is small."""
    total = int(seconds)
    if total < 0:
        return "<invalid>" if total < -1 else "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 180:
        return _two(minutes, "m", total % 60, "s", small=10)
    if hours < 48:
        return _two(hours, "h", minutes % 60, "m", small=8)
    if days < 730:
        return _two(days, "d", hours % 24, "h", small=8)
    return _two(days // 365, "y", days % 365, "d", small=8)


def _two(first: int, first_unit: str, second: int, second_unit: str, *, small: int) -> str:
    return f"{first}{first_unit}{second}{second_unit}" if first < small and second else f"{first}{first_unit}"


def pairs(labels: Object | None) -> str:
    """`a=b,c=d`, sorted."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector(value: Object | None) -> str:
    """A label selector in its one-line form."""
    if value is None:
        return NONE
    parts = [f"{key}={text}" for key, text in sorted((value.get("matchLabels") or {}).items())]
    for rule in value.get("matchExpressions") or ():
        key, operator, values = rule.get("key"), rule.get("operator"), ",".join(rule.get("values") or ())
        match operator:
            case "Exists":
                parts.append(f"{key}")
            case "DoesNotExist":
                parts.append(f"!{key}")
            case _:
                parts.append(f"{key} {'in' if operator == 'In' else 'notin'} ({values})")
    return ",".join(parts) or NONE


def containers(pod_spec: Object | None, field: str) -> str:
    """One field of all containers, comma separated."""
    return ",".join(str(c.get(field, "")) for c in dig(pod_spec, "containers") or ())


def pod_ready(pod: Object) -> str:
    """`ready/total` containers."""
    ready = sum(1 for c in dig(pod, "status", "containerStatuses") or () if c.get("ready"))
    return f"{ready}/{len(dig(pod, 'spec', 'containers') or ())}"


def pod_restarts(pod: Object, now_s: float) -> str:
    """The number of restarts of all containers and, where known, how long ago the last one was."""
    statuses = dig(pod, "status", "containerStatuses") or ()
    count = sum(int(status.get("restartCount", 0)) for status in statuses)
    ends = [dig(status, "lastState", "terminated", "finishedAt") for status in statuses]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({age(last, now_s)} ago)" if count and last else str(count)


def pod_status(pod: Object) -> str:
    """The one word `kubectl get pods` shows."""
    status = pod.get("status") or {}
    phase = status.get("phase", "")
    reason: str = status.get("reason") or phase
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    reason = _init_reason(pod) or _container_reason(status.get("containerStatuses") or (), reason, status)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _init_reason(pod: Object) -> str:
    statuses = dig(pod, "status", "initContainerStatuses") or ()
    total = len(dig(pod, "spec", "initContainers") or ())
    for index, status in enumerate(statuses):
        terminated = dig(status, "state", "terminated")
        waiting = dig(status, "state", "waiting")
        if terminated is not None and terminated.get("exitCode") == 0:
            continue
        if terminated is not None:
            return f"Init:{_ended(terminated)}"
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{total}"
    return ""


def _container_reason(statuses: Any, reason: str, status: Object) -> str:
    running = False
    for container in reversed(list(statuses)):
        waiting = dig(container, "state", "waiting")
        terminated = dig(container, "state", "terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated:
            reason = _ended(terminated)
        elif container.get("ready") and dig(container, "state", "running") is not None:
            running = True
    if reason == "Completed" and running:
        ready = any(
            c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ()
        )
        return "Running" if ready else "NotReady"
    return reason


def _ended(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def node_status(node: Object) -> str:
    """`Ready`, `NotReady` or `Unknown`, and `SchedulingDisabled` when cordoned."""
    ready = next((c for c in dig(node, "status", "conditions") or () if c.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if dig(node, "spec", "unschedulable") else word


def node_roles(node: Object) -> str:
    """The roles that labels give to a node."""
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def node_address(node: Object, kind: str) -> str:
    """The first address of a kind (InternalIP, ExternalIP)."""
    addresses = dig(node, "status", "addresses") or ()
    return next((a["address"] for a in addresses if a.get("type") == kind), NONE)


def service_ports(service: Object) -> str:
    """`80/TCP,443:30443/TCP`."""
    parts = []
    for port in dig(service, "spec", "ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        parts.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(parts) or NONE


def service_external(service: Object) -> str:
    """Where a service is reached from outside."""
    ips = [*(dig(service, "spec", "externalIPs") or ())]
    if dig(service, "spec", "type") == "ExternalName":
        return str(dig(service, "spec", "externalName") or NONE)
    if dig(service, "spec", "type") == "LoadBalancer":
        ingress = dig(service, "status", "loadBalancer", "ingress") or ()
        ips += [entry.get("ip") or entry.get("hostname", "") for entry in ingress]
        return ",".join(ips) or "<pending>"
    return ",".join(ips) or NONE


def endpoints(obj: Object) -> str:
    """The first three addresses with ports."""
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or NONE


def json_path(obj: Any, path: str) -> Any:
    """The first value at a printer column's JSON path; None where there is none.

    Understands what printer columns use: `.a.b`, `['a']`, `[0]`, `[-1:]`, `[?(@.type=="Ready")]`.
    """
    for key, quoted, index, _slice, field, wanted in _STEP.findall(path):
        if key or quoted:
            obj = dig(obj, key or quoted)
        elif not isinstance(obj, list):
            return None
        elif index:
            obj = obj[int(index)] if -len(obj) <= int(index) < len(obj) else None
        else:
            obj = next((item for item in obj if str(dig(item, *field.split("."))) == wanted), None)
    return obj
