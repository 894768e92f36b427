"""The three ways to patch: JSON patch, JSON merge patch, strategic merge patch.

All are pure: a copy of the object and the patch in, the patched object out; a patch that cannot be applied
raises StatusError with the code that a real server gives. Strategic merge knows the merge keys of the
built-in kinds by field name (`ports` differs between containers and Services); it is refused for custom
kinds by the caller, as real servers do (415).
"""

from __future__ import annotations

from typing import Any

from mindie_ha.sim.statuses import StatusError, bad_request

Object = dict[str, Any]  # one Kubernetes object as decoded JSON

MERGE_KEYS: dict[str, str] = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name",
    "env": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath", "imagePullSecrets": "name",
    "secrets": "name", "hostAliases": "ip", "topologySpreadConstraints": "topologyKey", "conditions": "type",
    "addresses": "type", "podIPs": "ip", "hostIPs": "ip", "ownerReferences": "uid", "resourceClaims": "name",
    "schedulingGates": "name",
}  # fmt: skip
PRIMITIVE_SETS = frozenset({"finalizers", "podCIDRs"})


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902; every operation or none."""
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request("error decoding patch: every operation needs op and path")
        target = _operate(target, operation)
    return target


def _operate(target: Any, operation: Object) -> Any:
    kind, path = operation.get("op"), _pointer(operation["path"])
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise _unprocessable(f'{kind} operation: missing "value"')
    if kind in ("move", "copy"):
        origin = _pointer(str(operation.get("from", "")))
        value = _look(target, origin)
        if kind == "move":
            target = _remove(target, origin)
        return _add(target, path, _copy(value))
    match kind:
        case "add":
            return _add(target, path, operation["value"])
        case "replace":
            _look(target, path)
            return _add(_remove(target, path) if path else target, path, operation["value"])
        case "remove":
            return _remove(target, path)
        case "test":
            if _look(target, path, missing_ok=operation["value"] is None) != operation["value"]:
                raise _unprocessable(f"testing value {operation['path']} failed: test failed")
            return target
        case _:
            raise _unprocessable(f"Unexpected kind: {kind}")


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise _unprocessable(f"invalid JSON pointer {text!r}: must start with /")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _index(steps: list[str], items: list[Any], *, end: int) -> int:
    if steps[-1] == "-":
        return len(items)
    if not steps[-1].isdecimal() or int(steps[-1]) > end:
        raise _unprocessable(f"unable to access invalid index: {steps[-1]}: /{'/'.join(steps)}")
    return int(steps[-1])


def _look(target: Any, path: list[str], *, missing_ok: bool = False) -> Any:
    for depth, step in enumerate(path, 1):
        if isinstance(target, dict) and step in target:
            target = target[step]
        elif isinstance(target, list):
            at = _index(path[:depth], target, end=len(target) - 1)
            if at >= len(target):
                raise _missing(path)
            target = target[at]
        elif missing_ok and depth == len(path):
            return None
        else:
            raise _missing(path)
    return target


def _add(target: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _look(target, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(_index(path, parent, end=len(parent)), value)
    else:
        raise _missing(path)
    return target


def _remove(target: Any, path: list[str]) -> Any:
    _look(target, path)
    parent = _look(target, path[:-1])
    if isinstance(parent, dict):
        del parent[path[-1]]
    else:
        del parent[int(path[-1])]
    return target


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, lists are replaced."""
    if not isinstance(patch, dict):
        return patch
    merged: Object = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_merge_patch(target: Object, patch: Any, *, parent: str = "") -> Object:
    """Merge patch in which lists of objects merge by key and `$patch` directives are obeyed."""
    if not isinstance(patch, dict):
        raise bad_request("invalid strategic merge patch: must be an object")
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(target)
    retained = patch.get("$retainKeys")
    if isinstance(retained, list):
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        field = key.partition("/")[2]
        if key.startswith("$deleteFromPrimitiveList/"):
            merged[field] = [item for item in merged.get(field) or [] if item not in value]
        elif not key.startswith("$"):
            _merge_field(merged, key, value, parent)
    for key, order in patch.items():
        field = key.partition("/")[2]
        if key.startswith("$setElementOrder/") and isinstance(merged.get(field), list):
            merged[field] = _ordered(merged[field], order, merge_key(field, parent))
    return merged


def _merge_field(merged: Object, key: str, value: Any, parent: str) -> None:
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, dict):
        present = merged.get(key)
        merged[key] = strategic_merge_patch(present if isinstance(present, dict) else {}, value, parent=key)
    elif isinstance(value, list):
        merged[key] = _merge_list(merged.get(key) or [], value, key, merge_key(key, parent))
    else:
        merged[key] = value


def merge_key(field: str, parent: str) -> str | None:
    """By which member the items of a list merge; None for a list that is replaced whole."""
    if field == "ports":  # those of a Service, of a container, of Endpoints (atomic)
        return {"spec": "port", "containers": "containerPort", "initContainers": "containerPort"}.get(parent)
    return MERGE_KEYS.get(field)


def _merge_list(present: Any, patch: list[Any], field: str, key: str | None) -> list[Any]:
    if field in PRIMITIVE_SETS:
        return list(dict.fromkeys([*present, *patch]))
    if key is None or not all(isinstance(item, dict) for item in [*present, *patch]):
        return patch
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    merged, new = list(present), []
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        at = next((i for i, old in enumerate(merged) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item[key]]
        elif at is None:
            new.append(strategic_merge_patch({}, item, parent=field))
        else:
            merged[at] = strategic_merge_patch(merged[at], item, parent=field)
    return [*new, *merged]


def _ordered(items: list[Any], order: list[Any], key: str | None) -> list[Any]:
    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    listed = sorted(
        (item for item in items if identity(item) in wanted), key=lambda i: wanted.index(identity(i))
    )
    return [*listed, *(item for item in items if identity(item) not in wanted)]


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _missing(path: list[str]) -> StatusError:
    return _unprocessable(f"the path /{'/'.join(path)} does not exist: missing value")


def _unprocessable(message: str) -> StatusError:
    text = f"the server rejected our request due to an error in our request: {message}"
    return StatusError(422, "Invalid", text, details={})
