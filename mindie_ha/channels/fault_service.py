"""`fault.Fault`: who registers and subscribes is told what is wrong with its nodes, and when it is over.

Registrations are per (jobId, role), as in the reference, and outlive streams; any number of streams each.
Register refuses a role that no job of the service carries as its `app` label. It accepts a job that is not
known (yet), where the reference answers 402: a consumer does not read that code, and a fault stream that
ends early stops it from opening the next one.

The cluster (an empty jobId) and jobs that are not ours are passed through, if there is an upstream.

Source: rank table contract §5.1; fault input contract §4.7; motor contract §1.3.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import grpc

from mindie_ha.channels.calls import ClientIdentity, Route, RpcContext, decode_client, peer_address
from mindie_ha.channels.config_service import INVALID_PARAMETER, OK, OUT_OF_JOBS
from mindie_ha.channels.errors import LimitReached, NotRegistered
from mindie_ha.channels.fault_signals import FaultSignal, SignalPort
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.outflow import Outflow
from mindie_ha.channels.passthrough import Passthrough, only
from mindie_ha.channels.ports import ServiceRef, TablePort
from mindie_ha.channels.rates import QueryGate
from mindie_ha.channels.registrations import Registrations
from mindie_ha.channels.signal_streams import SignalStream, SignalStreams
from mindie_ha.kit.entropy import Entropy
from mindie_ha.wire import fault_pb2

REGISTER = "/fault.Fault/Register"
SUBSCRIBE = "/fault.Fault/SubscribeFaultMsgSignal"
QUERY = "/fault.Fault/GetFaultMsgSignal"
NO_SUCH_JOB, QUERY_DONE = 402, 200
MIN_JOB_ID, MAX_JOB_ID = 8, 128

Key = tuple[str, str]


class FaultService:
    """The servicer of `fault.Fault`."""

    def __init__(
        self,
        *,
        tables: TablePort,
        mailboxes: Mailboxes,
        passthrough: Passthrough,
        streams: SignalStreams,
        outflow: Outflow,
        queries: QueryGate,
        entropy: Entropy,
        write_timeout_s: float,
    ) -> None:
        self._tables = tables
        self._mailboxes = mailboxes
        self._passthrough = passthrough
        self._streams = streams
        self._signals: SignalPort = streams.port
        self._outflow = outflow
        self._queries = queries
        self._entropy = entropy
        self._write_timeout_s = write_timeout_s
        self._registrations: Registrations[Key] = Registrations(limit=mailboxes.limits.max_registrations)
        self._open: Counter[Key] = Counter()

    def routes(self) -> Mapping[str, Route]:
        """Full method name to servicer."""
        return {REGISTER: self.register, SUBSCRIBE: self.subscribe, QUERY: self.query}

    async def register(self, request: bytes, context: RpcContext) -> None:
        """Answer code 0 unless the role is missing or wrong, or a bound holds."""
        client = await decode_client(fault_pb2.ClientInfo, request, context)
        if self._foreign(client.jobId):
            await self._passthrough.forward(REGISTER, only(request), context)
            return
        code, info = self._register(client)
        await context.write(fault_pb2.Status(code=code, info=info).SerializeToString())

    async def subscribe(self, request: bytes, context: RpcContext) -> None:
        """Tell what is wrong, if anything is, and then every change, until the client or we leave."""
        client = await decode_client(fault_pb2.ClientInfo, request, context)
        if self._foreign(client.jobId):
            await self._passthrough.forward(SUBSCRIBE, only(request), context)
            return
        key = (client.jobId, client.role)
        if key not in self._registrations:
            await context.abort(grpc.StatusCode.UNKNOWN, str(NotRegistered(*key)))
        peer_ip = peer_address(context.peer())[1]
        try:
            with (
                self._mailboxes.seats.seat(peer_ip),
                self._joined(key, context),
                self._streams.stream(client.jobId, peer_ip=peer_ip) as stream,
            ):
                await self._send(stream, context, peer_ip)
        except LimitReached as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

    async def query(self, request: bytes, context: RpcContext) -> None:
        """What is wrong now; a job without faults, or unknown, has no signal in its answer."""
        client = await decode_client(fault_pb2.ClientInfo, request, context)
        if self._foreign(client.jobId):
            await self._passthrough.forward(QUERY, only(request), context)
            return
        if not await self._queries.admit():
            await context.abort(grpc.StatusCode.UNKNOWN, "429: too many queries, ask again later")
        if client.jobId and not _is_job_id(client.jobId):
            await context.abort(
                grpc.StatusCode.UNKNOWN,
                f"409: jobId must have {MIN_JOB_ID} to {MAX_JOB_ID} characters, none of them Chinese",
            )
        result = fault_pb2.FaultQueryResult(code=QUERY_DONE, info="query success")
        subject = self._signals.subject(client.jobId, peer_address(context.peer())[1])
        nodes = self._signals.faults_of(subject) if subject is not None else ()
        if nodes:
            signal = FaultSignal(job_id=client.jobId, nodes=nodes)
            result.faultSignal.CopyFrom(signal.to_wire(self._entropy.uuid()))
        await context.write(result.SerializeToString())

    async def _send(self, stream: SignalStream, context: RpcContext, peer_ip: str) -> None:
        while (signal := await stream.next()) is not None:
            message = signal.to_wire(self._entropy.uuid()).SerializeToString()
            try:
                # Real time: a time-out of the network is never scaled.
                async with (
                    asyncio.timeout(self._write_timeout_s),
                    self._outflow.room(peer_ip, len(message)),
                ):
                    await context.write(message)
            except TimeoutError:
                await context.abort(
                    grpc.StatusCode.UNAVAILABLE,
                    f"nothing read for {self._write_timeout_s:g} s; subscribe again for the newest state",
                )
            stream.sent()

    def _register(self, client: ClientIdentity) -> tuple[int, str]:
        longest = self._mailboxes.limits.max_name_chars
        if not client.role:
            return INVALID_PARAMETER, "role is empty"
        if len(client.jobId) > longest or len(client.role) > longest:
            return INVALID_PARAMETER, f"jobId or role is longer than {longest} characters"
        if refusal := self._signals.role_refusal(client.jobId, client.role):
            return NO_SUCH_JOB, refusal
        try:
            self._registrations.add((client.jobId, client.role), in_use=self._open.__contains__)
        except LimitReached as error:
            return OUT_OF_JOBS, str(error)
        return OK, "register success"

    @contextmanager
    def _joined(self, key: Key, context: RpcContext) -> Iterator[None]:
        """Count the stream, and report it where its service is known."""
        peer, peer_ip = peer_address(context.peer())
        found = self._tables.resolve(key[0], peer_ip)
        service = found if isinstance(found, ServiceRef) else None
        self._open[key] += 1
        if service is not None:
            self._tables.subscriber_joined(service, role=key[1], peer=peer, kind="fault")
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
            if service is not None:
                self._tables.subscriber_left(service, role=key[1], peer=peer, kind="fault")

    def _foreign(self, job_id: str) -> bool:
        if not self._passthrough.configured:
            return False
        ours = self._tables.is_ours(job_id) or self._signals.subject(job_id, "") is not None
        return not job_id or not ours


def _is_job_id(text: str) -> bool:
    chinese = any("\u4e00" <= character <= "\u9fa5" for character in text)
    return MIN_JOB_ID <= len(text) <= MAX_JOB_ID and not chinese


__all__ = ["FaultService"]
