# ruff: noqa: ARG001
"""Server-side printing: lists and objects as `meta.k8s.io/v1` Tables, the way `kubectl get` asks for them.

Each kind has its columns as data: a definition (name, type, priority: 0 shown, 1 only with `-o wide`) and a
function from object to cell. Kinds of a CRD print its `additionalPrinterColumns`; a kind without an entry
prints name and age, as a real server does for an unknown one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindie_ha.sim.resources import Resource

Object = dict[str, Any]


def render(
    resource: Resource,
    objects: Sequence[Object],
    now_s: float,
    *,
    include_object: str = "Metadata",
    list_metadata: Object | None = None,
) -> Object:
    """A Table of `objects`. `now_s`: wall time in Unix seconds, for ages.

    `include_object` is the query parameter `includeObject`: None, Metadata (default) or Object;
    `list_metadata` the metadata of the list (resourceVersion, continue) or of the one object.
    """
    definitions = [
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
    ]
    rows = [
        {"cells": [o["metadata"]["name"], "<unknown>"], "object": _row_object(o, include_object)}
        for o in objects
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata or {},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _row_object(obj: Object, include_object: str) -> Object | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
