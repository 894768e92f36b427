"""Which manager owns which field: the sets behind `metadata.managedFields`.

A field is a path of FieldsV1 steps (`f:spec`, `k:{"name":"main"}`, `v:"x"`); list items that merge by key
own themselves through a closing `.`. Lists of custom kinds are atomic, as without list types in their CRD.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from mindie_ha.sim.patches import PRIMITIVE_SETS, merge_key
from mindie_ha.sim.statuses import Object

Path = tuple[str, ...]

_ATOMIC = frozenset({"selector", "nodeSelector", "matchLabels"})
_NOT_OWNED = (
    ("f:apiVersion",),
    ("f:kind",),
    *(
        ("f:metadata", f"f:{field}")
        for field in (
            "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
            "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds",
        )
    ),
)  # fmt: skip


def fields_of(obj: Object, *, custom: bool) -> dict[Path, Any]:
    """Every ownable field of an object with its value (None for the item markers)."""
    found: dict[Path, Any] = {}
    for key, value in obj.items():
        _walk(value, (f"f:{key}",), "", key, found, by_key=not custom or key == "metadata")
    for path in list(found):
        if path[:1] in _NOT_OWNED or path[:2] in _NOT_OWNED or path == ("f:metadata",):
            del found[path]
    return found


def _walk(value: Any, path: Path, parent: str, field: str, found: dict[Path, Any], *, by_key: bool) -> None:
    if isinstance(value, dict) and value and field not in _ATOMIC:
        for key, item in value.items():
            _walk(item, (*path, f"f:{key}"), field, key, found, by_key=by_key)
        return
    key_name = merge_key(field, parent) if by_key and isinstance(value, list) else None
    if isinstance(value, list) and field in PRIMITIVE_SETS:
        for item in value:
            found[(*path, f"v:{orjson.dumps(item).decode()}")] = None
    elif key_name and all(isinstance(item, dict) and key_name in item for item in value):
        for item in value:
            here = (*path, f"k:{orjson.dumps({key_name: item[key_name]}).decode()}")
            found[(*here, ".")] = None
            for key, inner in item.items():
                _walk(inner, (*here, f"f:{key}"), field, key, found, by_key=by_key)
    else:
        found[path] = value


def to_json(paths: Iterable[Path]) -> Object:
    """FieldsV1."""
    tree: Object = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def from_json(tree: Any) -> set[Path]:
    """The paths of FieldsV1; whatever is not FieldsV1 owns nothing."""
    found: set[Path] = set()

    def walk(node: Any, path: Path) -> None:
        if not isinstance(node, dict) or not node:
            if path:
                found.add(path)
            return
        for step, inner in node.items():
            walk(inner, (*path, step))

    walk(tree, ())
    return found


def remove(obj: Any, path: Path) -> None:
    """Take one owned field out of an object; a path that is not there is fine."""
    holder, last = obj, path[-1]
    for step in path[:-2] if last == "." else path[:-1]:
        holder = _step(holder, step)
    if last == ".":
        last = path[-2]
    if isinstance(holder, dict):
        holder.pop(last[2:], None)
    elif isinstance(holder, list):
        found = _step(holder, last)
        if found is not None:
            holder.remove(found)


def _step(holder: Any, step: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(step[2:])
    if isinstance(holder, list):
        wanted = orjson.loads(step[2:])
        for item in holder:
            if item == wanted if step.startswith("v:") else _has(item, wanted):
                return item
    return None


def _has(item: Any, key: Object) -> bool:
    return isinstance(item, dict) and all(item.get(name) == value for name, value in key.items())


def display(path: Path) -> str:
    """`.spec.containers[name="main"].image`, as conflicts name a field."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += f".{step[2:]}"
        elif step.startswith("k:"):
            keys = orjson.loads(step[2:])
            text += "[" + ",".join(f"{k}={orjson.dumps(v).decode()}" for k, v in keys.items()) + "]"
        elif step.startswith("v:"):
            text += f"[={step[2:]}]"
    return text
