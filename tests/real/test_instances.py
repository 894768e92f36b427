"""An InferServiceSet whose StatefulSets and Deployments are run by the control plane's own controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.transports import connected
from tests.real import machines, seen
from tests.real.controllers import running, until
from tools.control_plane.planes import ControlPlane

SERVICE = machines.SERVICE.with_name("inferserviceset.yaml")
DECODE, COORDINATOR = "chat-0-decode-0", "chat-0-coordinator-0"
CHIP = [{"device": "Ascend910-3", "code": "80E18005", "level": "SeparateNPU"}]
PODS = 7


@pytest.fixture(scope="module")
def instances(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with the service; Volcano marks faulty pods, the infer-operator rebuilds."""
    plane = ControlPlane(built, tmp_path_factory.mktemp("instances"))
    options = ("--volcano-reschedules",)
    with machines.started(plane), machines.furnished(plane, service=SERVICE, options=options):
        yield plane


@pytest.fixture
async def api(instances: ControlPlane) -> AsyncIterator[ApiClient]:
    """The API as cluster admin."""
    async with connected(kubeconfigs.read(instances.kubeconfig)) as exchange:
        yield ApiClient(exchange)


async def complete(api: ApiClient) -> dict[str, Any]:
    """All pods of the service by name, as soon as they run."""

    async def look() -> dict[str, Any] | None:
        found = {pod["metadata"]["name"]: pod for pod in await seen.pods(api) if seen.runs(pod)}
        return found if len(found) == PODS else None

    found: dict[str, Any] = await until(look, what=f"all {PODS} pods run")
    return found


async def test_an_instance_that_the_operator_rebuilds_is_recorded_and_verified(
    instances: ControlPlane, api: ApiClient
) -> None:
    account = instances.kubeconfig_for("mindie-ha", token=machines.account_token(instances))
    async with running(kubeconfig=account, pod=machines.our_pods(instances)[0]) as controller:
        before = await complete(api)
        for name in (DECODE, COORDINATOR):
            await controller.well(name)
        machines.set_faults(instances, before[f"{DECODE}-0"]["spec"]["nodeName"], CHIP)
        await controller.well(DECODE, closed=1)
        after = await complete(api)
        uids = {name: pod["metadata"]["uid"] for name, pod in after.items()}
        changed = {name for name, pod in before.items() if uids.get(name) != pod["metadata"]["uid"]}
        assert changed == {f"{DECODE}-0", f"{DECODE}-1"}
        assert (await controller.workload(COORDINATOR) or {})["recoveries_closed"] == 0
