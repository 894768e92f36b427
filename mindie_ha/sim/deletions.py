"""Deletes: grace, preconditions, finalizers, propagation, collections.

A pod on a node gets deletionTimestamp and grace and stays until somebody (the kubelet) deletes it with
grace 0; everything else, and grace 0, goes at once unless finalizers hold it. A later delete may shorten a
grace, never lengthen it. A Namespace turns Terminating and is emptied by `garbage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mindie_ha.sim.core import Core, precondition_failure
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Cause, Object, bad_request, conflict, forbidden, invalid
from mindie_ha.sim.storage import Stored

GRACE_S = 30
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_FOREVER = ("default", "kube-system", "kube-public")
_POLICIES = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete; None for what the client left to the kind."""

    grace_s: int | None = None
    policy: str = "Background"
    preconditions: Mapping[str, object] = field(default_factory=dict)
    dry_run: bool = False

    @classmethod
    def read(cls, body: Any, query: Mapping[str, str]) -> DeleteOptions:
        """From a body, else the query; raises StatusError 400 or 422."""
        if not isinstance(body, dict):
            body = {}
        grace: Any = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        if isinstance(grace, str):
            grace = int(grace) if grace.lstrip("-").isdecimal() else "?"
        if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
            raise bad_request("gracePeriodSeconds must be a whole number of seconds")
        preconditions = body.get("preconditions") or {}
        if not isinstance(preconditions, dict):
            raise bad_request("preconditions must be an object")
        dry_run = body.get("dryRun") or query.get("dryRun") or []
        return cls(
            None if grace is None else max(0, grace) if grace >= 0 else 1,
            _policy(body, query),
            preconditions,
            dry_run in (["All"], "All"),
        )


def _policy(body: Object, query: Mapping[str, str]) -> str:
    policy = body.get("propagationPolicy") or query.get("propagationPolicy")
    if policy is None:
        orphans = body.get("orphanDependents", query.get("orphanDependents") == "true")
        return "Orphan" if orphans else "Background"
    if policy not in _POLICIES:
        text = f'Unsupported value: "{policy}": must be one of Foreground, Background, Orphan or nil'
        options = Resource("meta.k8s.io", "v1", "DeleteOptions", "", "")
        raise invalid(options, "", [Cause("FieldValueNotSupported", text, "propagationPolicy")])
    return str(policy)


def delete(core: Core, route: Route, options: DeleteOptions) -> tuple[Stored, bool]:
    """Delete one object: its last state, and whether it is gone. Raises StatusError 404, 409."""
    resource = route.resource
    stored = core.existing(resource, route.namespace, route.name)
    why = precondition_failure(stored, options.preconditions)
    if why:
        # A real server puts the kind where the resource's name belongs.
        raise conflict(replace(resource, plural=resource.kind), route.name, why)
    if resource.kind == "Namespace" and route.name in _FOREVER:
        raise forbidden(resource, route.name, "this namespace may not be deleted")
    grace_s = _grace(resource, stored.obj, options.grace_s)
    meta = stored.obj["metadata"]
    if "deletionTimestamp" in meta and not _shortens(meta, grace_s):
        return stored, False
    finalizers = _finalizers(meta, options.policy)
    held = bool(grace_s or finalizers or resource.kind == "Namespace")
    if options.dry_run:
        return stored, not held
    if not held:
        if resource.kind == "Pod":  # the grace is written down before a pod goes, also where it is 0
            marked = core.store.put(resource, _marked(core, resource, stored, 0, finalizers))
            core.store.remove(resource, route.namespace, route.name)
            return marked, True
        return core.store.remove(resource, route.namespace, route.name), True
    return core.store.put(resource, _marked(core, resource, stored, grace_s, finalizers)), False


def _grace(resource: Resource, obj: Object, wanted_s: int | None) -> int:
    if resource.kind != "Pod":
        return 0
    spec = obj.get("spec") or {}
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    own = spec.get("terminationGracePeriodSeconds")
    return wanted_s if wanted_s is not None else own if isinstance(own, int) else GRACE_S


def _shortens(meta: Object, grace_s: int) -> bool:
    present_s = meta.get("deletionGracePeriodSeconds") or 0
    return grace_s < present_s or (present_s == 0 and not meta.get("finalizers"))


def _finalizers(meta: Object, policy: str) -> list[str]:
    present = [each for each in meta.get("finalizers") or [] if each not in (ORPHAN, FOREGROUND)]
    added = _POLICIES[policy]
    return [*present, added] if added else present


def _marked(core: Core, resource: Resource, stored: Stored, grace_s: int, finalizers: list[str]) -> Object:
    obj = stored.thaw()
    meta = obj["metadata"]
    if "deletionTimestamp" in meta:
        asked_s = datetime.fromisoformat(meta["deletionTimestamp"]).timestamp()
        asked_s -= meta.get("deletionGracePeriodSeconds") or 0
        meta["deletionTimestamp"] = core.now_text(after_s=asked_s + grace_s - core.clock.wall())
    else:
        meta["deletionTimestamp"] = core.now_text(after_s=grace_s)
        if "generation" in meta:
            meta["generation"] += 1
    meta["deletionGracePeriodSeconds"] = grace_s
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if resource.kind == "Namespace":
        meta.pop("deletionGracePeriodSeconds")
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return obj


def delete_collection(core: Core, route: Route, options: DeleteOptions, chosen: list[Stored]) -> list[Stored]:
    """Delete every object of a selection; one that vanished meanwhile is no error."""
    deleted: list[Stored] = []
    each_options = replace(options, preconditions={})
    for stored in chosen:
        meta = stored.obj["metadata"]
        one = replace(route, namespace=meta.get("namespace", ""), name=meta["name"])
        if core.store.get(one.resource, one.namespace, one.name) is not None:
            deleted.append(delete(core, one, each_options)[0])
    return deleted
