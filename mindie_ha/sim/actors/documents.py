"""Reading decoded Kubernetes objects safely.

Objects come from people with kubectl, so any field may be missing or of a wrong type. These readers never
raise: a field of a wrong type reads as absent. Whatever must be refused loudly is refused by a validation
that looks at the raw value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

from mindie_ha.sim.client import Object

Key = tuple[str, str]  # namespace, name
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def dig(value: object, *path: str) -> object:
    """The value at `path` through nested mappings, or None."""
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def text(value: object, *path: str) -> str:
    """A string at `path`, else ""."""
    found = dig(value, *path)
    return found if isinstance(found, str) else ""


def number(value: object, *path: str, default: int = 0) -> int:
    """An integer at `path` (also one written as a string), else `default`."""
    found = dig(value, *path)
    if isinstance(found, bool):
        return default
    if isinstance(found, int):
        return found
    if isinstance(found, str) and is_integer(found):
        return int(found)
    return default


def is_integer(raw: str) -> bool:
    """The text is a whole number of sane length."""
    return _INTEGER.fullmatch(raw) is not None


def mapping(value: object, *path: str) -> Object:
    """A mapping at `path`, else an empty one."""
    found = dig(value, *path)
    return found if isinstance(found, dict) else {}


def items(value: object, *path: str) -> list[Object]:
    """The mappings in the list at `path`; anything else in it is left out."""
    found = dig(value, *path)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def texts(value: object, *path: str) -> dict[str, str]:
    """The string entries of the mapping at `path`."""
    return {key: entry for key, entry in mapping(value, *path).items() if isinstance(entry, str)}


def labels_of(obj: Object) -> dict[str, str]:
    """`metadata.labels`."""
    return texts(obj, "metadata", "labels")


def annotations_of(obj: Object) -> dict[str, str]:
    """`metadata.annotations`."""
    return texts(obj, "metadata", "annotations")


def name_of(obj: Object) -> str:
    """`metadata.name`."""
    return text(obj, "metadata", "name")


def namespace_of(obj: Object) -> str:
    """`metadata.namespace`, "" for cluster-scoped objects."""
    return text(obj, "metadata", "namespace")


def key_of(obj: Object) -> Key:
    """Namespace and name."""
    return namespace_of(obj), name_of(obj)


def uid_of(obj: Object) -> str:
    """`metadata.uid`."""
    return text(obj, "metadata", "uid")


def is_terminating(obj: Object) -> bool:
    """The object has a deletionTimestamp."""
    return dig(obj, "metadata", "deletionTimestamp") is not None


def phase_of(obj: Object) -> str:
    """`status.phase`."""
    return text(obj, "status", "phase")


def is_finished(pod: Object) -> bool:
    """The pod's phase is Succeeded or Failed."""
    return phase_of(pod) in {"Succeeded", "Failed"}


def controller_uid(obj: Object) -> str:
    """The UID of the controlling owner, else ""."""
    for owner in items(obj, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            return text(owner, "uid")
    return ""


def condition(obj: Object, kind: str) -> Object:
    """The status condition of one type, else an empty mapping."""
    return next((c for c in items(obj, "status", "conditions") if c.get("type") == kind), {})


def with_condition(conditions: list[Object], new: Object, now: str) -> list[Object]:
    """`conditions` with `new` in place of the one of its type; the transition time moves with the status."""
    old = next((c for c in conditions if c.get("type") == new["type"]), None)
    moved = old is None or old.get("status") != new["status"]
    kept = now if moved or old is None else old.get("lastTransitionTime", now)
    return [*(c for c in conditions if c.get("type") != new["type"]), {**new, "lastTransitionTime": kept}]


def has_condition(obj: Object, new: Object) -> bool:
    """The object already has this condition, times aside."""
    old = condition(obj, str(new["type"]))
    return bool(old) and all(old.get(key) == value for key, value in new.items())


def load_json(raw: str) -> object:
    """Decoded JSON, or None where it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def stamp(wall_s: float) -> str:
    """Unix time as Kubernetes writes it."""
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unstamp(raw: str) -> float | None:
    """Unix time of a Kubernetes time stamp, None where it is none."""
    try:
        return datetime.fromisoformat(raw).timestamp()
    except ValueError:
        return None


def selects(selector: Object, found: dict[str, str]) -> bool:
    """Whether a LabelSelector (matchLabels and matchExpressions) matches labels; an empty one matches all."""
    if any(found.get(key) != value for key, value in mapping(selector, "matchLabels").items()):
        return False
    return all(_expression_holds(rule, found) for rule in items(selector, "matchExpressions"))


def _expression_holds(rule: Object, found: dict[str, str]) -> bool:
    key = text(rule, "key")
    values = rule.get("values")
    allowed = values if isinstance(values, list) else []
    tests: dict[str, Callable[[], bool]] = {
        "In": lambda: found.get(key) in allowed,
        "NotIn": lambda: found.get(key) not in allowed,
        "Exists": lambda: key in found,
        "DoesNotExist": lambda: key not in found,
    }
    test = tests.get(text(rule, "operator"))
    return test is not None and test()
