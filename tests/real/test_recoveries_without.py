"""A recovery with one verb less than the manifests grant: it is named, and what is documented happens."""

from __future__ import annotations

import asyncio
import re

import pytest

from mindie_ha.cluster.permissions import GUARDED, MEMORY, TAINTS, TOLD, WRITES, Permission
from mindie_ha.sim.client import ApiClient
from tests.real import machines, seen
from tests.real.accounts import lacking, running_without
from tests.real.controllers import Controller, until
from tests.real.rounds import CHIP, P0, PODS_OF_P0, one_round
from tools.control_plane.planes import ControlPlane

pytestmark = pytest.mark.usefixtures("booted")
SPARE_S = 1.0
HELD = tuple(each for each in WRITES if each.without == MEMORY or each.verb == "delete")
GUARDS = tuple(each for each in WRITES if each.without == GUARDED)
GOES_ON = tuple(
    each
    for each in WRITES
    if each.resource.kind in ("Node", "Pod", "ConfigMap", "Event") and each not in (*HELD, *GUARDS)
)
RECOVERED = (*HELD, *GUARDS, *GOES_ON)
"""Permissions that are taken away here."""


@pytest.mark.parametrize("wanted", GOES_ON, ids=str)
async def test_it_goes_on_without(wanted: Permission, field: ControlPlane, api: ApiClient) -> None:
    account, pod = lacking(field, wanted), machines.our_pods(field)[0]
    async with (
        running_without(wanted, account, pod=pod) as controller,
        one_round(field, api, controller) as play,
    ):
        play.strike(f"{P0}-master-0", CHIP)
        after = await play.recovered(P0)
        assert after.changed_since(play.before) == PODS_OF_P0
        if wanted.without == TAINTS:
            await controller.said("write failed", verb="patch", resource="nodes")
        if wanted.without == TOLD and wanted.verb == "create":
            await until(lambda: dropped(controller), what="dropped Events are counted")


async def dropped(controller: Controller) -> bool:
    """Whether the metric says that Events were not sent."""
    page = await controller.text("/metrics")
    found = re.findall(r"^mindie_ha_events_dropped_total\{.*\} (\S+)$", page, re.MULTILINE)
    return any(float(count) for count in found)


@pytest.mark.parametrize("wanted", GUARDS, ids=str)
async def test_a_workload_that_cannot_be_adopted_is_guarded(
    wanted: Permission, field: ControlPlane, api: ApiClient
) -> None:
    account, pod = lacking(field, wanted), machines.our_pods(field)[0]
    groups, _ = await api.list("PodGroup", seen.NAMESPACE)
    group = next(each for each in groups if each["metadata"]["name"].startswith(P0))
    note = {"metadata": {"annotations": {"ProcessRecoverStrategy": None}}}
    await api.patch("PodGroup", group["metadata"]["name"], seen.NAMESPACE, note)
    async with running_without(wanted, account, pod=pod) as controller:
        await controller.said("started")
        await controller.said("write failed", resource="podgroups")
        groups, _ = await api.list("PodGroup", seen.NAMESPACE)
        found = next(each for each in groups if each["metadata"]["name"].startswith(P0))
        assert "ProcessRecoverStrategy" not in found["metadata"].get("annotations", {})


@pytest.mark.parametrize("wanted", HELD, ids=str)
async def test_nothing_is_deleted_until_it_is_granted(
    wanted: Permission, field: ControlPlane, api: ApiClient
) -> None:
    account, pod = lacking(field, wanted), machines.our_pods(field)[0]
    if wanted.verb == "create":  # a workload that is new to us
        await api.delete("ConfigMap", f"mindie-ha-ledger-ascendjob-{P0}", seen.NAMESPACE)
    async with (
        running_without(wanted, account, pod=pod) as controller,
        one_round(field, api, controller) as play,
    ):
        play.strike(f"{P0}-master-0", CHIP)
        await controller.said("write failed", resource=wanted.resource.plural)
        await asyncio.sleep(SPARE_S)  # it would have been deleted by now
        uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await seen.pods(api)}
        assert uids == play.before.uids
        account.grant()
        after = await play.recovered(P0)
        assert after.changed_since(play.before) == PODS_OF_P0
        if wanted.verb == "delete":  # once is enough: it is asked every half minute
            await controller.said("permission is there again", verb=wanted.verb)
