"""The objects that the infer-operator makes of an InferServiceSet (pure).

Names: service `<set>-<i>`, InstanceSet `<service>-<role>`, workload `<service>-<role>-<j>`, PodGroup
`pg-<workload>`. The level between, the object InferService, is left out: nothing that recovery looks at
depends on it. Source: rescheduling contract §2.10; motor contract §4.3, §4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from mindie_ha.sim.actors.ascendjobs import npus_of
from mindie_ha.sim.actors.documents import (
    annotations_of,
    items,
    labels_of,
    mapping,
    name_of,
    namespace_of,
    number,
    text,
    texts,
)
from mindie_ha.sim.actors.job_objects import GROUP
from mindie_ha.sim.actors.pod_sets import owner_of
from mindie_ha.sim.client import Object

API_VERSION = "mindcluster.huawei.com/v1"
PREFIX = "infer.huawei.com/"
OPERATOR = f"{PREFIX}ascend-infer-operator"
SET_NAME = f"{PREFIX}inferserviceset-name"
SERVICE_NAME = f"{PREFIX}inferservice-name"
SERVICE_INDEX = f"{PREFIX}inferservice-index"
ROLE = f"{PREFIX}instanceset-name"
ROLE_NAME = f"{PREFIX}role-name"
INDEX = f"{PREFIX}instanceset-index"
GANG = f"{PREFIX}gang-schedule"
SCHEDULING = "fault-scheduling"
KINDS = ("StatefulSet", "Deployment")


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of an InstanceSet: the workload that has to be there."""

    owner: Object
    index: int

    @property
    def name(self) -> str:
        """Of the workload."""
        return f"{name_of(self.owner)}-{self.index}"

    @property
    def kind(self) -> str:
        """StatefulSet or Deployment."""
        kind = text(self.owner, "spec", "workload", "kind")
        return kind if kind in KINDS else KINDS[0]

    @property
    def gang(self) -> bool:
        """Whether its pods are placed together, and one deleted means all are rebuilt."""
        return labels_of(self.owner).get(GANG) == "true"

    @property
    def replicas(self) -> int:
        """Pods."""
        return number(self.owner, "spec", "spec", "replicas", default=1)

    @property
    def labels(self) -> dict[str, str]:
        """Those that say which instance it is."""
        labels = labels_of(self.owner)
        return {
            OPERATOR: "true",
            SERVICE_NAME: labels.get(SERVICE_NAME, ""),
            ROLE: labels.get(ROLE, ""),
            INDEX: str(self.index),
        }


def instance_sets(one: Object) -> Iterator[Object]:
    """The InstanceSets of an InferServiceSet."""
    for index in range(number(one, "spec", "replicas", default=1)):
        service = f"{name_of(one)}-{index}"
        for role in items(one, "spec", "template", "roles"):
            name = text(role, "name")
            marks = {
                OPERATOR: "true",
                SET_NAME: name_of(one),
                SERVICE_NAME: service,
                SERVICE_INDEX: str(index),
                ROLE: name,
                ROLE_NAME: name,
            }
            yield {
                "metadata": {
                    "name": f"{service}-{name}",
                    "namespace": namespace_of(one),
                    "labels": {**texts(role, "metadata", "labels"), **marks},
                    "annotations": texts(role, "metadata", "annotations"),
                    "ownerReferences": owner_of("InferServiceSet", one, api_version=API_VERSION),
                },
                "spec": deepcopy(role),
            }


def instances(owner: Object) -> list[Instance]:
    """The instances that an InstanceSet asks for."""
    return [Instance(owner, index) for index in range(number(owner, "spec", "replicas", default=1))]


def group_object(one: Instance) -> Object:
    """The PodGroup; it belongs to the InstanceSet and outlives a rebuild."""
    resource, count = npus_of(mapping(one.owner, "spec", "spec", "template", "spec"))
    needs = {"pods": str(one.replicas), **({resource: str(count * one.replicas)} if resource else {})}
    return {
        "metadata": {
            "name": f"pg-{one.name}",
            "namespace": namespace_of(one.owner),
            "labels": {**labels_of(one.owner), **one.labels},
            "annotations": annotations_of(one.owner),
            "ownerReferences": owner_of("InstanceSet", one.owner, api_version=API_VERSION),
        },
        "spec": {"minMember": one.replicas, "minResources": needs, "queue": "default"},
    }


def workload_object(one: Instance) -> Object:
    """The StatefulSet or Deployment of one instance."""
    spec: dict[str, Any] = deepcopy(mapping(one.owner, "spec", "spec"))
    template = spec.setdefault("template", {})
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**texts(meta, "labels"), **one.labels}
    if one.gang:
        meta["annotations"] = {**texts(meta, "annotations"), GROUP: f"pg-{one.name}"}
    spec.setdefault("replicas", 1)
    spec.setdefault("selector", {"matchLabels": one.labels})
    if one.kind == "StatefulSet":
        spec["serviceName"] = f"service-{one.name}"
    service, _, service_index = one.labels[SERVICE_NAME].rpartition("-")
    env = {
        "INSTANCE_INDEX": str(one.index),
        "INSTANCE_ROLE": one.labels[ROLE],
        "INFER_SERVICE_INDEX": service_index,
        "INFER_SERVICE_NAME": service,
    }
    for container in items(template, "spec", "containers"):
        container["env"] = [
            *items(container, "env"),
            *({"name": name, "value": value} for name, value in env.items()),
        ]
    labels = {**labels_of(one.owner), **one.labels}
    if SCHEDULING in meta["labels"]:
        labels[SCHEDULING] = meta["labels"][SCHEDULING]
    return {
        "metadata": {
            "name": one.name,
            "namespace": namespace_of(one.owner),
            "labels": labels,
            "annotations": annotations_of(one.owner),
            "ownerReferences": owner_of("InstanceSet", one.owner, api_version=API_VERSION),
        },
        "spec": spec,
    }


__all__ = ["Instance", "group_object", "instance_sets", "instances", "workload_object"]
