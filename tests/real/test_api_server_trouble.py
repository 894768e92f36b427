"""The API server crashes, comes back, and no longer knows the versions that we had."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from mindie_ha.sim.client import ApiClient
from tests.real import machines
from tests.real.controllers import Controller, running, until
from tests.real.rounds import CHIP, P0, PODS_OF_P0, one_round
from tools.control_plane.objects import RefusedError, request
from tools.control_plane.planes import ControlPlane


async def lists(controller: Controller, cause: str) -> float:
    """How often it had to list anew for this cause."""
    page = await controller.text("/metrics")
    pattern = rf'^mindie_ha_informer_lists_total\{{[^}}]*cause="{cause}"[^}}]*\}} (\S+)$'
    return sum(float(found) for found in re.findall(pattern, page, re.MULTILINE))


async def forgotten(plane: ControlPlane, version: str) -> None:
    """Wait until etcd no longer knows a version."""
    path = f"/api/v1/nodes?resourceVersion={version}&resourceVersionMatch=Exact&limit=1"

    async def look() -> bool:
        try:
            request(plane, "GET", path)
        except RefusedError as error:
            return error.status == 410
        return False

    await until(look, what=f"version {version} is compacted")


async def test_a_frozen_controller_lists_anew_what_its_watches_missed(
    field: ControlPlane, api: ApiClient, account: Path
) -> None:
    pod = machines.our_pods(field)[0]
    async with running(kubeconfig=account, pod=pod) as controller, one_round(field, api, controller) as play:
        _, version = await api.list("Node")
        controller.signal(signal.SIGSTOP)
        play.strike(f"{P0}-master-0", CHIP)
        await forgotten(field, version)
        field.kill_apiserver()
        field.start_apiserver()
        controller.signal(signal.SIGCONT)
        after = await play.recovered(P0)
        assert after.changed_since(play.before) == PODS_OF_P0
        assert await lists(controller, "expired") > 0


async def test_a_crash_of_the_api_server_in_the_middle_of_a_recovery(
    field: ControlPlane, api: ApiClient, account: Path
) -> None:
    pod = machines.our_pods(field)[0]
    async with running(kubeconfig=account, pod=pod) as controller, one_round(field, api, controller) as play:
        play.strike(f"{P0}-master-0", CHIP)
        await controller.said("written", verb="delete", resource="pods")
        field.kill_apiserver()
        field.start_apiserver()
        after = await play.recovered(P0)
        assert after.changed_since(play.before) == PODS_OF_P0
        deletions = [line for line in controller.lines if line.get("verb") == "delete"]
        done = [line["uid"] for line in deletions if line.get("result") == "done"]
        assert len(done) == len(set(done)), "a pod was deleted twice"
