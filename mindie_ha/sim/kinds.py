"""Which kinds are served at the moment, and which path means which of them.

The table of `resources.py` is there from the start; a CustomResourceDefinition that somebody applies adds
its kind, its deletion takes it away. Paths are read here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mindie_ha.sim.resources import RESOURCES, Resource

Object = dict[str, Any]  # one Kubernetes object as decoded JSON


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names: a kind and, where given, namespace, object, subresource."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Kinds:
    """The served kinds; lookups by path and by name."""

    def __init__(self, resources: Iterable[Resource] = RESOURCES) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._fixed: set[tuple[str, str, str]] = set()
        for resource in resources:
            self._by_path[_path_key(resource)] = resource
            self._fixed.add(_path_key(resource))
        self._all = tuple(self._by_path.values())

    def all(self) -> tuple[Resource, ...]:
        """Every served kind, in the order of registration."""
        return self._all

    def find(self, group: str, plural: str, version: str = "") -> Resource | None:
        """A kind by group and plural (any version where none is given)."""
        if version:
            return self._by_path.get((group, version, plural))
        matches = (each for each in self._all if (each.group, each.plural) == (group, plural))
        return next(matches, None)

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """A kind as objects and owner references name it."""
        matches = (each for each in self._all if (each.api_version, each.kind) == (api_version, kind))
        return next(matches, None)

    def add(self, resource: Resource) -> None:
        """Serve one more kind; the built-in table wins over a definition of the same kind."""
        if _path_key(resource) not in self._fixed:
            self._by_path[_path_key(resource)] = resource
            self._all = tuple(self._by_path.values())

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a kind that was added."""
        for key in [key for key in self._by_path if (key[0], key[2]) == (group, plural)]:
            if key not in self._fixed:
                del self._by_path[key]
        self._all = tuple(self._by_path.values())

    def route(self, path: str) -> Route | None:
        """What a path means; None where nothing is served there."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "api" and len(parts) > 2:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        resource = self._by_path.get((group, version, rest[0]))
        if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
            return None
        name, subresource = (*rest[1:], "", "")[:2]
        if resource.namespaced and name and not namespace:
            return None
        if subresource and subresource not in (*resource.subresources, *_implied(resource)):
            return None
        return Route(resource, namespace, name, subresource)


def _implied(resource: Resource) -> tuple[str, ...]:
    return ("finalize",) if resource.kind == "Namespace" else ()


def _path_key(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def defined_by(crd: Object) -> list[Resource]:
    """The kinds that a CustomResourceDefinition asks for: its storage version (others are not converted)."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    found: list[Resource] = []
    for version in spec.get("versions") or []:
        if not version.get("storage"):
            continue
        subresources = tuple(name for name in ("status",) if name in (version.get("subresources") or {}))
        plural = names.get("plural", "")
        found.append(
            Resource(
                spec.get("group", ""),
                version.get("name", ""),
                names.get("kind", ""),
                plural,
                names.get("singular") or names.get("kind", "").lower(),
                namespaced=spec.get("scope") != "Cluster",
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=subresources,
                custom=True,
                schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
                printer_columns=tuple(version.get("additionalPrinterColumns") or ()),
            )
        )
    return found
