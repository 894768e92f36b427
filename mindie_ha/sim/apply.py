"""Server-side apply: a manager states its fields, the server merges, remembers, and guards them.

A field that another manager owns with another value is a 409 unless forced; a field that the manager
no longer states, and nobody else owns, is removed. Ownership is recorded from an object's first apply on
(before that `before-first-apply` owns what is there, less what kubectl's own last-applied annotation
states), which keeps objects that are never applied small. Updates of an applied object move ownership too.
"""

from __future__ import annotations

from typing import Any

import orjson

from mindie_ha.sim.ownership import Path, display, fields_of, from_json, remove, to_json
from mindie_ha.sim.patches import merge_patch, strategic_merge_patch
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Cause, Object, apply_conflict

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Manager = tuple[str, str, str]  # name, operation (Apply, Update), subresource
Owners = dict[Manager, set[Path]]


def owners_of(obj: Object) -> Owners:
    """What `managedFields` say."""
    owners: Owners = {}
    for entry in obj["metadata"].get("managedFields") or []:
        manager = (entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", ""))
        owners.setdefault(manager, set()).update(from_json(entry.get("fieldsV1")))
    return owners


def merge(
    old: Object, applied: Object, resource: Resource, *, manager: Manager, force: bool
) -> tuple[Object, Owners]:
    """The merged object and the new owners; raises StatusError 409 on conflicts. `old` is given away."""
    owners = owners_of(old) or _before_first_apply(old, resource)
    present = fields_of(old, custom=resource.custom)
    stated = fields_of(applied, custom=resource.custom)
    _take(owners, manager, present, stated, force=force)
    dropped = owners.get(manager, set()) - stated.keys()
    owners[manager] = set(stated)
    merged = _merged(old, applied, resource)
    for path in sorted(dropped, key=len, reverse=True):
        if not any(_owns(paths, path) for paths in owners.values()):
            remove(merged, path)
    return merged, owners


def _before_first_apply(old: Object, resource: Resource) -> Owners:
    paths = set(fields_of(old, custom=resource.custom))
    last = (old["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if last:
        try:
            applied = orjson.loads(last)
        except ValueError:
            applied = {}
        if isinstance(applied, dict):
            paths -= fields_of(applied, custom=resource.custom).keys()
    return {("before-first-apply", "Update", ""): paths}


def _take(
    owners: Owners, manager: Manager, present: dict[Path, Any], stated: dict[Path, Any], *, force: bool
) -> None:
    causes: list[Cause] = []
    changed = [path for path in stated if path not in present or present[path] != stated[path]]
    for other, paths in owners.items():
        if other == manager:
            continue
        for path in changed:
            if path in paths and path[-1] != ".":
                causes.append(Cause("FieldManagerConflict", f'conflict with "{other[0]}"', display(path)))
                if force:
                    paths.discard(path)
    if causes and not force:
        raise apply_conflict(causes)


def _merged(old: Object, applied: Object, resource: Resource) -> Object:
    if not resource.custom:
        return strategic_merge_patch(old, applied)
    merged: Object = merge_patch(old, applied)
    merged["metadata"] = strategic_merge_patch(old["metadata"], applied["metadata"])
    return merged


def _owns(paths: set[Path], path: Path) -> bool:
    if path[-1] == ".":
        return any(each[: len(path) - 1] == path[:-1] for each in paths)
    return path in paths


def move(old: Object, new: Object, resource: Resource, *, manager: Manager) -> Owners:
    """Owners after an ordinary write: what it changed is the writer's, what it removed is nobody's."""
    owners = owners_of(old)
    before = fields_of(old, custom=resource.custom)
    after = fields_of(new, custom=resource.custom)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    for other, paths in owners.items():
        paths.intersection_update(after)
        if other != manager:
            paths.difference_update(changed)
    if changed:
        owners.setdefault(manager, set()).update(changed)
    return owners


def managed_fields(owners: Owners, old: Object | None, *, api_version: str, now: str) -> list[Object]:
    """`metadata.managedFields`; an entry whose fields did not change keeps its time."""
    known = {
        (each.get("manager", ""), each.get("operation", ""), each.get("subresource", "")): each
        for each in (old["metadata"].get("managedFields") or [] if old else [])
    }
    entries: list[Object] = []
    for manager, paths in owners.items():
        if not paths:
            continue
        fields = to_json(paths)
        if manager in known and known[manager].get("fieldsV1") == fields:
            entries.append(known[manager])
            continue
        name, operation, subresource = manager
        entry: Object = {"manager": name, "operation": operation, "apiVersion": api_version, "time": now}
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": fields}
        if subresource:
            entry["subresource"] = subresource
        entries.append(entry)
    return entries
