"""The workloads of a simulated history, made from the manifests of the demo.

A service has a namespace of its own; how many instances it has, whether Controller and Coordinator have a
standby and whether its pods are stopped by force or with grace is drawn from the seed. So it is with a
training job: by force or with grace, faulty pods alone or all of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from mindie_ha.demo import manifests

Object = dict[str, Any]
NAMESPACES = ("mindie", "second", "third")
TRAINING_NAMESPACE = "training"
CLUSTER_WIDE = ("PriorityClass", "Namespace")
SERVER = "mindie-server-"
MS_JOBS = ("mindie-ms-controller", "mindie-ms-coordinator")
TRAIN = "train"
RETRIES = "10000"  # a history has many faults, and a job that its operator gives up takes no more part


class Tenant(Protocol):
    """Who lives in the cluster, in a namespace of its own."""

    @property
    def namespace(self) -> str:
        """Where."""

    @property
    def strategy(self) -> str:
        """How its pods are stopped: force | grace."""

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of its AscendJobs."""

    @property
    def machines(self) -> int:
        """How many whole nodes it needs."""

    def size(self, job: str) -> int:
        """Pods of one of its jobs."""

    def objects(self) -> list[Object]:
        """Everything that has to be applied."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service. `servers` are the names of its instances without their common beginning."""

    namespace: str
    job_id: str
    servers: tuple[str, ...]
    standby: bool
    strategy: str

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of its AscendJobs."""
        return (*MS_JOBS, *self.instances)

    @property
    def instances(self) -> tuple[str, ...]:
        """Names of its server instances."""
        return tuple(f"{SERVER}{name}" for name in self.servers)

    @property
    def machines(self) -> int:
        """How many whole nodes its servers need."""
        return 2 * len(self.servers)

    def size(self, job: str) -> int:
        """Pods of one of its jobs."""
        return 1 if job in MS_JOBS and not self.standby else 2

    def objects(self) -> list[Object]:
        """Everything that has to be applied."""
        found = []
        for moved in _moved("pd-ha" if self.standby else "pd-a2", self, job_id=self.job_id):
            name = moved["metadata"]["name"].removeprefix("rings-config-")
            if name.startswith(SERVER) and name not in self.instances:
                continue
            if moved["kind"] not in CLUSTER_WIDE or self.namespace == NAMESPACES[0]:
                found.append(moved)
        return found


@dataclass(frozen=True, slots=True)
class Training:
    """One training job of four pods. `by_pod`: only faulty pods are replaced at first."""

    strategy: str
    by_pod: bool
    namespace: str = TRAINING_NAMESPACE
    jobs: tuple[str, ...] = (TRAIN,)
    machines: int = 4

    def size(self, job: str) -> int:
        """Pods of its job, each with a node of its own."""
        return self.machines if job in self.jobs else 0

    def objects(self) -> list[Object]:
        """Everything that has to be applied."""
        found = list(_moved("training", self))
        for obj in found:
            if obj["kind"] == "AscendJob":
                del obj["spec"]["runPolicy"]["backoffLimit"]
                obj["metadata"]["labels"] |= {"pod-rescheduling": "on"} if self.by_pod else {}
        return found


def _moved(manifest: str, tenant: Tenant, *, job_id: str = "") -> Iterator[Object]:
    """The objects of a manifest in the tenant's namespace, its jobs with its strategy; of this service."""
    for obj in manifests.load(manifest):
        text = json.dumps(obj).replace('"namespace": "mindie"', f'"namespace": "{tenant.namespace}"')
        moved: Object = json.loads(text.replace('"jobID": "mindie-ms"', f'"jobID": "{job_id}"'))
        if moved["kind"] == "AscendJob":
            labels = moved["metadata"]["labels"]
            labels |= {"fault-scheduling": tenant.strategy, "fault-retry-times": RETRIES}
        yield moved


def draw(dice: random.Random, *, theme: str) -> tuple[Tenant, ...]:
    """Who lives there in a history of this theme."""
    if theme == "training":
        return _training(dice)
    return _services(dice, standby=theme == "failover")


def _services(dice: random.Random, *, standby: bool) -> tuple[Tenant, ...]:
    """One to three services; the more there are the smaller they are. `standby`: one, with a standby."""
    count = 1 if standby else dice.choices((1, 2, 3), weights=(70, 22, 8))[0]
    sizes = (("p0", "d0"), ("p0", "p1", "d0"), ("p0", "d0", "d1")) if count == 1 else (("p0", "d0"),)
    return tuple(
        Service(
            namespace=NAMESPACES[number],
            job_id=f"job-{number}",
            servers=dice.choice(sizes),
            standby=standby or dice.random() < 0.6,
            strategy="grace" if dice.random() < 0.3 else "force",
        )
        for number in range(count)
    )


def _training(dice: random.Random) -> tuple[Tenant, ...]:
    """A training job, now and then beside a service."""
    job = Training(strategy=dice.choice(("force", "grace")), by_pod=dice.random() < 0.6)
    service = Service(NAMESPACES[0], "job-0", ("p0", "d0"), standby=dice.random() < 0.5, strategy="force")
    return (job, service) if dice.random() < 0.35 else (job,)


__all__ = ["MS_JOBS", "NAMESPACES", "SERVER", "TRAIN", "Service", "Tenant", "draw"]
