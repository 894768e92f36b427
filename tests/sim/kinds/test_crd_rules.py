"""Definitions of custom kinds: our own are valid, others are refused before they can do harm."""

from __future__ import annotations

import copy
from typing import Any

import kubernetes_validate
import pytest

from mindie_ha.sim import definitions, schemas
from mindie_ha.sim.kinds import defined_by
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.tables import render

CRD = by_kind("CustomResourceDefinition")
WIDGET: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 9},
                                    "colour": {"type": "string", "enum": ["red", "blue"]},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


@pytest.mark.parametrize("crd", definitions.crds().values(), ids=definitions.crds().keys())
def test_our_definitions_are_valid(crd: dict[str, Any]) -> None:
    kubernetes_validate.validate(crd, "1.32", strict=True)
    assert schemas.validate(CRD, crd) == ()
    for version in crd["spec"]["versions"]:
        assert_structural(version["schema"]["openAPIV3Schema"])


def assert_structural(schema: dict[str, Any]) -> None:
    """Every node has a type or says why not; objects are either fixed or maps."""
    assert "type" in schema or schema.get("x-kubernetes-int-or-string")
    assert not ("properties" in schema and "additionalProperties" in schema)
    assert ("items" in schema) == (schema.get("type") == "array")
    children = [*schema.get("properties", {}).values()]
    children += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    for child in children:
        assert_structural(child)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("metadata name", "other", "metadata.name"),
        ("spec group", "", "spec.group"),
        ("spec scope", "World", "spec.scope"),
        ("spec versions 0 storage", False, "spec.versions"),
        ("spec versions 0 schema", {}, "spec.versions[0].schema.openAPIV3Schema"),
        (
            "spec versions 0 additionalPrinterColumns 0 jsonPath",
            "",
            "spec.versions[0].additionalPrinterColumns[0].jsonPath",
        ),
        (
            "spec versions 0 schema openAPIV3Schema properties spec",
            {"$ref": "#/definitions/x"},
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].$ref",
        ),
        (
            "spec versions 0 schema openAPIV3Schema properties spec",
            {"type": "array", "items": [{"type": "string"}]},
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].items",
        ),
    ],
)
def test_definition_that_cannot_be_served_is_refused(path: str, value: Any, field: str) -> None:
    crd = copy.deepcopy(WIDGET)
    *steps, last = [int(step) if step.isdecimal() else step for step in path.split()]
    node: Any = crd
    for step in steps:
        node = node[step]
    node[last] = value
    assert field in [cause.field for cause in schemas.validate(CRD, crd)]


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"size": 3, "colour": "red"}, []),
        ({}, ["spec.size: Required value"]),
        (
            {"size": 0},
            ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
        ),
        (
            {"size": 1, "colour": "x"},
            ['spec.colour: Unsupported value: "x": supported values: "red", "blue"'],
        ),
    ],
)
def test_kind_that_a_client_defined_is_validated_and_printed(
    spec: dict[str, Any], problems: list[str]
) -> None:
    assert schemas.validate(CRD, WIDGET) == ()
    [widgets] = defined_by(WIDGET)
    widget = {"metadata": {"name": "w"}, "spec": spec}
    causes = schemas.validate(widgets, widget)
    assert [f"{cause.field}: {cause.message}" for cause in causes] == problems
    table = render(widgets, [widget], 0.0)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", spec.get("size")]
