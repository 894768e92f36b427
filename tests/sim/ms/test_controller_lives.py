"""Controllers and Coordinators on virtual time, over a link in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.sim.actors.programs import Program
from mindie_ha.sim.ms import clients
from mindie_ha.sim.ms.links import LinkError, LinkTarget
from mindie_ha.sim.ms.programs import MsPrograms, program_factory
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.wire import fault_pb2

pytestmark = pytest.mark.looptime


class MemoryLink:
    """A table server in memory: each stream is a queue; None ends it, an error breaks it."""

    def __init__(self, target: LinkTarget) -> None:
        self.target = target
        self.refuse_connects = 0
        self.refuse_registers = 0
        self.registers: list[str] = []
        self.open: set[str] = set()
        self.queues: dict[str, asyncio.Queue[Any]] = {"tables": asyncio.Queue(), "faults": asyncio.Queue()}
        self.closed = False

    async def connect(self, *, wait_s: float) -> None:
        if self.refuse_connects > 0:
            self.refuse_connects -= 1
            raise LinkError("connect: refused")

    async def register_tables(self) -> None:
        self._register("tables")

    async def register_faults(self) -> None:
        self._register("faults")

    def tables(self) -> AsyncIterator[str]:
        return self._stream("tables")

    def faults(self) -> AsyncIterator[fault_pb2.FaultMsgSignal]:
        return self._stream("faults")

    async def close(self) -> None:
        self.closed = True

    def _register(self, name: str) -> None:
        self.registers.append(name)
        if self.refuse_registers > 0:
            self.refuse_registers -= 1
            raise LinkError("Register: refused")

    async def _stream(self, name: str) -> AsyncIterator[Any]:
        self.open.add(name)
        try:
            while (item := await self.queues[name].get()) is not None:
                if isinstance(item, LinkError):
                    raise item
                yield item
        finally:
            self.open.discard(name)


class Cluster:
    """The programs and links of one test, with their tasks."""

    def __init__(self, **settings: Any) -> None:
        self.links: list[MemoryLink] = []
        self.refuse_connects = 0
        self.programs: MsPrograms = program_factory(
            MsSettings(serve_http=False, **settings), clock=LoopClock(), link_factory=self._link
        )
        self.tasks: list[asyncio.Task[int]] = []

    def start(self, pod: Any) -> asyncio.Task[int]:
        program: Program | None = self.programs(pod.sandbox)
        assert program is not None
        self.tasks.append(asyncio.create_task(program.run()))
        return self.tasks[-1]

    @property
    def link(self) -> MemoryLink:
        return self.links[-1]

    def _link(self, target: LinkTarget) -> MemoryLink:
        self.links.append(MemoryLink(target))
        self.link.refuse_connects = self.refuse_connects
        return self.link


@contextlib.asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(**settings)
    try:
        yield cluster
    finally:
        for task in cluster.tasks:
            task.cancel()
        await asyncio.gather(*cluster.tasks, return_exceptions=True)


async def test_boot_waits_for_a_completed_table_then_never_reads_the_mount_again(controller_pod: Any) -> None:
    completed, controller_pod.table = controller_pod.table, '{"status": "initializing"}'
    async with running() as cluster:
        cluster.start(controller_pod)
        await asyncio.sleep(30)
        assert not controller_pod.ready
        assert cluster.links == []
        controller_pod.table = completed
        await asyncio.sleep(10)
        controller_pod.table = "changed"
        await asyncio.sleep(10)
        (controller,) = cluster.programs.controllers
        assert controller_pod.ready
        assert controller.table == completed
        assert [instance.group_id for instance in controller.instances] == ["2", "3"]


async def test_a_pod_that_is_not_in_the_table_exits_with_255(make_coordinator: Any) -> None:
    pod = make_coordinator("c-master-0", "127.9.9.9")
    del pod.sandbox.env["APP_TYPE"]
    async with running() as cluster:
        assert await cluster.start(pod) == 255


async def test_a_pushed_table_is_recorded_at_once_and_applied_within_5_s(
    controller_pod: Any, one_p_one_d: Any
) -> None:
    async with running() as cluster:
        cluster.start(controller_pod)
        await asyncio.sleep(12)
        one_p_one_d["server_group_list"].pop()
        cluster.link.queues["tables"].put_nowait(json.dumps(one_p_one_d))
        await asyncio.sleep(0.1)
        (controller,) = cluster.programs.controllers
        assert [received.text for received in controller.received] == [json.dumps(one_p_one_d)]
        assert len(controller.instances) == 2
        await asyncio.sleep(5)
        assert len(controller.instances) == 1
        assert controller.applied[-1].removed == ("127.5.2.1",)


async def test_a_bad_table_overwrites_the_file_but_not_the_state(controller_pod: Any) -> None:
    async with running() as cluster:
        cluster.start(controller_pod)
        await asyncio.sleep(12)
        cluster.link.queues["tables"].put_nowait("{")
        await asyncio.sleep(6)
        (controller,) = cluster.programs.controllers
        assert controller.table == "{"
        assert len(controller.instances) == 2
        assert not controller.applied[-1].load.accepted


async def test_each_end_of_a_stream_restarts_register_and_subscribe(controller_pod: Any) -> None:
    async with running() as cluster:
        cluster.start(controller_pod)
        await asyncio.sleep(1)
        for end in (None, LinkError("cut off"), None):
            cluster.link.queues["tables"].put_nowait(end)
            await asyncio.sleep(3)
        assert cluster.link.registers.count("tables") == 4
        assert cluster.link.registers.count("faults") == 1
        assert cluster.link.open == {"tables", "faults"}


async def test_register_is_repeated_each_second_and_alarmed_after_300(controller_pod: Any) -> None:
    async with running() as cluster:
        cluster.start(controller_pod)
        await asyncio.sleep(1)
        cluster.link.refuse_registers = 310
        cluster.link.queues["tables"].put_nowait(None)
        await asyncio.sleep(290)
        client = cluster.programs.controllers[0].client
        assert client is not None
        assert client.alarms == []
        await asyncio.sleep(15)
        assert client.alarms == [clients.RANKTABLE_SUBSCRIBE_FAILED]
        await asyncio.sleep(20)
        assert client.alarms == []
        assert cluster.link.open == {"tables", "faults"}


async def test_the_client_gives_up_for_good_after_60_connects(controller_pod: Any) -> None:
    async with running() as cluster:
        cluster.refuse_connects = 60
        cluster.start(controller_pod)
        await asyncio.sleep(3600)
        (controller,) = cluster.programs.controllers
        assert controller.client is not None
        assert controller.client.alarms == [clients.REGISTER_FAILED]
        assert controller.running
        assert cluster.link.closed


async def test_with_the_known_defect_the_second_loss_leaves_only_the_fault_stream(
    controller_pod: Any,
) -> None:
    async with running(joins_new_streams=True) as cluster:
        cluster.start(controller_pod)
        for _ in range(2):
            await asyncio.sleep(5)
            for name in tuple(cluster.link.open):
                cluster.link.queues[name].put_nowait(None)
        await asyncio.sleep(600)
        assert cluster.link.open == {"faults"}


async def test_without_a_server_address_nothing_is_dialled(controller_pod: Any) -> None:
    del controller_pod.sandbox.env["MINDX_SERVER_IP"]
    async with running() as cluster:
        cluster.start(controller_pod)
        await asyncio.sleep(60)
        assert cluster.links == []
        assert len(cluster.programs.controllers[0].instances) == 2


async def test_a_coordinator_is_ready_when_its_table_names_it_and_p_and_d_are_known(
    controller_pod: Any, make_coordinator: Callable[[str, str], Any], one_p_one_d: Any
) -> None:
    named, stranger = make_coordinator("c-master-0", "127.5.0.1"), make_coordinator("d-master-0", "127.5.0.9")
    async with running() as cluster:
        cluster.start(named)
        await asyncio.sleep(30)
        assert not named.ready
        cluster.start(controller_pod)
        cluster.start(stranger)
        await asyncio.sleep(10)
        assert named.ready
        assert not stranger.ready
        one_p_one_d["server_group_list"].pop()
        cluster.link.queues["tables"].put_nowait(json.dumps(one_p_one_d))
        await asyncio.sleep(7)
        assert not named.ready


async def test_a_standby_coordinator_takes_over_when_the_lease_has_run_out(
    controller_pod: Any, make_coordinator: Callable[[str, str], Any], one_p_one_d: Any
) -> None:
    one_p_one_d["server_group_list"][0]["server_list"] = [
        {"server_ip": "127.5.0.1"},
        {"server_ip": "127.5.0.9"},
    ]
    controller_pod.table = json.dumps(one_p_one_d)
    active, standby = make_coordinator("c-master-0", "127.5.0.1"), make_coordinator("c-worker-0", "127.5.0.9")
    async with running() as cluster:
        active_task = cluster.start(active)
        cluster.start(standby)
        cluster.start(controller_pod)
        await asyncio.sleep(10)
        assert (active.ready, standby.ready) == (True, False)
        active_task.cancel()
        await asyncio.sleep(19)
        assert not standby.ready
        await asyncio.sleep(7)
        assert standby.ready


async def test_the_lone_successor_of_a_controller_needs_no_lease(controller_pod: Any) -> None:
    async with running() as cluster:
        first = cluster.start(controller_pod)
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.sleep(1)
        cluster.start(controller_pod)
        await asyncio.sleep(1)
        assert len(cluster.links) == 2
        assert cluster.links[0].closed
        assert cluster.programs.leader("mindie", "mindie-ms") is cluster.programs.controllers[1]


async def test_of_two_controllers_only_the_leader_connects_and_both_are_ready(
    controller_pod: Any, make_controller: Callable[[str, str], Any]
) -> None:
    standby = make_controller("mindie-ms-controller-worker-0", "127.5.0.3")
    async with running() as cluster:
        leader = cluster.start(controller_pod)
        cluster.start(standby)
        await asyncio.sleep(10)
        assert [link.target.local_ip for link in cluster.links] == ["127.5.0.2"]
        assert (controller_pod.ready, standby.ready) == (True, True)
        leader.cancel()
        await asyncio.sleep(26)
        assert [link.target.local_ip for link in cluster.links] == ["127.5.0.2", "127.5.0.3"]
