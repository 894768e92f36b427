"""The kinds that the embedded API server serves, as data.

Discovery, OpenAPI, table printing, validation and storage all read this one table; a new kind is one entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind: its names, scope, verbs and subresources."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    custom: bool = False  # defined by a CRD: no strategic merge patch, structural schema
    schema: dict[str, object] = field(default_factory=dict, hash=False, compare=False)
    printer_columns: tuple[dict[str, object], ...] = field(default=(), hash=False, compare=False)

    @property
    def api_version(self) -> str:
        """`v1` or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def base_path(self) -> str:
        """`/api/v1` or `/apis/<group>/<version>`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


CORE = (
    Resource("", "v1", "Namespace", "namespaces", "namespace", namespaced=False, short_names=("ns",), subresources=("status",)),
    Resource("", "v1", "Node", "nodes", "node", namespaced=False, short_names=("no",), subresources=("status",)),
    Resource("", "v1", "Pod", "pods", "pod", short_names=("po",), categories=("all",), subresources=("status", "binding", "eviction")),
    Resource("", "v1", "ConfigMap", "configmaps", "configmap", short_names=("cm",)),
    Resource("", "v1", "Secret", "secrets", "secret"),
    Resource("", "v1", "Service", "services", "service", short_names=("svc",), categories=("all",), subresources=("status",)),
    Resource("", "v1", "Endpoints", "endpoints", "endpoints", short_names=("ep",)),
    Resource("", "v1", "Event", "events", "event", short_names=("ev",)),
    Resource("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount", short_names=("sa",)),
    Resource("apps", "v1", "Deployment", "deployments", "deployment", short_names=("deploy",), categories=("all",), subresources=("status",)),
    Resource("apps", "v1", "StatefulSet", "statefulsets", "statefulset", short_names=("sts",), categories=("all",), subresources=("status",)),
    Resource("apps", "v1", "ReplicaSet", "replicasets", "replicaset", short_names=("rs",), categories=("all",), subresources=("status",)),
    Resource("coordination.k8s.io", "v1", "Lease", "leases", "lease"),
    Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass", namespaced=False, short_names=("pc",)),
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget", short_names=("pdb",), subresources=("status",)),
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "networkpolicy", short_names=("netpol",)),
    Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", "role"),
    Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "rolebinding"),
    Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "clusterrole", namespaced=False),
    Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", namespaced=False),
    Resource(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "customresourcedefinition",
        namespaced=False, short_names=("crd", "crds"), subresources=("status",),
    ),
)  # fmt: skip

CUSTOM = (
    Resource("mindxdl.gitee.com", "v1", "AscendJob", "ascendjobs", "ascendjob", short_names=("acjob",), subresources=("status",), custom=True),
    Resource("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", "podgroup", short_names=("pg",), subresources=("status",), custom=True),
    Resource("scheduling.volcano.sh", "v1beta1", "Queue", "queues", "queue", namespaced=False, short_names=("q",), subresources=("status",), custom=True),
    Resource("mindcluster.huawei.com", "v1", "InferServiceSet", "inferservicesets", "inferserviceset", short_names=("iss",), subresources=("status",), custom=True),
    Resource("mindcluster.huawei.com", "v1", "InstanceSet", "instancesets", "instanceset", short_names=("iset",), subresources=("status",), custom=True),
    Resource("batch.volcano.sh", "v1alpha1", "Job", "jobs", "job", short_names=("vcjob", "vj"), subresources=("status",), custom=True),
)  # fmt: skip

RESOURCES: tuple[Resource, ...] = CORE + CUSTOM


def by_kind(kind: str) -> Resource:
    """The resource of a kind name; for the one ambiguous name, `Job`, Volcano's."""
    for resource in RESOURCES:
        if resource.kind == kind:
            return resource
    raise KeyError(f"the embedded cluster serves no kind {kind!r}")
