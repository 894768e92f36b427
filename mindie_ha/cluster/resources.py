"""The kinds we read and write, as data, and the URL paths they live under.

Everything that talks to the API takes a `Resource`; nothing builds paths by hand. Whether a kind may be
missing (a CRD that was never installed) is a property of the kind, so that an informer can wait quietly.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from mindie_ha.model.ids import ObjectKey


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind: where it lives and whether a cluster may lack it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    custom: bool = False  # defined by a CRD: may be absent, knows no strategic merge patch

    @property
    def api_version(self) -> str:
        """`v1` or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str = "") -> str:
        """Path of all objects, or of those in one namespace."""
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            base += f"/namespaces/{quote(namespace, safe='')}"
        return f"{base}/{self.plural}"

    def path(self, key: ObjectKey) -> str:
        """Path of one object."""
        return f"{self.collection(key.namespace)}/{quote(key.name, safe='')}"


NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
POD = Resource("", "v1", "Pod", "pods")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
EVENT = Resource("", "v1", "Event", "events")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
ASCEND_JOB = Resource("mindxdl.gitee.com", "v1", "AscendJob", "ascendjobs", custom=True)
VOLCANO_JOB = Resource("batch.volcano.sh", "v1alpha1", "Job", "jobs", custom=True)
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Resource("apps", "v1", "ReplicaSet", "replicasets")
POD_GROUP = Resource("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", custom=True)

RESOURCES = (
    NODE,
    POD,
    CONFIG_MAP,
    EVENT,
    LEASE,
    ASCEND_JOB,
    VOLCANO_JOB,
    STATEFUL_SET,
    DEPLOYMENT,
    REPLICA_SET,
    POD_GROUP,
)

__all__ = [
    "ASCEND_JOB",
    "CONFIG_MAP",
    "DEPLOYMENT",
    "EVENT",
    "LEASE",
    "NODE",
    "POD",
    "POD_GROUP",
    "REPLICA_SET",
    "RESOURCES",
    "STATEFUL_SET",
    "VOLCANO_JOB",
    "Resource",
]
