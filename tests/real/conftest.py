"""One control plane a test process, with simulated machines and a MindIE service; started on first use."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.transports import connected
from tests.real import machines, seen
from tests.real.controllers import running
from tools.control_plane import binaries
from tools.control_plane.planes import ControlPlane, Options


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is `real`: not for `make test`, with time for a whole cluster."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.real)
            item.add_marker(pytest.mark.timeout(900))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests measured, also those of other processes."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(str(text))


@pytest.fixture(scope="session")
def built() -> Path:
    """The binaries."""
    return binaries.ensure(sys.stderr)


@pytest.fixture(scope="session")
def plane(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A healthy control plane with our kinds, and nobody in it; etcd soon forgets old versions."""
    plane = ControlPlane(built, tmp_path_factory.mktemp("plane"), Options(compaction="5s"))
    with machines.started(plane):
        yield plane


@pytest.fixture(scope="session")
def field(plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with machines, a service, and mindie-ha deployed: pods without a process so far."""
    with machines.furnished(plane):
        yield plane


@pytest.fixture
def account(field: ControlPlane) -> Path:
    """A kubeconfig with exactly the permissions of the manifests."""
    return field.kubeconfig_for("mindie-ha", token=machines.account_token(field))


@pytest.fixture
async def api(field: ControlPlane) -> AsyncIterator[ApiClient]:
    """The API as cluster admin."""
    async with connected(kubeconfigs.read(field.kubeconfig)) as exchange:
        yield ApiClient(exchange)
    machines.heal(field)  # a test that failed must not fail the next one


@pytest.fixture
async def booted(field: ControlPlane, api: ApiClient, account: Path) -> None:
    """The service has had a first table: where nobody may write one its MS Controllers do not come up."""
    boot = await api.get("ConfigMap", "global-ranktable", seen.NAMESPACE)
    assert boot is not None
    if "server_group_list" not in boot["data"]["global_ranktable.json"]:
        async with running(kubeconfig=account, pod=machines.our_pods(field)[0]) as controller:
            await seen.settled(api, controller)
