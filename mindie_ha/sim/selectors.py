"""Label and field selectors: text in, a test on objects out.

Grammar as the API server reads it: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, joined by
commas. A selector that cannot be read is a 400, never an empty selection; a field that a kind does not
offer is a 400 too, since a client that filters on it would silently see everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import bad_request

Object = dict[str, Any]  # one Kubernetes object as decoded JSON
Test = Callable[[Object], bool]
LabelTest = Callable[[Mapping[str, str]], bool]

_TERM = re.compile(
    r"""\s*(?:
      (?P<absent>!\s*)?(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]*)
      (?:\s*(?P<op>==|=|!=)\s*(?P<value>[A-Za-z0-9._-]*)
       |\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?
    )\s*(?:,|$)""",
    re.VERBOSE,
)

_COMMON_FIELDS = ("metadata.name", "metadata.namespace")
_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
        "reason", "reportingComponent", "source", "type",
    ),
    "nodes": ("spec.unschedulable",),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicasets": ("status.replicas",),
}  # fmt: skip


def parse_labels(text: str) -> LabelTest | None:
    """A test on a label map, or None where everything is selected; raises StatusError 400."""
    terms: list[LabelTest] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TERM.match(text, at)
        if match is None or match.end() == at:
            raise bad_request(f"unable to parse requirement: found {text[at:]!r}, expected: a label selector")
        terms.append(_label_term(match))
        at = match.end()
    if not terms:
        return None
    return lambda labels: all(term(labels) for term in terms)


def _label_term(match: re.Match[str]) -> LabelTest:
    key, value = match["key"], match["value"]
    if match["set"]:
        values = frozenset(part.strip() for part in match["values"].split(","))
        if match["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match["op"] == "!=":
        return lambda labels: labels.get(key) != value
    if match["op"]:
        return lambda labels: labels.get(key) == value
    if match["absent"]:
        return lambda labels: key not in labels
    return lambda labels: key in labels


def match_label_selector(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """The structured form (`matchLabels`, `matchExpressions`); an empty one selects everything."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(term, labels) for term in selector.get("matchExpressions") or [])


def _expression(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = term.get("key", ""), term.get("values") or []
    match term.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def parse_fields(text: str, resource: Resource) -> Test | None:
    """A test on objects, or None where everything is selected; raises StatusError 400."""
    tests: list[Test] = []
    for term in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term)
        if match is None:
            raise bad_request(f"invalid selector: {text!r}; can't understand {term!r}")
        path, operator, value = match.groups()
        if path not in _COMMON_FIELDS + (() if resource.custom else _FIELDS.get(resource.plural, ())):
            raise bad_request(f"field label not supported: {path}")
        tests.append(_field_term(path, value, equal=operator != "!="))
    if not tests:
        return None
    return lambda obj: all(test(obj) for test in tests)


def _field_term(path: str, value: str, *, equal: bool) -> Test:
    steps = ("source", "component") if path == "source" else tuple(path.split("."))
    return lambda obj: (_read(obj, steps) == value) is equal


def _read(obj: Object, steps: tuple[str, ...]) -> str:
    found: Any = obj
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        return "false" if steps[-1] in ("unschedulable", "hostNetwork") else ""
    return str(found).lower() if isinstance(found, bool) else str(found)


def selection(resource: Resource, query: Mapping[str, str]) -> Test | None:
    """The test that `labelSelector` and `fieldSelector` of a request make together."""
    labels = parse_labels(query.get("labelSelector", ""))
    fields = parse_fields(query.get("fieldSelector", ""), resource)
    if labels is None:
        return fields

    def test(obj: Object) -> bool:
        return labels(obj["metadata"].get("labels") or {}) and (fields is None or fields(obj))

    return test
