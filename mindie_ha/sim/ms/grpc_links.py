"""The Controller's connection over gRPC, with the options of the real client.

Plaintext; keepalive ping every 5 s with 60 s timeout, also without calls (source: motor contract §1.3).
Once made, the channel is never rebuilt: gRPC's own back-off reconnects it. Unary calls carry a deadline
so that a server that accepts and never answers cannot stop a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from mindie_ha.sim.ms.links import LinkError, LinkTarget
from mindie_ha.sim.ms.relays import Relay
from mindie_ha.sim.ms.routes import Route, straight
from mindie_ha.wire import config_pb2, config_pb2_grpc, fault_pb2, fault_pb2_grpc

CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 60_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.bdp_probe", 0),
)
CALL_TIMEOUT_S = 10.0


class GrpcLink:
    """A `ControllerLink` that dials from the pod's own address."""

    def __init__(self, target: LinkTarget, *, route: Route = straight) -> None:
        self._target = target
        self._relay = Relay(host=target.host, port=target.port, local_ip=target.local_ip, route=route)
        self._channel: grpc.aio.Channel | None = None

    async def connect(self, *, wait_s: float) -> None:
        """Wait for a working connection; LinkError when there is none within `wait_s`."""
        await self._relay.start()
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._relay.target, options=CHANNEL_OPTIONS)
        try:
            async with asyncio.timeout(wait_s):
                await self._channel.channel_ready()
        except TimeoutError:
            where = f"{self._target.host}:{self._target.port}"
            raise LinkError(f"no connection from {self._target.local_ip} to {where} in {wait_s} s") from None

    async def register_tables(self) -> None:
        """`config.Config/Register`."""
        request = config_pb2.ClientInfo(jobId=self._target.job_id, role=self._target.role)
        try:
            await config_pb2_grpc.ConfigStub(self._channel).Register(request, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise _refused("config.Config/Register", error) from error

    async def tables(self) -> AsyncIterator[str]:
        """`config.Config/SubscribeRankTable`."""
        request = config_pb2.ClientInfo(jobId=self._target.job_id, role=self._target.role)
        try:
            async for message in config_pb2_grpc.ConfigStub(self._channel).SubscribeRankTable(request):
                yield message.rankTable
        except grpc.aio.AioRpcError as error:
            raise _refused("config.Config/SubscribeRankTable", error) from error

    async def register_faults(self) -> None:
        """`fault.Fault/Register`."""
        request = fault_pb2.ClientInfo(jobId=self._target.job_id, role=self._target.role)
        try:
            await fault_pb2_grpc.FaultStub(self._channel).Register(request, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise _refused("fault.Fault/Register", error) from error

    async def faults(self) -> AsyncIterator[fault_pb2.FaultMsgSignal]:
        """`fault.Fault/SubscribeFaultMsgSignal`."""
        request = fault_pb2.ClientInfo(jobId=self._target.job_id, role=self._target.role)
        try:
            async for message in fault_pb2_grpc.FaultStub(self._channel).SubscribeFaultMsgSignal(request):
                yield message
        except grpc.aio.AioRpcError as error:
            raise _refused("fault.Fault/SubscribeFaultMsgSignal", error) from error

    async def close(self) -> None:
        """Close the channel, then the relay beneath it."""
        if self._channel is not None:
            await self._channel.close()
        await self._relay.close()


def _refused(method: str, error: grpc.aio.AioRpcError) -> LinkError:
    return LinkError(f"{method}: {error.code().name}: {error.details()}")


__all__ = ["CALL_TIMEOUT_S", "CHANNEL_OPTIONS", "GrpcLink"]
