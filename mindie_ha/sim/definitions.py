"""The schemas of the served kinds, read once from package data.

Built-in kinds: OpenAPI definitions that refer to each other (`#/definitions/io.k8s.api.core.v1.Pod`). Custom
kinds: the structural schema of their CRD, self-contained. `tools/build_schemas.py` makes both files. Callers
must not change what they get: it is shared.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from mindie_ha.sim.resources import Resource

Schema = dict[str, Any]
Object = dict[str, Any]

REFERENCE = "#/definitions/"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
POD_SPEC = "io.k8s.api.core.v1.PodSpec"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
GVK = "x-kubernetes-group-version-kind"


@cache
def builtin() -> dict[str, Schema]:
    """Definition name to schema, for every definition that a served built-in kind reaches."""
    packed = files("mindie_ha.sim").joinpath("data/builtin.json.gz").read_bytes()
    definitions: dict[str, Schema] = json.loads(gzip.decompress(packed))
    return definitions


@cache
def crds() -> dict[str, Object]:
    """CRD name (`ascendjobs.mindxdl.gitee.com`) to the CustomResourceDefinition."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster, where it is
    folder = files("mindie_ha.sim").joinpath("data/crds")
    found = {}
    for entry in folder.iterdir():
        if entry.name.endswith(".yaml"):
            document = yaml.load(entry.read_text("utf-8"), Loader=loader)  # noqa: S506 - a safe loader
            found[document["metadata"]["name"]] = document
    return dict(sorted(found.items()))


def crd_version(resource: Resource) -> Object:
    """The entry of `spec.versions` that serves `resource`; empty where no CRD defines it."""
    crd = crds().get(f"{resource.plural}.{resource.group}")
    for version in crd["spec"]["versions"] if crd else ():
        if version["name"] == resource.version:
            found: Object = version
            return found
    return {}


@cache
def definition_name(resource: Resource) -> str:
    """The name of the kind's definition: its Go package path, or the reversed group for a custom kind."""
    if resource.custom:
        reversed_group = ".".join(reversed(resource.group.split(".")))
        return f"{reversed_group}.{resource.version}.{resource.kind}"
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for name, schema in builtin().items():
        if wanted in schema.get(GVK, ()):
            return name
    raise KeyError(f"package data holds no schema of {resource.api_version} {resource.kind}")


def schema_of(resource: Resource) -> Schema:
    """The schema of a whole object of the kind; a kind that a client defined brings its own."""
    if resource.schema:
        return resource.schema
    if resource.custom:
        schema: Schema = crd_version(resource).get("schema", {}).get("openAPIV3Schema", {"type": "object"})
        return schema
    return builtin()[definition_name(resource)]


def resolve(schema: Schema) -> Schema:
    """The schema behind a reference, or the schema itself."""
    reference = schema.get("$ref")
    return builtin()[reference.removeprefix(REFERENCE)] if reference else schema
