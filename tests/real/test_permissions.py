"""With one verb less than the manifests grant: it is named, and the rest goes on as documented.

Here no pod is touched, so several controllers stand side by side, each with a Lease and ports of its own.
What a recovery does without a verb: `test_recoveries_without.py`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from mindie_ha.cluster.leader_labels import LABEL_LEADER
from mindie_ha.cluster.permissions import (
    ASKED,
    BLIND,
    BY_HAND,
    FOLLOWS,
    HIDDEN,
    LABELS,
    READS,
    WRITES,
    Permission,
    needed,
)
from mindie_ha.model.settings import Settings
from mindie_ha.sim.client import ApiClient
from tests.real import blocks, machines, seen
from tests.real.accounts import lacking, running_without
from tests.real.controllers import Controller, until
from tests.real.rounds import P0
from tests.real.test_recoveries_without import RECOVERED
from tools.control_plane.objects import request
from tools.control_plane.planes import ControlPlane

AT_ONCE = 3
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{machines.NAMESPACE}/leases"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
LABELLED = needed(Settings(), labels_itself=True)
LEASE_VERBS = tuple(each for each in LABELLED if each.without == FOLLOWS)
LEADER_LABEL = tuple(each for each in LABELLED if each.without == HIDDEN)
ADOPT_VERBS = tuple(each for each in WRITES if each.without == BY_HAND)
PLACES = itertools.count(1)
Check = Callable[[Controller], Awaitable[None]]


def test_every_permission_is_taken_away_somewhere() -> None:
    taken = {*READS, *ADOPT_VERBS, *LEASE_VERBS, *LEADER_LABEL, *ASKED, *RECOVERED}
    assert taken == set(LABELLED)


@asynccontextmanager
async def beside(
    field: ControlPlane, wanted: Permission, *, pod: int = 0, **settings: str
) -> AsyncIterator[Controller]:
    """A controller that lacks it, beside others: with an address and a Lease of its own."""
    account = await asyncio.to_thread(lacking, field, wanted)
    where = (await asyncio.to_thread(machines.our_pods, field))[pod]
    place = {
        **where,
        "status": {**where["status"], "podIP": blocks.beside(where["status"]["podIP"], next(PLACES))},
    }
    alone = {"MINDIE_HA_LEASE__NAME": account.name, **settings}
    async with running_without(wanted, account, pod=place, settings=alone) as controller:
        yield controller


async def each_of(wanted: Iterable[Permission], check: Callable[[Permission], Awaitable[None]]) -> None:
    """Check them a few at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(each: Permission) -> None:
        async with turns:
            await check(each)

    async with asyncio.TaskGroup() as group:
        for each in wanted:
            group.create_task(one(each))


async def test_every_missing_verb_of_reading_is_named_and_without_a_list_nothing_starts(
    field: ControlPlane,
) -> None:
    async def check(wanted: Permission) -> None:
        async with beside(field, wanted, MINDIE_HA_DRY_RUN="true") as controller:
            if wanted.without == BLIND:
                await controller.said("does not work")
                assert not (await controller.health())["ready"]
                assert not any(line["event"] == "started" for line in controller.lines)
            else:
                await controller.said("started")
                await until(lambda: controller.workload(P0), what="it sees the workloads all the same")

    await each_of(READS, check)


async def test_who_may_not_have_the_lease_does_not_lead(field: ControlPlane) -> None:
    async def check(wanted: Permission) -> None:
        free = {"metadata": {"name": f"lacks-{wanted.verb}-leases-ours"}, "spec": {}}
        if wanted.verb == "update":  # a Lease that is there is taken by an update, another one is created
            await asyncio.to_thread(request, field, "POST", LEASES, free)
        async with beside(field, wanted) as controller:
            await controller.said("standing by")
            told = await controller.said("the lease cannot be reached")
            assert told["error"] in (await controller.health())["reasons"]
            assert (await controller.health())["role"] == "standby"
            assert not any(line["event"] == "started" for line in controller.lines)

    await each_of(LEASE_VERBS, check)


async def test_who_may_not_label_itself_leads_and_says_that_clients_may_not_find_it(
    field: ControlPlane,
) -> None:
    (wanted,) = LEADER_LABEL
    bare = {"metadata": {"labels": {LABEL_LEADER: None}}}  # a leader that was killed leaves its label behind
    for pod in await asyncio.to_thread(machines.our_pods, field):
        path = f"/api/v1/namespaces/{machines.NAMESPACE}/pods/{pod['metadata']['name']}"
        await asyncio.to_thread(request, field, "PATCH", path, bare)
    async with beside(field, wanted, pod=1) as controller:
        await controller.said("started")
        await controller.said("the leader's label is not set")
        assert any(LABEL_LEADER in each for each in (await controller.health())["reasons"])
        await controller.well(P0)


async def test_by_setting_the_label_of_ms_pods_is_missed_too(field: ControlPlane) -> None:
    (wanted,) = LABELS  # the manifests do not grant it
    async with beside(field, wanted, MINDIE_HA_ROLES__LABEL_PODS="true") as controller:
        await controller.said("started")
        await controller.said("write failed", verb="patch", resource="pods")
        await controller.well(P0)


async def test_nobody_is_believed_without_reviews(field: ControlPlane) -> None:
    async def check(wanted: Permission) -> None:
        async with beside(field, wanted) as controller:
            await controller.said("started")
            assert (
                await controller.post("/v1/pauses", {"reason": "test"}, token=machines.admin_token(field))
                == 503
            )

    await each_of(ASKED, check)


async def test_a_job_is_not_adopted_without(field: ControlPlane, api: ApiClient) -> None:
    await asyncio.to_thread(request, field, "POST", JOBS, vcjob("train"))
    targets = {"AscendJob": (seen.NAMESPACE, P0), "Job": ("default", "train")}

    async def check(wanted: Permission) -> None:
        namespace, name = targets[wanted.resource.kind]
        before = await api.get(wanted.resource.kind, name, namespace)
        async with beside(field, wanted) as controller:
            await controller.said("started")
            await until(lambda: controller.workload(name), what=f"it sees {name}")
            path = f"/v1/workloads/{namespace}/{name}/adopt"
            assert await controller.post(path, {"mode": "grace"}, token=machines.admin_token(field)) == 503
            await controller.said("write failed", verb="patch", resource=wanted.resource.plural)
        after = await api.get(wanted.resource.kind, name, namespace)
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    try:
        await each_of(ADOPT_VERBS, check)
    finally:
        await asyncio.to_thread(request, field, "DELETE", f"{JOBS}/train")


def vcjob(name: str) -> dict[str, Any]:
    """A Volcano job that nobody has handed to us; its pod asks for nothing that others need."""
    container = {"name": "train", "image": "train:1"}
    task = {
        "name": "master",
        "replicas": 1,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"ring-controller.atlas": "ascend-910b"}},
        "spec": {"minAvailable": 1, "schedulerName": "volcano", "queue": "default", "tasks": [task]},
    }
