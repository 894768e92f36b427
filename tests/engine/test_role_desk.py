"""Who is asked, how often, and never by more than one at a time. Virtual time, pods in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from mindie_ha.channels.ms_endpoints import Answer, Unanswered
from mindie_ha.cluster.roles import RoleMemory
from mindie_ha.engine.role_desk import RoleDesk
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.ids import ScopeKey, service_key
from mindie_ha.model.roles import Activity
from mindie_ha.model.settings import CoupledSettings, RoleSettings
from mindie_ha.model.views import ScopeView
from tests.policy.pairs import pair
from tests.policy.worlds import World

pytestmark = pytest.mark.looptime
SCOPE = service_key("mindie", "svc")


class Pods:
    """Endpoints in memory."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.active = ""
        self.silent = 0  # so many questions get no answer
        self.takes_s = 0.0
        self.asked: list[tuple[float, str, str]] = []
        self.busy: set[str] = set()
        self.most = 0

    async def get(self, ip: str, port: int, path: str) -> Answer:
        assert ip not in self.busy, "asked twice at the same time"
        self.busy.add(ip)
        self.most = max(self.most, len(self.busy))
        self.asked.append((self.clock.monotonic(), ip, path))
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.busy.discard(ip)
        if self.silent and ip == self.active:
            self.silent -= 1
            raise Unanswered("no answer")
        return Answer(503 if path == "/v1/readiness" and ip != self.active else 200)

    async def close(self) -> None:
        return None

    def rounds(self, ip: str, since_s: float = 0.0) -> list[float]:
        """When this pod was asked."""
        return [
            at_s for at_s, who, path in self.asked if (who, path) == (ip, "/v1/readiness") and at_s >= since_s
        ]


class Stage:
    """A desk on the view of a small world."""

    def __init__(self, settings: RoleSettings) -> None:
        self.pods = Pods()
        self.world: World = pair()
        self.memory = RoleMemory(clock=self.pods.clock, patience_s=45.0)
        self.metrics = Metrics()
        self.touched: list[ScopeKey] = []
        self.desk = RoleDesk(
            memory=self.memory,
            endpoints=self.pods,
            touch=self.touched.append,
            settings=settings,
            coupled=CoupledSettings(),
            clock=self.pods.clock,
            entropy=Entropy(1),
            metrics=self.metrics,
        )
        self.ips = [pod.ip for pod in self.world.pods_of("ms-coordinator")]
        self.pods.active = self.ips[0]

    def look(self, view: ScopeView | None = None) -> None:
        """The service is looked at: a view asks what is known, then the desk hears of it."""
        self.activities()
        self.desk.looked(SCOPE, view or self.world.view())

    def activities(self) -> list[Activity]:
        """What is known of the Coordinators."""
        job = self.world.job("ms-coordinator")
        nodes = {name: machine.node for name, machine in self.world.machines.items()}
        pods = self.world.pods_of("ms-coordinator")
        found = self.memory.roles_of(job.workload, pods, nodes=nodes, ledger=job.ledger)
        return [found[pod.uid].activity for pod in pods]


@asynccontextmanager
async def asking(**settings: object) -> AsyncIterator[Stage]:
    """A desk that runs."""
    stage = Stage(RoleSettings(**settings))  # type: ignore[arg-type]
    task = asyncio.create_task(stage.desk.run())
    try:
        yield stage
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_coordinators_alone_are_asked_and_news_touches_the_service() -> None:
    async with asking() as stage:
        stage.look()
        await asyncio.sleep(1)
        assert stage.activities() == [Activity.ACTIVE, Activity.STANDBY]
        assert {ip for _, ip, _ in stage.pods.asked} == set(stage.ips)
        assert stage.touched == [SCOPE, SCOPE]


async def test_an_answer_of_a_pod_that_is_gone_meanwhile_is_not_kept() -> None:
    async with asking() as stage:
        stage.pods.takes_s = 5.0
        stage.look()
        await asyncio.sleep(1)
        for pod in stage.world.pods_of("ms-coordinator"):
            stage.memory.forget(pod.uid)
        await asyncio.sleep(20)
        assert stage.pods.asked
        assert not stage.touched


