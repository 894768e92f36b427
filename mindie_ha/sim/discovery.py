"""What the embedded API server says about itself: versions, groups and resources.

Two forms of the same facts. The classic one is a walk: `/api`, `/apis`, then one document a group version;
every client knows it. The aggregated one answers `/api` and `/apis` with everything at once and is given only
to a client that asks for it by media type (kubectl from 1.26 on); all others, and clients that ask for a
version of it that does not exist, get the classic form. Everything is derived from the table of kinds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.resources import Resource

Document = dict[str, Any]

SERVER_VERSION: Document = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.0+mindie-ha-sim",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}

_AGGREGATED_VERSIONS = ("v2", "v2beta1")
_AGGREGATED_PATHS = ("/api", "/apis")

# Subresources that answer with another kind than their parent's: (group, version, kind, verbs).
_SUBRESOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "log": ("", "v1", "Pod", ("get",)),
}
_STATUS_VERBS = ("get", "patch", "update")


def answer(request: ApiRequest, resources: Iterable[Resource]) -> ApiResponse | None:
    """The answer to a discovery request in the form its Accept header asks for; None: not discovery."""
    path = request.path.rstrip("/")
    if request.method not in ("GET", "HEAD"):
        return None
    version = aggregated_version(request.headers.get("accept", ""))
    if version and path in _AGGREGATED_PATHS:
        content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return _json(aggregated_document(path, resources, version=version), content_type)
    document = root_documents(path, resources)
    return None if document is None else _json(document, "application/json")


def root_documents(path: str, resources: Iterable[Resource]) -> Document | None:
    """The classic document at `path` (`/version`, `/api`, `/apis`, a group, a group version), or None."""
    known = tuple(resources)
    document: Document | None = None
    match path.strip("/").split("/"):
        case ["version"]:
            document = dict(SERVER_VERSION)
        case ["api"]:
            document = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(name, known) for name in _group_names(known) if name]
            document = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["api", version]:
            document = _resource_list(_of(known, "", version))
        case ["apis", group] if group in _group_names(known):
            document = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, known)}
        case ["apis", group, version]:
            document = _resource_list(_of(known, group, version))
    return document


def aggregated_version(accept: str) -> str | None:
    """The first aggregated discovery version in an Accept header that is served, or None."""
    for item in accept.split(","):
        params = dict(part.strip().partition("=")[::2] for part in item.split(";")[1:])
        wanted = params.get("g") == "apidiscovery.k8s.io" and params.get("as") == "APIGroupDiscoveryList"
        if wanted and params.get("v") in _AGGREGATED_VERSIONS:
            return params["v"]
    return None


def aggregated_document(path: str, resources: Iterable[Resource], *, version: str) -> Document:
    """`/api` (the core group) or `/apis` (all others) with every resource in one document."""
    known = tuple(resources)
    names = [name for name in _group_names(known) if (name == "") == (path == "/api")]
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None},
            "versions": [
                {
                    "version": group_version,
                    "resources": [_aggregated_resource(r) for r in _of(known, name, group_version)],
                    "freshness": "Current",
                }
                for group_version in _versions(name, known)
            ],
        }
        for name in names
    ]
    api_version = f"apidiscovery.k8s.io/{version}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _aggregated_resource(resource: Resource) -> Document:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    subresources = []
    for name in resource.subresources:
        group, version, sub_kind, verbs = _subresource(resource, name)
        response_kind = {"group": group, "version": version, "kind": sub_kind}
        subresources.append({"subresource": name, "responseKind": response_kind, "verbs": list(verbs)})
    document: Document = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        document["shortNames"] = list(resource.short_names)
    if resource.categories:
        document["categories"] = list(resource.categories)
    if subresources:
        document["subresources"] = subresources
    return document


def _resource_list(resources: Sequence[Resource]) -> Document | None:
    if not resources:
        return None
    entries: list[Document] = []
    for resource in resources:
        entry: Document = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        entries.append(entry)
        entries += [_subresource_entry(resource, name) for name in resource.subresources]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": resources[0].api_version,
        "resources": entries,
    }


def _subresource_entry(resource: Resource, name: str) -> Document:
    group, version, kind, verbs = _subresource(resource, name)
    entry: Document = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": list(verbs),
    }
    if (group, version) != (resource.group, resource.version):
        entry |= {"group": group, "version": version}
    return entry


def _subresource(resource: Resource, name: str) -> tuple[str, str, str, tuple[str, ...]]:
    return _SUBRESOURCES.get(name, (resource.group, resource.version, resource.kind, _STATUS_VERBS))


def _group(name: str, resources: Sequence[Resource]) -> Document:
    versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in _versions(name, resources)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _group_names(resources: Sequence[Resource]) -> list[str]:
    return list(dict.fromkeys(resource.group for resource in resources))


def _versions(group: str, resources: Sequence[Resource]) -> list[str]:
    return list(dict.fromkeys(r.version for r in resources if r.group == group))


def _of(resources: Sequence[Resource], group: str, version: str) -> list[Resource]:
    return [r for r in resources if (r.group, r.version) == (group, version)]


def _json(document: Document, content_type: str) -> ApiResponse:
    body = json.dumps(document, separators=(",", ":")).encode()
    return ApiResponse(200, body, {"content-type": content_type})
