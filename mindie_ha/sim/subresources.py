"""What is posted to an object rather than stored as one: a pod's binding and eviction, access reviews.

There is no disruption controller, so an eviction counts the budget's healthy pods itself, from the same
rule: allowed while healthy pods minus one still reach `minAvailable` (or expected minus `maxUnavailable`).
"""

from __future__ import annotations

import math
from typing import Any

from mindie_ha.sim import deletions
from mindie_ha.sim.core import Core, WriteOptions
from mindie_ha.sim.deletions import DeleteOptions
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.selectors import match_label_selector
from mindie_ha.sim.statuses import (
    Cause,
    Object,
    StatusError,
    bad_request,
    conflict,
    success,
    too_many_requests,
)
from mindie_ha.sim.storage import Stored, kind_of

REVIEWS = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": "SubjectAccessReview",
    "/apis/authentication.k8s.io/v1/tokenreviews": "TokenReview",
}
_BUDGETS = ("policy", "poddisruptionbudgets")


def bind(core: Core, route: Route, body: Any, options: WriteOptions) -> Object:
    """Put a pod on a node; raises StatusError 400, 404, 409."""
    target = body.get("target") if isinstance(body, dict) else None
    node = target.get("name") if isinstance(target, dict) else None
    if not isinstance(node, str) or not node:
        raise bad_request("Binding: target.name: Required value")
    stored = core.existing(route.resource, route.namespace, route.name)
    obj = stored.thaw()
    name, meta = route.name, obj["metadata"]
    if "deletionTimestamp" in meta:
        raise conflict(_PODS_BINDING, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if obj["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{obj["spec"]["nodeName"]}"'
        raise conflict(_PODS_BINDING, name, why)
    obj["spec"]["nodeName"] = node
    status = obj.setdefault("status", {})
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    scheduled["lastTransitionTime"] = core.now_text()
    others = [each for each in status.get("conditions") or [] if each.get("type") != "PodScheduled"]
    status["conditions"] = [*others, scheduled]
    if not options.dry_run:
        core.store.put(route.resource, obj)
    return success(code=201)


_PODS_BINDING = Resource("", "v1", "Binding", "pods/binding", "binding")


def evict(core: Core, route: Route, body: Any) -> tuple[Object, Stored]:
    """Delete a pod if every budget allows; raises StatusError 404, 409, 429."""
    wanted = body.get("deleteOptions") if isinstance(body, dict) else None
    options = DeleteOptions.read(wanted or {}, {})
    stored = core.existing(route.resource, route.namespace, route.name)
    if (stored.obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed", "Pending"):
        _check_budgets(core, route, stored)
    last, _ = deletions.delete(core, route, options)
    return success(code=201), last


def _check_budgets(core: Core, route: Route, pod: Stored) -> None:
    labels = pod.obj["metadata"].get("labels") or {}
    budgets = [
        budget.obj
        for _, budget in core.store.collection(_BUDGETS).iterate(route.namespace)
        if _selects(budget.obj, labels)
    ]
    if len(budgets) > 1:
        text = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise StatusError(500, "InternalError", text)
    for budget in budgets:
        healthy, needed = _count(core, route, budget)
        if healthy - 1 < needed and _ready(pod.obj):
            name = budget["metadata"]["name"]
            text = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
            raise too_many_requests(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                causes=[Cause("DisruptionBudget", text, "")],
            )


def _selects(budget: Object, labels: Object) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return isinstance(selector, dict) and match_label_selector(selector, labels)


def _count(core: Core, route: Route, budget: Object) -> tuple[int, int]:
    pods = [
        pod.obj
        for _, pod in core.store.collection(kind_of(route.resource)).iterate(route.namespace)
        if _selects(budget, pod.obj["metadata"].get("labels") or {})
    ]
    healthy = sum(_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in pods)
    spec = budget.get("spec") or {}
    if "maxUnavailable" in spec:
        return healthy, len(pods) - _share(spec["maxUnavailable"], len(pods))
    return healthy, _share(spec.get("minAvailable", 1), len(pods))


def _share(value: object, of: int) -> int:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        return math.ceil(int(value[:-1]) * of / 100)
    return value if isinstance(value, int) else 0


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def review(kind: str, body: Any) -> Object:
    """An access review: everybody may do everything here, and `sim:NAME` is the token of NAME."""
    spec = body.get("spec") if isinstance(body, dict) else None
    if kind == "TokenReview":
        return _token_review(spec if isinstance(spec, dict) else {})
    status = {"allowed": True, "reason": "the embedded cluster allows everything"}
    return {
        "kind": kind,
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec or {},
        "status": status,
    }


def _token_review(spec: Object) -> Object:
    kind, _, name = str(spec.get("token", "")).partition(":")
    status: Object = {"error": "invalid bearer token"}
    if kind == "sim" and name:
        user = {"username": name, "uid": name, "groups": ["system:authenticated"]}
        status = {"authenticated": True, "user": user, "audiences": ["sim"]}
    return {
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": status,
    }
