"""Names of things, typed so that they cannot be mixed up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

PodUID = NewType("PodUID", str)
Epoch = NewType("Epoch", int)


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """Namespace and name of one object; the namespace is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """The inverse of `str`; text without a slash is a cluster-scoped name."""
        namespace, _, name = text.rpartition("/")
        return cls(namespace, name)


class ScopeKind(StrEnum):
    """What one key of the work queue stands for."""

    SERVICE = "service"
    JOB = "job"
    NODE = "node"
    PUBLIC = "public"  # public faults: a ConfigMap that reports some, or what ends by itself


@dataclass(frozen=True, slots=True, order=True)
class ScopeKey:
    """One key of the work queue: a service (namespace, jobID), a job without service, or a node."""

    kind: ScopeKind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}" if self.namespace else f"{self.kind}:{self.name}"


def service_key(namespace: str, job_id: str) -> ScopeKey:
    """The key of the AscendJobs that share one namespace and one `jobID`."""
    return ScopeKey(ScopeKind.SERVICE, namespace, job_id)


def job_key(key: ObjectKey) -> ScopeKey:
    """The key of a workload that belongs to no service."""
    return ScopeKey(ScopeKind.JOB, key.namespace, key.name)


def node_key(node: str) -> ScopeKey:
    """The key under which a node's isolations are reconciled."""
    return ScopeKey(ScopeKind.NODE, "", node)


def public_key(config_map: ObjectKey) -> ScopeKey:
    """The key under which a ConfigMap that reports public faults is read."""
    return ScopeKey(ScopeKind.PUBLIC, config_map.namespace, config_map.name)


PUBLIC_SWEEP = ScopeKey(ScopeKind.PUBLIC, "", "")  # public faults that end by themselves
