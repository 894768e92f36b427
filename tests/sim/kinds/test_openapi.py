"""OpenAPI documents and the package data behind them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mindie_ha.sim import definitions, openapi
from mindie_ha.sim.resources import RESOURCES

ROOT = Path(__file__).resolve().parents[3]


def read(path: str, accept: str = "application/json") -> bytes:
    response = openapi.document(path, {}, {"accept": accept}, RESOURCES)
    assert response is not None
    return response.body


def test_v2_describes_every_kind_and_resolves_every_reference() -> None:
    document = json.loads(read("/openapi/v2"))
    names = document["definitions"].keys()
    references = {part.split('"', 1)[0] for part in json.dumps(document).split('"$ref": "#/definitions/')[1:]}
    assert {definitions.definition_name(resource) for resource in RESOURCES} <= names
    assert references <= names


def test_v2_protobuf_is_a_sequence_of_known_fields() -> None:
    body = read("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert [number for number, _ in fields(body)] == [1, 2, 8, 9]
    schemas = dict(fields(dict(fields(body))[9]))  # the last definition wins, any will do
    named = dict(fields(schemas[1]))
    assert named[1].decode() in json.loads(read("/openapi/v2"))["definitions"]


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """Length-delimited fields of a protobuf message."""
    found, at = [], 0
    while at < len(message):
        tag, at = varint(message, at)
        length, at = varint(message, at)
        assert tag & 7 == 2
        found.append((tag >> 3, message[at : at + length]))
        at += length
    return found


def varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def test_v3_index_leads_to_documents_that_stand_alone() -> None:
    index = json.loads(read("/openapi/v3"))
    assert "apis/mindxdl.gitee.com/v1" in index["paths"]
    for entry in index["paths"].values():
        text = read(entry["serverRelativeURL"].partition("?")[0]).decode()
        known = json.loads(text)["components"]["schemas"].keys()
        assert {part.split('"', 1)[0] for part in text.split('"#/components/schemas/')[1:]} <= known


def test_server_side_features_are_announced_on_patch() -> None:
    document = json.loads(read("/openapi/v3/api/v1"))
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert {parameter["name"] for parameter in patch["parameters"]} == {"dryRun", "fieldValidation"}


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v4", "/openapi/v3/apis/none/v1", "/openapi/v2/x"])
def test_other_paths_have_no_document(path: str) -> None:
    assert openapi.document(path, {}, {}, RESOURCES) is None


def test_kind_that_a_client_defined_is_described_by_its_own_schema() -> None:
    first = replace(
        RESOURCES[-1], group="a.example", kind="A", schema={"type": "object", "description": "one"}
    )
    second = replace(first, schema={"type": "object", "description": "two"})
    texts = [
        openapi.document("/openapi/v3/apis/a.example/v1alpha1", {}, {}, [each]) for each in (first, second)
    ]
    assert [b'"one"' in texts[0].body, b'"two"' in texts[1].body] == [True, True]  # type: ignore[union-attr]


def test_crds_agree_with_the_table_of_kinds() -> None:
    for resource in RESOURCES:
        if resource.custom:
            crd = definitions.crds()[f"{resource.plural}.{resource.group}"]
            names = crd["spec"]["names"]
            assert (names["kind"], names["singular"]) == (resource.kind, resource.singular)
            assert (crd["spec"]["scope"] == "Namespaced") == resource.namespaced
            assert set(resource.short_names) <= set(names["shortNames"])
            assert definitions.crd_version(resource)["name"] == resource.version


def test_package_data_is_in_step_with_its_sources() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "build_schemas.py"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
