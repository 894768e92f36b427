"""What a user sees of the service: its pods, where they run, which of them are new."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mindie_ha.sim.client import ApiClient
from tests.real.controllers import Controller, until

NAMESPACE = "mindie"
MEMBERS = {
    "mindie-ms-controller": 2,
    "mindie-ms-coordinator": 2,
    "mindie-server-p0": 2,
    "mindie-server-p1": 2,
    "mindie-server-d0": 2,
    "mindie-server-d1": 2,
}
"""Pods of each workload of the service."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The pods at one moment, by name."""

    uids: dict[str, str]
    nodes: dict[str, str]
    addresses: dict[str, str]

    def changed_since(self, before: Seen) -> set[str]:
        """Names of pods that are others now."""
        return {name for name, uid in before.uids.items() if self.uids.get(name) != uid}


async def pods(api: ApiClient) -> list[dict[str, Any]]:
    """All pods of the service."""
    return (await api.list("Pod", NAMESPACE))[0]


async def settled(api: ApiClient, controller: Controller, *, closed: dict[str, int] | None = None) -> Seen:
    """Wait until the controller finds every workload well and every pod runs; what is there then."""
    for name in MEMBERS:
        await controller.well(name, closed=(closed or {}).get(name, 0))

    async def complete() -> list[dict[str, Any]] | None:
        found = [pod for pod in await pods(api) if runs(pod)]
        return found if len(found) == sum(MEMBERS.values()) else None

    found = await until(complete, what=f"all {sum(MEMBERS.values())} pods run")
    return Seen(
        uids={pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found},
        nodes={pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in found},
        addresses={pod["metadata"]["name"]: pod["status"]["podIP"] for pod in found},
    )


def runs(pod: dict[str, Any]) -> bool:
    """Running and not about to go; a standby of MS is not Ready by design."""
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


async def closed_so_far(controller: Controller) -> dict[str, int]:
    """Recoveries that were closed, by workload."""
    found = {name: await controller.well(name) for name in MEMBERS}
    return {name: int(one["recoveries_closed"]) for name, one in found.items()}


def server_addresses(table: str) -> set[str]:
    """The addresses that a rank table names."""
    groups = json.loads(table)["server_group_list"]
    return {server["server_ip"] for group in groups for server in group["server_list"]}


async def released(api: ApiClient) -> None:
    """Wait until no node bears our taint, so that the next test finds every node free."""

    async def look() -> bool:
        nodes, _ = await api.list("Node")
        taints = [taint for node in nodes for taint in node.get("spec", {}).get("taints") or []]
        return not taints

    await until(look, what="no node is tainted")
