"""All informers together: nothing acts on half a picture, and what is missing has a name."""

from __future__ import annotations

import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.mirrors import Mirror
from mindie_ha.cluster.sources import SOURCES
from mindie_ha.demo.links import ExchangeTransport
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.tasks import Supervisor
from mindie_ha.model.settings import ClusterSettings
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from tests.cluster.conftest import Between, Cluster, settle, status
from tests.cluster.facts import make_store

pytestmark = pytest.mark.looptime


class NoPods(Between):
    """A role that lacks one permission, until it is granted."""

    granted = False

    async def handle(self, request: ApiRequest) -> ApiResponse:
        if request.path.endswith("/pods") and not self.granted:
            return status(403, "Forbidden", 'User "x" cannot list resource "pods"')
        return await super().handle(request)


async def test_case_121_what_is_not_listed_is_named_and_the_rest_works(cluster: Cluster) -> None:
    between = NoPods(cluster.server)
    mirror = Mirror(
        client=Client(ExchangeTransport(between)),
        store=make_store(clock=cluster.clock),
        clock=cluster.clock,
        entropy=cluster.entropy,
        settings=ClusterSettings(),
        log=silent_log(),
        metrics=cluster.metrics,
    )
    supervisor = Supervisor(
        clock=cluster.clock, entropy=cluster.entropy, log=silent_log(), metrics=cluster.metrics
    )
    mirror.start(supervisor)
    assert len(supervisor.names) == len(SOURCES)
    missing = await mirror.wait_synced(timeout_s=20)
    assert list(missing) == ["pods"]
    assert "permission is missing: list pods" in missing["pods"]
    assert not mirror.synced
    assert mirror.problems() == missing
    assert mirror.idlest_s() < 60
    between.granted = True
    assert await mirror.wait_synced(timeout_s=60) == {}
    await settle()
    assert mirror.synced
    assert mirror.problems() == {}
    await supervisor.close()
    assert supervisor.names == ()


class NoVcjobs(Between):
    """Forbids the vcjobs."""

    async def handle(self, request: ApiRequest) -> ApiResponse:
        if request.path.endswith("/apis/batch.volcano.sh/v1alpha1/jobs"):
            return status(403, "Forbidden", 'User "x" cannot list resource "jobs"')
        return await super().handle(request)


async def test_a_kind_that_we_may_not_see_and_can_do_without_keeps_nobody_waiting(cluster: Cluster) -> None:
    mirror = Mirror(
        client=Client(ExchangeTransport(NoVcjobs(cluster.server))),
        store=make_store(clock=cluster.clock),
        clock=cluster.clock,
        entropy=cluster.entropy,
        settings=ClusterSettings(),
        log=silent_log(),
        metrics=cluster.metrics,
    )
    supervisor = Supervisor(
        clock=cluster.clock, entropy=cluster.entropy, log=silent_log(), metrics=cluster.metrics
    )
    mirror.start(supervisor)
    assert await mirror.wait_synced(timeout_s=20) == {}
    assert list(mirror.problems()) == ["vcjobs"]
    await supervisor.close()
