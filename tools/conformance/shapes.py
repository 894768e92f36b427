"""What two API servers have to agree on: answers without what differs by nature.

UIDs and versions become numbers in the order in which they appear, so that "the same" and "another" are still
seen; times, tokens, random names and the texts of messages become words; what is empty is as good as absent.
Pods and nodes keep the parts that this project reads. Versions of Kubernetes differ too, and the embedded
server is like a newer one than Debian's: it counts generations of pods, labels namespaces with their name,
has a reason of its own for wrong types, numbers the items of a path, and tells each cause once.
"""

from __future__ import annotations

import re
from typing import Any

DROPPED = {"managedFields", "selfLink", "message", "generateName"}
TIMES = {"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time"}
KEPT = {
    "Pod": {"spec": {"nodeName", "priority", "schedulerName"}, "status": {"phase", "conditions", "podIP"}},
    "Node": {"spec": {"taints", "unschedulable"}, "status": {"conditions", "capacity", "allocatable"}},
}
"""Of these kinds only these fields count."""


class Shaper:
    """Shapes the answers of one case; remembers which UID and version was which."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._seen: dict[str, dict[str, str]] = {"uid": {}, "resourceVersion": {}}

    def shape(self, answers: list[Any]) -> list[Any]:
        """All answers of the case."""
        return [self._any(answer) for answer in answers]

    def _any(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._any(one) for one in value]
        if isinstance(value, str):
            return value.replace(self._namespace, "NS")
        return self._object(value, str(value.get("kind", ""))) if isinstance(value, dict) else value

    def _object(self, value: dict[str, Any], kind: str) -> dict[str, Any]:
        if isinstance(value.get("items"), list):  # items of a list do not say their kind
            item = kind.removesuffix("List")
            value = {**value, "items": [{"kind": item, **one} for one in value["items"]]}
        is_list = kind.endswith("List")
        shaped = {
            key: self._field(key, one, is_list) for key, one in sorted(value.items()) if key not in DROPPED
        }
        for section, fields in KEPT.get(kind, {}).items():
            if isinstance(shaped.get(section), dict):
                shaped[section] = {key: one for key, one in shaped[section].items() if key in fields}
        if kind == "Pod" and isinstance(shaped.get("metadata"), dict):
            shaped["metadata"].pop("generation", None)
        return {key: one for key, one in shaped.items() if one not in (None, "", [], {})}

    def _field(self, key: str, value: Any, is_list: bool) -> Any:
        if isinstance(value, str):
            return self._text(key, value)
        if key == "metadata" and is_list and isinstance(value, dict):
            kept = {"continue": "token", "remainingItemCount": value.get("remainingItemCount")}
            return {name: kept[name] for name in kept if value.get(name)}
        if key == "labels" and isinstance(value, dict):
            return {name: one for name, one in value.items() if name != "kubernetes.io/metadata.name"}
        if key == "causes" and isinstance(value, list):
            told = [self._cause(one) for one in value]
            return [one for at, one in enumerate(told) if one not in told[:at]]
        return self._any(value)

    def _text(self, key: str, value: str) -> str:
        if key in self._seen:
            known = self._seen[key]
            return known.setdefault(value, f"{key} {len(known) + 1}")
        if key in TIMES:
            return "a time"
        value = value.replace(self._namespace, "NS")
        return re.sub(r"^(gen-)[a-z0-9]{5}$", r"\1*", value) if key == "name" else value

    def _cause(self, cause: dict[str, Any]) -> Any:
        reason = str(cause.get("reason", "")).replace("TypeInvalid", "Invalid")
        field = re.sub(r"(ownerReferences)\[\d+\]", r"\1", str(cause.get("field", "")))
        return self._any({**cause, "reason": reason, "field": field})


__all__ = ["Shaper"]
