"""The services of a simulated history, made from the manifests of the demo.

Each has a namespace of its own; how many instances it has, whether Controller and Coordinator have a standby
and whether its pods are stopped by force or with grace is drawn from the seed.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from mindie_ha.demo import manifests

Object = dict[str, Any]
NAMESPACES = ("mindie", "second", "third")
CLUSTER_WIDE = ("PriorityClass", "Namespace")
SERVER = "mindie-server-"
MS_JOBS = ("mindie-ms-controller", "mindie-ms-coordinator")


@dataclass(frozen=True, slots=True)
class Service:
    """One service. `servers` are the names of its instances without their common beginning."""

    namespace: str
    job_id: str
    servers: tuple[str, ...]
    standby: bool
    strategy: str  # force | grace

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

    def objects(self) -> list[Object]:
        """Everything that has to be applied."""
        found = []
        for obj in manifests.load("pd-ha" if self.standby else "pd-a2"):
            name = obj["metadata"]["name"].removeprefix("rings-config-")
            if name.startswith(SERVER) and name not in self.instances:
                continue
            text = json.dumps(obj).replace('"jobID": "mindie-ms"', f'"jobID": "{self.job_id}"')
            moved: Object = json.loads(
                text.replace('"namespace": "mindie"', f'"namespace": "{self.namespace}"')
            )
            if moved["kind"] == "AscendJob":
                labels = moved["metadata"]["labels"]
                labels |= {"fault-scheduling": self.strategy, "fault-retry-times": "10000"}
            if moved["kind"] not in CLUSTER_WIDE or self.namespace == NAMESPACES[0]:
                found.append(moved)
        return found


def draw(dice: random.Random, *, standby: bool = False) -> tuple[Service, ...]:
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


__all__ = ["MS_JOBS", "NAMESPACES", "Service", "draw"]
