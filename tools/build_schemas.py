"""Regenerate the package data of the embedded API server: schemas of built-in kinds, and its CRDs.

`mindie_ha/sim/data/builtin.json.gz`: the OpenAPI definitions of the built-in kinds it serves, with
descriptions, cut out of the definitions that kubernetes-validate (Apache-2.0) ships for one release of
Kubernetes (Apache-2.0). `mindie_ha/sim/data/crds/*.yaml`: complete, valid CustomResourceDefinitions; written
by hand in `tools/crds/` with `$podSpec` where the whole pod spec belongs, which is expanded here.

Run `python tools/build_schemas.py` after a change; `--check` only says whether the files are in step.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

RELEASE = "1.32.0"  # the release that the embedded server says it is
ROOT = Path(__file__).resolve().parent.parent
SOURCES = Path(__file__).resolve().parent / "crds"
DATA = ROOT / "mindie_ha" / "sim" / "data"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

KINDS = (
    "core.v1: Namespace Node Pod ConfigMap Secret Service Endpoints Event ServiceAccount Binding "
    "PodTemplateSpec",
    "apps.v1: Deployment StatefulSet ReplicaSet",
    "coordination.v1: Lease",
    "scheduling.v1: PriorityClass",
    "policy.v1: PodDisruptionBudget Eviction",
    "networking.v1: NetworkPolicy",
    "rbac.v1: Role RoleBinding ClusterRole ClusterRoleBinding",
)

QUANTITY_TEXT = (
    "Quantity is a fixed-point number with a unit suffix, for example 500m, 2, 1.5Gi or 1e3. "
    "Suffixes: n u m k M G T P E, and Ki Mi Gi Ti Pi Ei for powers of 1024."
)
INT_OR_STRING_TEXT = "IntOrString holds an integer or a string, for example a port number or its name."
LEAVES: dict[str, dict[str, Any]] = {
    QUANTITY: {"type": "string", "description": QUANTITY_TEXT},
    INT_OR_STRING: {"type": "string", "format": "int-or-string", "description": INT_OR_STRING_TEXT},
}
EITHER = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 where a file is stale")
    check = parser.parse_args().check
    definitions = builtin_definitions()
    stale = []
    packed = json.dumps(definitions, separators=(",", ":"), sort_keys=True).encode()
    target = DATA / "builtin.json.gz"
    if not target.exists() or gzip.decompress(target.read_bytes()) != packed:
        stale.append(target)
        if not check:
            target.write_bytes(gzip.compress(packed, mtime=0))
    for source in sorted(SOURCES.glob("*.yaml")):
        text = crd_text(source, definitions)
        target = DATA / "crds" / source.name
        if not target.exists() or target.read_text() != text:
            stale.append(target)
            if not check:
                target.write_text(text)
    for path in stale:
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


def builtin_definitions() -> dict[str, Any]:
    """The definitions that the served kinds reach, as a real server publishes them in `/openapi/v2`."""
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"v{RELEASE}-local"
    raw = json.loads((folder / "_definitions.json").read_text())
    known = raw.get("$defs") or raw["definitions"]
    waiting = [f"{META}.{name}" for name in ("DeleteOptions", "Status", "ObjectMeta", "ListMeta")]
    waiting.append(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    )
    for line in KINDS:
        group, _, names = line.partition(": ")
        waiting += [f"io.k8s.api.{group}.{name}" for name in names.split()]
    chosen: dict[str, Any] = {}
    while waiting:
        name = waiting.pop()
        if name in chosen:
            continue
        chosen[name] = LEAVES.get(name) or _published(known[name])
        waiting += re.findall(r'"\$ref": "#/definitions/([^"]+)"', json.dumps(chosen[name]))
    return chosen


def _published(schema: dict[str, Any]) -> dict[str, Any]:
    """Undo what the validator's copy adds (null types, enums of kind); point references at `definitions`."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        match key:
            case "enum":
                continue
            case "type":
                result[key] = value if isinstance(value, str) else next(v for v in value if v != "null")
            case "$ref":
                result[key] = "#/definitions/" + value.rsplit("/", 1)[-1]
            case "properties":
                result[key] = {name: _published(field) for name, field in value.items()}
            case "items" | "additionalProperties":
                result[key] = _published(value) if isinstance(value, dict) else value
            case _:
                result[key] = value
    return result


def crd_text(source: Path, definitions: dict[str, Any]) -> str:
    """The finished CRD: the hand-written head with every `$podSpec` expanded."""
    document = yaml.safe_load(source.read_text())
    pod_spec = _structural({"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}, definitions)
    pod_spec["properties"] = {name: _Line(field) for name, field in pod_spec["properties"].items()}
    _expand(document, pod_spec)
    head = f"# Generated by tools/build_schemas.py from tools/crds/{source.name}; edit that file.\n"
    return head + yaml.dump(document, sort_keys=False, width=sys.maxsize, Dumper=_Dumper)


class _Line(dict[str, Any]):
    """A mapping written on one line: the pod spec has some 40 fields and 3000 lines otherwise."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def _one_line(dumper: yaml.SafeDumper, data: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True)


_Dumper.add_representer(_Line, _one_line)


def _expand(node: Any, pod_spec: dict[str, Any]) -> None:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        if isinstance(value, dict) and value.pop("$podSpec", False):
            node[key] = {**value, **pod_spec}
        else:
            _expand(value, pod_spec)


def _structural(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A self-contained structural schema: references expanded, descriptions and list markers left out."""
    reference = schema.get("$ref", "").rsplit("/", 1)[-1]
    if reference in (QUANTITY, INT_OR_STRING):
        return dict(EITHER)
    if reference == f"{META}.ObjectMeta":
        return {"type": "object"}
    if reference:
        return _structural(definitions[reference], definitions)
    result: dict[str, Any] = {key: schema[key] for key in ("type", "format") if key in schema}
    if "properties" in schema:
        fields = schema["properties"].items()
        result["properties"] = {name: _structural(field, definitions) for name, field in fields}
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = _structural(schema["additionalProperties"], definitions)
    if "items" in schema:
        result["items"] = _structural(schema["items"], definitions)
    if "required" in schema:
        result["required"] = list(schema["required"])
    return result


if __name__ == "__main__":
    sys.exit(main())
