"""Public faults that came over HTTP, passed on to the upstream after we have them.

A gRPC report is passed on byte for byte by its servicer, and a ConfigMap is read by ClusterD itself; only
HTTP is ours alone. The message is built anew for the wire; a fault that does not fit its types is left out.
What the upstream does not take is told to the sender, who sends again: a report that we have already changes
nothing here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError

from mindie_ha.channels.errors import UpstreamSilent
from mindie_ha.channels.ports import FaultPort, ReportAnswer, ReportCode
from mindie_ha.channels.pubfault_service import SEND
from mindie_ha.wire import pubfault_pb2

PATIENCE_S = 10.0
_FRAME = ("id", "timestamp", "version", "resource")
_TAKEN, _NOT_TAKEN = frozenset({0}), {409: ReportCode.INVALID, 410: ReportCode.TOO_MANY}


class Upstream(Protocol):
    """`engine.outlets.Outlets`."""

    @property
    def upstream_configured(self) -> bool:
        """Whether there is one."""
        ...

    async def tell_upstream(self, method: str, request: bytes) -> bytes:
        """One unary call. Raises UpstreamSilent."""
        ...


class PassedReports:
    """A `FaultPort` in front of ours."""

    def __init__(self, ours: FaultPort, upstream: Upstream) -> None:
        self._ours = ours
        self._upstream = upstream

    async def report(self, body: Mapping[str, object], *, entry: str) -> ReportAnswer:
        """Take one message here, then there."""
        answer = await self._ours.report(body, entry=entry)
        if answer.code is not ReportCode.OK or not self._upstream.upstream_configured:
            return answer
        try:
            async with asyncio.timeout(PATIENCE_S):  # real time: a network is never scaled
                said = await self._upstream.tell_upstream(SEND, to_wire(body).SerializeToString())
            status = pubfault_pb2.RespStatus.FromString(said)
        except (UpstreamSilent, DecodeError, TimeoutError) as error:
            why = str(error) or f"no answer within {PATIENCE_S:g} s"
            return replace(answer, code=ReportCode.NOT_KEPT, info=f"kept here, not by grpc.upstream: {why}")
        if status.code in _TAKEN:
            return answer
        code = _NOT_TAKEN.get(status.code, ReportCode.NOT_KEPT)
        return replace(
            answer, code=code, info=f"kept here; grpc.upstream said {status.code}: {status.info[:200]}"
        )


def to_wire(body: Mapping[str, object]) -> pubfault_pb2.PublicFaultRequest:
    """The message for the wire; a fault that does not fit its types is left out."""
    message = pubfault_pb2.PublicFaultRequest()
    _fill(message, {name: body[name] for name in _FRAME if name in body})
    faults = body.get("faults")
    for fault in faults if isinstance(faults, list) else ():
        found = pubfault_pb2.Fault()
        if isinstance(fault, dict) and _fill(found, fault):
            message.faults.append(found)
    return message


def _fill(
    message: pubfault_pb2.PublicFaultRequest | pubfault_pb2.Fault, values: Mapping[str, object]
) -> bool:
    try:
        ParseDict(dict(values), message, ignore_unknown_fields=True)
    except (ParseError, TypeError, ValueError, OverflowError):
        return False
    return True


__all__ = ["PassedReports", "to_wire"]
