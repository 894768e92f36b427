"""`fault.Fault`: Register and a stream that stays open, because MS Controller blocks on both.

Registrations are per (jobId, role), as in the reference. Register asks for a role and accepts every job:
the reference answers 402 for one that it does not know, which the consumer does not read, while a fault
stream that ends early stops it from opening the next one. Nothing is sent on the stream: a consumer takes
silence as "no fault".

The cluster (an empty jobId) and jobs that are not ours are passed through, if there is an upstream.

Source: rank table contract §5.1; motor contract §1.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import grpc

from mindie_ha.channels.calls import ClientIdentity, Route, RpcContext, decode_client, peer_address
from mindie_ha.channels.config_service import INVALID_PARAMETER, OK, OUT_OF_JOBS
from mindie_ha.channels.errors import LimitReached, NotRegistered
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.passthrough import Passthrough, only
from mindie_ha.channels.ports import ServiceRef, TablePort
from mindie_ha.channels.registrations import Registrations
from mindie_ha.wire import fault_pb2

REGISTER = "/fault.Fault/Register"
SUBSCRIBE = "/fault.Fault/SubscribeFaultMsgSignal"
QUERY = "/fault.Fault/GetFaultMsgSignal"

Key = tuple[str, str]


class FaultService:
    """The servicer of `fault.Fault`."""

    def __init__(self, *, tables: TablePort, mailboxes: Mailboxes, passthrough: Passthrough) -> None:
        self._tables = tables
        self._mailboxes = mailboxes
        self._passthrough = passthrough
        self._registrations: Registrations[Key] = Registrations(limit=mailboxes.limits.max_registrations)
        self._open: Counter[Key] = Counter()

    def routes(self) -> Mapping[str, Route]:
        """Full method name to servicer."""
        return {REGISTER: self.register, SUBSCRIBE: self.subscribe, QUERY: self.query}

    async def register(self, request: bytes, context: RpcContext) -> None:
        """Answer code 0 unless the role is missing or a bound holds."""
        client = await decode_client(fault_pb2.ClientInfo, request, context)
        if self._foreign(client.jobId):
            await self._passthrough.forward(REGISTER, only(request), context)
            return
        code, info = self._register(client)
        await context.write(fault_pb2.Status(code=code, info=info).SerializeToString())

    async def subscribe(self, request: bytes, context: RpcContext) -> None:
        """Hold the stream open until the client or we leave."""
        client = await decode_client(fault_pb2.ClientInfo, request, context)
        if self._foreign(client.jobId):
            await self._passthrough.forward(SUBSCRIBE, only(request), context)
            return
        key = (client.jobId, client.role)
        if key not in self._registrations:
            await context.abort(grpc.StatusCode.UNKNOWN, str(NotRegistered(*key)))
        try:
            with self._mailboxes.seats.seat(peer_address(context.peer())[1]), self._joined(key, context):
                await self._mailboxes.closing.wait()
        except LimitReached as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

    async def query(self, request: bytes, context: RpcContext) -> None:
        """Only the upstream can answer; without one the call is UNIMPLEMENTED, with the reason."""
        await self._passthrough.forward(QUERY, only(request), context)

    def _register(self, client: ClientIdentity) -> tuple[int, str]:
        longest = self._mailboxes.limits.max_name_chars
        if not client.role:
            return INVALID_PARAMETER, "role is empty"
        if len(client.jobId) > longest or len(client.role) > longest:
            return INVALID_PARAMETER, f"jobId or role is longer than {longest} characters"
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
        return self._passthrough.configured and not self._tables.is_ours(job_id)


__all__ = ["FaultService"]
