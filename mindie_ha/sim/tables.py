"""Server-side printing: lists and objects as `meta.k8s.io/v1` Tables, the way `kubectl get` asks for them.

Each kind has its columns as data (`columns.py`): a definition (name, type, priority: 0 shown, 1 only with
`-o wide`) and a function from object to cell. Kinds of a CRD print its `additionalPrinterColumns`; a kind
without either prints name and age, as a real server does for an unknown one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindie_ha.sim.columns import BUILTIN, DEFAULT, Column, custom_columns
from mindie_ha.sim.definitions import crd_version
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
    """A Table of `objects`, one row each in the same order. `now_s`: Unix time, for ages.

    `include_object` is the query parameter `includeObject`: None, Metadata (default) or Object;
    `list_metadata` the metadata of the list (resourceVersion, continue) or of the one object.
    """
    columns = _columns(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata or {},
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [
            {"cells": [column.cell(obj, now_s) for column in columns], **_row_object(obj, include_object)}
            for obj in objects
        ],
    }


def _columns(resource: Resource) -> tuple[Column, ...]:
    found = BUILTIN.get((resource.group, resource.kind))
    if found is not None:
        return found
    printer = resource.printer_columns
    if resource.custom and not printer:
        printer = crd_version(resource).get("additionalPrinterColumns", ())
    return custom_columns(printer) if printer else DEFAULT


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == "Name" else "",
        "description": column.description,
        "priority": column.priority,
    }


def _row_object(obj: Object, include_object: str) -> Object:
    if include_object == "None":
        return {}
    if include_object == "Object":
        return {"object": obj}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    return {"object": partial}
