"""The controllers of StatefulSets, Deployments and ReplicaSets, as far as recovery can tell.

A StatefulSet makes a missing pod again under its ordinal's name once the old one is gone for good; one after
the other, or all at once with `podManagementPolicy: Parallel`. A Deployment has one ReplicaSet for each
template, which makes a pod of a new random name as soon as one terminates. Rollouts are not played: the
ReplicaSet of an old template is scaled to nothing at once. A real control plane brings its own controllers.

Source: Kubernetes' apps/v1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.documents import (
    condition,
    controller_uid,
    is_finished,
    is_integer,
    is_terminating,
    key_of,
    mapping,
    name_of,
    namespace_of,
    number,
    text,
    texts,
    uid_of,
)
from mindie_ha.sim.client import Object

APPS = "apps/v1"
HASH = "pod-template-hash"


class PodSets(Actor):
    """Keeps the pods of every StatefulSet and ReplicaSet, and the ReplicaSets of every Deployment."""

    name = "pod-sets"
    kinds = ("StatefulSet", "Deployment", "ReplicaSet", "Pod")

    async def reconcile(self) -> float:
        """Every set once; a refusal of one does not hold up the others."""
        sets = {kind: self.cache.all(kind) for kind in ("StatefulSet", "ReplicaSet", "Deployment")}
        if not any(sets.values()):
            return self.period_s
        owned = owned_by(self.cache.all("Pod"))
        made = owned_by(sets["ReplicaSet"])
        await self.attempt_all(
            [
                *(
                    (name_of(one), self._stateful(one, owned.get(uid_of(one), [])))
                    for one in alive(sets["StatefulSet"])
                ),
                *(
                    (name_of(one), self._replicas(one, owned.get(uid_of(one), [])))
                    for one in alive(sets["ReplicaSet"])
                ),
                *(
                    (name_of(one), self._deployment(one, made.get(uid_of(one), [])))
                    for one in alive(sets["Deployment"])
                ),
            ]
        )
        return self.period_s

    async def _stateful(self, one: Object, pods: list[Object]) -> None:
        wanted = number(one, "spec", "replicas", default=1)
        in_order = text(one, "spec", "podManagementPolicy") != "Parallel"
        for pod in pods:
            ordinal = name_of(pod).rpartition("-")[2]
            beyond = is_integer(ordinal) and int(ordinal) >= wanted
            if (is_finished(pod) or beyond) and not is_terminating(pod):
                await self.api.delete("Pod", name_of(pod), namespace_of(pod), uid=uid_of(pod))
        for index in range(wanted):
            name = f"{name_of(one)}-{index}"
            present = self.cache.get("Pod", name, namespace_of(one))
            if present is None:
                marks = {
                    "statefulset.kubernetes.io/pod-name": name,
                    "apps.kubernetes.io/pod-index": str(index),
                }
                present = await self.create("Pod", pod_of("StatefulSet", one, name=name, labels=marks))
            if in_order and not is_ready(present):
                break
        await self._tell("StatefulSet", one, pods, wanted)

    async def _replicas(self, one: Object, pods: list[Object]) -> None:
        wanted = number(one, "spec", "replicas", default=1)
        active = [pod for pod in pods if not is_terminating(pod) and not is_finished(pod)]
        for _ in range(wanted - len(active)):
            name = f"{name_of(one)}-{self.entropy.uuid()[:5]}"
            await self.create("Pod", pod_of("ReplicaSet", one, name=name, labels={}))
        for pod in sorted(active, key=is_ready)[: max(0, len(active) - wanted)]:
            await self.api.delete("Pod", name_of(pod), namespace_of(pod), uid=uid_of(pod))
        await self._tell("ReplicaSet", one, active, wanted)

    async def _deployment(self, one: Object, made: list[Object]) -> None:
        digest = hashlib.sha256(json.dumps(mapping(one, "spec", "template"), sort_keys=True).encode())
        mark = {HASH: digest.hexdigest()[:10]}
        wanted = number(one, "spec", "replicas", default=1)
        name = f"{name_of(one)}-{mark[HASH]}"
        for each in made:
            count = wanted if name_of(each) == name else 0
            if number(each, "spec", "replicas", default=1) != count:
                await self.patch("ReplicaSet", each, {"spec": {"replicas": count}})
        if all(name_of(each) != name for each in made):
            await self.create("ReplicaSet", replica_set_of(one, name=name, mark=mark))
        ready = sum(number(each, "status", "readyReplicas") for each in made)
        await self._say("Deployment", one, wanted=wanted, present=wanted, ready=ready)

    async def _tell(self, kind: str, one: Object, pods: list[Object], wanted: int) -> None:
        await self._say(kind, one, wanted=wanted, present=len(pods), ready=sum(map(is_ready, pods)))

    async def _say(self, kind: str, one: Object, *, wanted: int, present: int, ready: int) -> None:
        counts = {"replicas": present, "readyReplicas": ready, "availableReplicas": ready}
        if kind != "ReplicaSet":
            counts["updatedReplicas"] = min(present, wanted)
        counts["observedGeneration"] = number(one, "metadata", "generation")
        if any(number(one, "status", name, default=-1) != value for name, value in counts.items()):
            await self.patch_status(kind, one, counts)


def alive(objects: Iterable[Object]) -> Iterable[Object]:
    """Those that are not being deleted."""
    return (one for one in objects if not is_terminating(one))


def owned_by(objects: Iterable[Object]) -> dict[str, list[Object]]:
    """Objects by the UID of their controlling owner."""
    found: dict[str, list[Object]] = {}
    for each in objects:
        found.setdefault(controller_uid(each), []).append(each)
    return found


def is_ready(pod: Object | None) -> bool:
    """The pod is there, stays, and is Ready."""
    return pod is not None and not is_terminating(pod) and text(condition(pod, "Ready"), "status") == "True"


def owner_of(kind: str, one: Object, *, api_version: str = APPS) -> list[Object]:
    """The ownerReferences of what `one` makes."""
    return [{
        "apiVersion": api_version, "kind": kind, "name": name_of(one), "uid": uid_of(one),
        "controller": True, "blockOwnerDeletion": True,
    }]  # fmt: skip


def pod_of(kind: str, one: Object, *, name: str, labels: dict[str, str]) -> Object:
    """A pod by the template of a StatefulSet or ReplicaSet."""
    template: dict[str, Any] = deepcopy(mapping(one, "spec", "template"))
    meta = mapping(template, "metadata")
    return {
        "metadata": {
            "name": name,
            "namespace": key_of(one)[0],
            "labels": {**texts(meta, "labels"), **labels},
            "annotations": texts(meta, "annotations"),
            "ownerReferences": owner_of(kind, one),
        },
        "spec": mapping(template, "spec"),
    }


def replica_set_of(one: Object, *, name: str, mark: dict[str, str]) -> Object:
    """The ReplicaSet of a Deployment's present template."""
    template: dict[str, Any] = deepcopy(mapping(one, "spec", "template"))
    labels = {**texts(template, "metadata", "labels"), **mark}
    template.setdefault("metadata", {})["labels"] = labels
    selector = {**texts(one, "spec", "selector", "matchLabels"), **mark}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace_of(one),
            "labels": labels,
            "ownerReferences": owner_of("Deployment", one),
        },
        "spec": {
            "replicas": number(one, "spec", "replicas", default=1),
            "selector": {"matchLabels": selector},
            "template": template,
        },
    }


__all__ = ["PodSets", "is_ready", "owned_by", "owner_of"]