async def test_the_cadence_calms_down_and_quickens_with_every_change() -> None:
    async with asking() as stage:
        stage.look()
        await asyncio.sleep(600)
        times = stage.pods.rounds(stage.ips[0])
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert gaps[0] < 3.0
        assert all(24.0 <= gap <= 36.0 for gap in gaps[6:])
        assert len(times) < 30
        changed = stage.world.pods_of("ms-coordinator")[0]
        stage.world.change(changed, ready=not changed.ready)
        stage.look()
        began_s = stage.pods.clock.monotonic()
        await asyncio.sleep(3)
        assert stage.pods.rounds(stage.ips[0], began_s)


async def test_looks_without_a_change_do_not_quicken_it() -> None:
    async with asking() as stage:
        for _ in range(3000):
            stage.look()
            await asyncio.sleep(0.2)
        assert len(stage.pods.rounds(stage.ips[0])) < 30


async def test_a_slow_pod_is_asked_by_one_at_a_time_and_many_only_so_many() -> None:
    async with asking(parallel=1, quick_s=0.5) as stage:
        stage.pods.takes_s = 1.2
        stage.look()
        await asyncio.sleep(60)
        assert stage.pods.most == 1
        assert stage.pods.rounds(stage.ips[0])
        assert stage.pods.rounds(stage.ips[1])


async def test_one_miss_proves_nothing_the_second_does() -> None:
    async with asking() as stage:
        stage.look()
        await asyncio.sleep(300)
        stage.touched.clear()
        stage.pods.silent = 1
        for pod in stage.world.pods_of("ms-coordinator"):
            stage.world.change(pod, has_readiness_probe=False)
        stage.look()
        await asyncio.sleep(40)
        assert stage.activities()[0] is Activity.ACTIVE
        stage.pods.silent = 1000
        await asyncio.sleep(40)
        assert stage.activities()[0] is Activity.UNKNOWN


async def test_a_takeover_is_noticed_while_a_recovery_settles() -> None:
    async with asking() as stage:
        world = stage.world
        world.activity = {"ms-coordinator-0": Activity.STANDBY, "ms-coordinator-1": Activity.STANDBY}
        world.lose_node(world.pods_of("ms-coordinator")[0].node)
        world.settle(until=lambda: world.phase_of("ms-coordinator") == "settle", for_s=120)
        stage.look()
        await asyncio.sleep(60)
        stage.pods.active = stage.ips[1]
        await asyncio.sleep(3)
        assert stage.activities()[1] is Activity.ACTIVE


async def test_pods_that_are_gone_or_on_lost_nodes_are_asked_no_more() -> None:
    async with asking() as stage:
        stage.look()
        await asyncio.sleep(5)
        stage.world.lose_node(stage.world.pods_of("ms-coordinator")[0].node)
        stage.look()
        began_s = stage.pods.clock.monotonic()
        await asyncio.sleep(60)
        assert not stage.pods.rounds(stage.ips[0], began_s)
        assert stage.pods.rounds(stage.ips[1], began_s)
        stage.desk.looked(SCOPE, None)
        began_s = stage.pods.clock.monotonic()
        await asyncio.sleep(60)
        assert not stage.pods.rounds(stage.ips[1], began_s)


async def test_switched_off_nobody_is_asked() -> None:
    async with asking(ask=False) as stage:
        stage.look()
        await asyncio.sleep(60)
        assert not stage.pods.asked


async def test_questions_are_counted_by_their_answer() -> None:
    async with asking() as stage:
        stage.look(replace(stage.world.view()))
        await asyncio.sleep(1)
        text = stage.metrics.factory.render().decode()
        assert 'role_questions_total{answer="active",role="coordinator"} 1.0' in text
        assert 'role_questions_total{answer="standby",role="coordinator"} 1.0' in text
