"""Service accounts that lack one verb of the manifests, and `mindie-ha run` as one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindie_ha.cluster.permissions import Permission
from tests.real import machines
from tests.real.controllers import Controller, running
from tools.control_plane.objects import request
from tools.control_plane.planes import ControlPlane

OURS = "mindie-ha"
"""What the manifests call account, ClusterRole and Role."""


@dataclass(frozen=True, slots=True)
class Account:
    """One that lacks a verb, until `grant`."""

    plane: ControlPlane
    name: str
    kubeconfig: Path

    def grant(self) -> None:
        """Let it do what the manifests let ours do."""
        for kind in ("ClusterRole", "Role"):
            rules = request(self.plane, "GET", f"{machines.PATHS[kind]}/{OURS}")["rules"]
            request(self.plane, "PATCH", f"{machines.PATHS[kind]}/{self.name}", {"rules": rules})


def lacking(plane: ControlPlane, without: Permission) -> Account:
    """An account of its own for this permission."""
    words = (without.verb, without.resource.plural, "ours" if without.namespace else "")
    name = "-".join(("lacks", *filter(None, words)))
    meta = {"name": name, "namespace": machines.NAMESPACE}
    request(plane, "POST", machines.PATHS["ServiceAccount"], {"metadata": meta})
    for kind, here in (("ClusterRole", not without.namespace), ("Role", bool(without.namespace))):
        rules = request(plane, "GET", f"{machines.PATHS[kind]}/{OURS}")["rules"]
        kept = _less(rules, without) if here else rules
        request(plane, "POST", machines.PATHS[kind], {"metadata": {"name": name}, "rules": kept})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        }
        request(plane, "POST", machines.PATHS[f"{kind}Binding"], binding)
    return Account(plane, name, plane.kubeconfig_for(name, token=machines.account_token(plane, name)))


def _less(rules: list[dict[str, Any]], without: Permission) -> list[dict[str, Any]]:
    """These rules without one verb on one resource; its neighbours in a rule keep it."""
    kept = []
    for rule in rules:
        if (
            without.resource.group not in rule["apiGroups"]
            or without.resource.plural not in rule["resources"]
        ):
            kept.append(rule)
            continue
        others = [each for each in rule["resources"] if each != without.resource.plural]
        verbs = [verb for verb in rule["verbs"] if verb != without.verb]
        kept += [{**rule, "resources": others}] if others else []
        kept += [{**rule, "resources": [without.resource.plural], "verbs": verbs}] if verbs else []
    return kept


@asynccontextmanager
async def running_without(
    wanted: Permission, account: Account, *, pod: dict[str, Any], settings: dict[str, str] | None = None
) -> AsyncIterator[Controller]:
    """`mindie-ha run` as this account, once it has named what it lacks, and nothing else."""
    async with running(kubeconfig=account.kubeconfig, pod=pod, settings=settings) as controller:
        line = await controller.said("permission is missing")
        named = {key: line[key] for key in ("verb", "resource", "group", "without_it")}
        assert named == {
            "verb": wanted.verb,
            "resource": wanted.resource.plural,
            "group": wanted.resource.group,
            "without_it": wanted.without,
        }
        assert f"permission is missing: {wanted}" in (await controller.health())["reasons"]
        yield controller
        missing = [one for one in controller.lines if one.get("event") == "permission is missing"]
        assert missing == [line]
