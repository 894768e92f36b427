"""`PubFault.SendPublicFault`: other programs report faults of cards.

The answer is 0 only for what is remembered; the reasons of a refusal are in its text, and the gRPC status
stays OK, as on the wire today. With an upstream the message is passed on, byte for byte, after we have it:
ClusterD has to tell the scheduler, and its answer is then the client's.

Source: rank table contract §5.5; fault input contract §3.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf.message import DecodeError

from mindie_ha.channels.calls import Route, RpcContext
from mindie_ha.channels.passthrough import Passthrough, only
from mindie_ha.channels.ports import FaultPort, ReportAnswer, ReportCode
from mindie_ha.wire import pubfault_pb2

SEND = "/PubFault/SendPublicFault"
ENTRY = "grpc"


class PubFaultService:
    """The servicer of `PubFault`."""

    def __init__(self, *, reports: FaultPort, passthrough: Passthrough) -> None:
        self._reports = reports
        self._passthrough = passthrough

    def routes(self) -> Mapping[str, Route]:
        """Full method name to servicer."""
        return {SEND: self.send}

    async def send(self, request: bytes, context: RpcContext) -> None:
        """Take one message."""
        answer = await self._reports.report(await _decoded(request, context), entry=ENTRY)
        if answer.code is ReportCode.OK and self._passthrough.configured:
            await self._passthrough.forward(SEND, only(request), context)
            return
        await context.write(_wire(answer))


async def _decoded(request: bytes, context: RpcContext) -> dict[str, object]:
    try:
        message = pubfault_pb2.PublicFaultRequest.FromString(request)
    except DecodeError as error:
        await context.abort(
            grpc.StatusCode.INTERNAL, f"request is not a PublicFaultRequest ({error}); see pubfault.proto"
        )
    return {
        "id": message.id,
        "timestamp": message.timestamp,
        "version": message.version,
        "resource": message.resource,
        "faults": [_fault(fault) for fault in message.faults],
    }


def _fault(fault: pubfault_pb2.Fault) -> dict[str, object]:
    return {
        "faultId": fault.faultId,
        "faultType": fault.faultType,
        "faultCode": fault.faultCode,
        "faultTime": fault.faultTime,
        "assertion": fault.assertion,
        "faultLocation": dict(fault.faultLocation),
        "influence": [
            {"nodeName": each.nodeName, "nodeSN": each.nodeSN, "deviceIds": list(each.deviceIds)}
            for each in fault.influence
        ],
        "description": fault.description,
    }


def _wire(answer: ReportAnswer) -> bytes:
    return pubfault_pb2.RespStatus(code=answer.code, info=answer.info).SerializeToString()


__all__ = ["PubFaultService"]
