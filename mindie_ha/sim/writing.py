"""Create, update and patch: one path from a body to a stored version.

Every write ends in `commit`, so that the rules hold whatever the verb: resourceVersion is optimistic
locking, uid never changes, server-owned metadata is kept, generation follows the spec, a write that changes
nothing makes no version and no event, and an object whose deletion only waited for finalizers goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindie_ha.sim import admissions, services, strategies
from mindie_ha.sim import apply as apply_rules
from mindie_ha.sim.bodies import APPLY, check_object, decode, decode_patch, media_type
from mindie_ha.sim.core import NAMESPACES, Core, WriteOptions, precondition_failure, same
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.metadata import check_values
from mindie_ha.sim.ownership import fields_of
from mindie_ha.sim.patches import json_patch, merge_patch, strategic_merge_patch
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import (
    MODIFIED,
    Cause,
    Object,
    StatusError,
    already_exists,
    bad_options,
    bad_patch,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    unexpected,
    unsupported_media,
)
from mindie_ha.sim.storage import Stored

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # what generateName draws from: no vowels, no look-alikes
_KEPT = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)


def create(
    core: Core, route: Route, body: Any, options: WriteOptions, *, managed: list[Object] | None = None
) -> Stored:
    """Store a new object; raises StatusError 400, 404 (namespace), 409, 422."""
    resource = route.resource
    obj = _decoded(core, route, body, options)
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise unexpected("resourceVersion should not be set on objects to be created")
    _generate_name(core, meta)
    if resource.namespaced:
        check_namespace(core, resource, route.namespace, meta.get("name", ""))
    if core.store.get(resource, route.namespace, meta.get("name", "")) is not None:
        raise already_exists(resource, meta["name"])
    for field in (*_KEPT, "resourceVersion"):
        meta.pop(field, None)
    meta["uid"] = core.entropy.uuid()
    meta["creationTimestamp"] = core.now_text()
    if managed:
        meta["managedFields"] = managed
    strategies.prepare_create(obj, resource)
    admissions.admit(core, resource, obj)
    causes = [*check_values(obj, resource), *strategies.check_size(obj, resource)]
    core.check(resource, obj, [*causes, *services.allocate(core, resource, obj)])
    if options.dry_run:
        return Stored(obj, 0)
    return core.store.put(resource, obj)


def _decoded(
    core: Core, route: Route, body: Any, options: WriteOptions, *, old: Stored | None = None
) -> Object:
    obj = check_object(body, route)
    return core.decode(route.resource, obj, options, old=old.obj if old else None)


def _generate_name(core: Core, meta: Object) -> None:
    prefix = meta.get("generateName")
    if prefix and not meta.get("name"):
        draws = (core.entropy.randint(0, len(_SUFFIX) - 1) for _ in range(5))
        meta["name"] = prefix[:58] + "".join(_SUFFIX[draw] for draw in draws)


def check_namespace(core: Core, resource: Resource, namespace: str, name: str) -> None:
    """Raises StatusError 404 where the namespace is not there, 403 where it is being deleted."""
    found = core.store.get(NAMESPACES, "", namespace)
    if found is None:
        raise not_found(NAMESPACES, namespace)
    if "deletionTimestamp" in found.obj["metadata"]:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        text = f"namespace {namespace} is being terminated"
        cause = Cause("NamespaceTerminating", text, "metadata.namespace")
        raise forbidden(resource, name, why, causes=[cause])


def update(core: Core, route: Route, body: Any, options: WriteOptions) -> Stored:
    """Replace an object or its status; raises StatusError 400, 404, 409, 422."""
    old = core.existing(route.resource, route.namespace, route.name)
    obj = _decoded(core, route, body, options, old=old)
    needs_version = route.resource.custom or route.resource.kind in strategies.NEEDS_VERSION_ON_UPDATE
    if needs_version and not obj["metadata"].get("resourceVersion"):
        text = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
        raise invalid(route.resource, route.name, [cause])
    return commit(core, route, old, obj, options)


def patch(core: Core, route: Route, content_type: str, raw: bytes, options: WriteOptions) -> Stored:
    """Apply one of the three patch formats; raises StatusError 400, 404, 409, 415, 422."""
    method = _method(route.resource, media_type(content_type))
    old = core.existing(route.resource, route.namespace, route.name)
    patched = method(old.thaw(), decode_patch(raw))
    _check_uid(route.resource, old, patched)
    checked = check_object(patched, route)
    try:
        obj = core.decode(route.resource, checked, options, old=old.obj)
    except StatusError as error:
        if options.strict:
            raise
        raise bad_patch(error.message) from None
    return commit(core, route, old, obj, options)


def _check_uid(resource: Resource, old: Stored, patched: Any) -> None:
    """A patch cannot name another object; a replacement that does is a conflict."""
    meta = patched.get("metadata") if isinstance(patched, dict) else None
    uid = meta.get("uid") if isinstance(meta, dict) else None
    if uid and uid != old.obj["metadata"]["uid"]:
        text = f'Invalid value: "{uid}": field is immutable'
        raise invalid(
            resource, old.obj["metadata"]["name"], [Cause("FieldValueInvalid", text, "metadata.uid")]
        )


def apply(core: Core, route: Route, raw: bytes, options: WriteOptions) -> tuple[Stored, bool]:
    """Server-side apply: the object, and whether it is new; raises StatusError 400, 404, 409, 422."""
    resource = route.resource
    if not options.named:
        text = "Required value: is required for apply patch"
        raise bad_options("PatchOptions", Cause("FieldValueRequired", text, "fieldManager"))
    applied = _decoded(core, route, decode(raw, APPLY), options)
    if applied["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    manager = (options.manager, "Apply", route.subresource)
    stored = core.store.get(resource, route.namespace, route.name)
    if stored is None:
        if route.subresource:
            raise not_found(resource, route.name)
        applied["metadata"].pop("uid", None)
        owners: apply_rules.Owners = {manager: set(fields_of(applied, custom=resource.custom))}
        managed = apply_rules.managed_fields(
            owners, None, api_version=resource.api_version, now=core.now_text()
        )
        return create(core, route, applied, options, managed=managed), True
    merged, owners = apply_rules.merge(stored.thaw(), applied, resource, manager=manager, force=options.force)
    if not applied["metadata"].get("resourceVersion"):
        merged["metadata"].pop("resourceVersion", None)
    return commit(core, route, stored, merged, options, owners=owners), False


def _method(resource: Resource, kind: str) -> Callable[[Any, Any], Any]:
    methods: dict[str, Callable[[Any, Any], Any]] = {JSON_PATCH: json_patch, MERGE_PATCH: merge_patch}
    if not resource.custom:
        methods[STRATEGIC_PATCH] = strategic_merge_patch
    if kind not in methods:
        raise unsupported_media((*methods, "application/apply-patch+yaml"))
    return methods[kind]


def commit(
    core: Core,
    route: Route,
    old: Stored,
    new: Object,
    options: WriteOptions,
    *,
    owners: apply_rules.Owners | None = None,
) -> Stored:
    """Check `new` against `old` and store it; the one place where a version of an object is replaced."""
    resource = route.resource
    _check_preconditions(resource, old, new)
    before, meta = old.obj["metadata"], new["metadata"]
    for field in _KEPT:
        if field in before:
            meta[field] = before[field]
        else:
            meta.pop(field, None)
    if resource is services.SERVICES:
        services.keep(new, old.obj)
    strategies.prepare_update(new, old.obj, resource, route.subresource)
    meta = new["metadata"]
    meta["resourceVersion"] = before["resourceVersion"]
    unchanged = same(old, new)
    if owners is None and before.get("managedFields") and not unchanged:
        owners = _moved_owners(route, old, new, options)
    if owners is not None:
        meta["managedFields"] = apply_rules.managed_fields(
            owners, old.obj, api_version=resource.api_version, now=core.now_text()
        )
    if unchanged and meta.get("managedFields") == before.get("managedFields"):
        return old
    causes = [*check_values(new, resource), *strategies.check_size(new, resource)]
    core.check(resource, new, [*causes, *strategies.check_update(new, old.obj, resource)])
    _check_finalizers(resource, before, meta)
    if options.dry_run:
        return Stored(new, old.version)
    if _gone(resource, meta):
        # As a real server: watchers see the object as it was, the answer shows it without its finalizers.
        core.store.remove(resource, route.namespace, route.name)
        return Stored(new, old.version)
    return core.store.put(resource, new)


def _moved_owners(route: Route, old: Stored, new: Object, options: WriteOptions) -> apply_rules.Owners:
    manager = (options.manager, "Update", route.subresource)
    return apply_rules.move(old.obj, new, route.resource, manager=manager)


def _check_preconditions(resource: Resource, old: Stored, new: Object) -> None:
    meta = new["metadata"]
    if meta.get("uid"):
        why = precondition_failure(old, {"uid": meta["uid"]})
        if why:
            raise conflict(resource, meta["name"], why)
    version = meta.get("resourceVersion")
    if version and version != old.obj["metadata"]["resourceVersion"]:
        if not version.isdecimal():
            raise unexpected(f'strconv.ParseUint: parsing "{version}": invalid syntax')
        raise conflict(resource, meta["name"], MODIFIED)


def _check_finalizers(resource: Resource, before: Object, meta: Object) -> None:
    added = set(meta.get("finalizers") or ()) - set(before.get("finalizers") or ())
    if added and "deletionTimestamp" in before:
        text = "Forbidden: no new finalizers can be added if the object is being deleted"
        text += f", found new finalizers {sorted(added)}"
        raise invalid(resource, meta["name"], [Cause("FieldValueForbidden", text, "metadata.finalizers")])


def _gone(resource: Resource, meta: Object) -> bool:
    if "deletionTimestamp" not in meta or meta.get("finalizers") or resource.kind == "Namespace":
        return False
    return not meta.get("deletionGracePeriodSeconds")
