"""The Controller over real gRPC, from the pod's own address, and its ports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.sim.ms.grpc_links import GrpcLink
from mindie_ha.sim.ms.links import LinkError, LinkTarget
from mindie_ha.sim.ms.programs import MsPrograms, program_factory
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.wire import config_pb2, config_pb2_grpc, fault_pb2, fault_pb2_grpc


class TableServer(config_pb2_grpc.ConfigServicer):
    """Sends one table per subscription, then holds the stream until told to end it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str, str]] = []
        self.end = asyncio.Event()

    async def Register(  # noqa: N802 - the name on the wire
        self, request: config_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> config_pb2.Status:
        self._note("Register", request, context)
        return config_pb2.Status(code=7, info="a code nobody looks at")

    async def SubscribeRankTable(  # noqa: N802
        self, request: config_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[config_pb2.RankTableStream]:
        self._note("Subscribe", request, context)
        yield config_pb2.RankTableStream(jobId=request.jobId, rankTable=f'{{"n": {len(self.calls)}}}')
        await self.end.wait()
        self.end.clear()

    def _note(self, call: str, request: config_pb2.ClientInfo, context: grpc.aio.ServicerContext) -> None:
        self.calls.append((call, request.jobId, request.role, context.peer().rsplit(":", 1)[0]))


class FaultServer(fault_pb2_grpc.FaultServicer):
    """Sends one signal and holds."""

    async def Register(  # noqa: N802
        self, request: fault_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> fault_pb2.Status:
        return fault_pb2.Status()

    async def SubscribeFaultMsgSignal(  # noqa: N802
        self, request: fault_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[fault_pb2.FaultMsgSignal]:
        yield fault_pb2.FaultMsgSignal(jobId=request.jobId, signalType="normal")
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def serving(servicer: TableServer) -> AsyncIterator[int]:
    server = grpc.aio.server()
    config_pb2_grpc.add_ConfigServicer_to_server(servicer, server)
    fault_pb2_grpc.add_FaultServicer_to_server(FaultServer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def started(pod: Any, port: int) -> AsyncIterator[MsPrograms]:
    settings = MsSettings(cluster_port=port, register_pause_s=0.05, connect_wait_s=3)
    programs = program_factory(settings, clock=LoopClock())
    program = programs(pod.sandbox)
    assert program is not None
    task = asyncio.create_task(program.run())
    try:
        yield programs
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Any) -> None:
    async with asyncio.timeout(4):
        while not condition():  # noqa: ASYNC110 - the state of another task, no event to wait for
            await asyncio.sleep(0.01)


async def test_the_controller_registers_subscribes_and_starts_over_from_its_own_address(
    controller_pod: Any,
) -> None:
    servicer = TableServer()
    async with serving(servicer) as port, started(controller_pod, port) as programs:
        (controller,) = programs.controllers
        await until(lambda: len(controller.received) == 1 and controller.signals)
        servicer.end.set()
        await until(lambda: len(controller.received) == 2)

    assert [received.text for received in controller.received] == ['{"n": 2}', '{"n": 4}']
    who = ("mindie-ms", "mindie-ms-controller", "ipv4:127.5.0.2")
    assert servicer.calls == [(call, *who) for call in ("Register", "Subscribe") * 2]


async def test_a_refusal_names_method_and_status() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    link = GrpcLink(LinkTarget("127.0.0.1", port, "127.5.0.2", "j", "r"))
    await link.connect(wait_s=3)
    with pytest.raises(LinkError, match=r"config\.Config/Register: UNIMPLEMENTED"):
        await link.register_tables()
    with pytest.raises(LinkError, match="SubscribeRankTable: UNIMPLEMENTED"):
        await anext(link.tables())
    await link.close()
    await server.stop(None)


async def test_a_server_that_is_not_there_is_an_error_within_the_wait() -> None:
    link = GrpcLink(LinkTarget("127.0.0.1", 1, "127.5.0.2", "j", "r"))
    with pytest.raises(LinkError, match="no connection from 127"):
        await link.connect(wait_s=0.3)
    await link.close()


async def test_probe_ports_answer_on_the_pods_own_address(make_coordinator: Any) -> None:
    pod = make_coordinator("c-master-0", "127.5.0.1")
    async with started(pod, 1) as programs, aiohttp.ClientSession() as session:
        await until(lambda: programs.coordinators[0].active)
        async with session.get("http://127.5.0.1:1026/recvs_info") as response:
            assert (await response.json())["is_master"] is True
        for path, status in (("/v1/health", 200), ("/v1/readiness", 503), ("/v2/health/ready", 503)):
            async with session.get(f"http://127.5.0.1:1029{path}") as response:
                assert (path, response.status) == (path, status)
