"""`config.Config`: the stream on which MS Controller gets its rank tables.

Messages, method names, status codes and texts are those of the wire; the session rules are ours: Register
answers 0 and ends nobody's stream, a subscriber gets the current table at once and after that the newest
one, and a write that fails ends the stream, so that the client comes back and is served anew.

A job that is not ours is passed through, if there is an upstream. Should it become ours while its stream is
open, that stream is ended: the client registers again, with us.

Source: rank table contract §4.2, §4.3, §9.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import grpc

from mindie_ha.channels.calls import Route, RpcContext, decode_client, peer_address
from mindie_ha.channels.errors import LimitReached, NotRegistered
from mindie_ha.channels.mailboxes import Mailboxes, Subscription
from mindie_ha.channels.outflow import Outflow
from mindie_ha.channels.passthrough import Passthrough, only
from mindie_ha.channels.ports import TablePort, TableVersion
from mindie_ha.wire import config_pb2

REGISTER = "/config.Config/Register"
SUBSCRIBE = "/config.Config/SubscribeRankTable"

# Source: rank table contract §4.4.
OK, INVALID_PARAMETER, OUT_OF_JOBS = 0, 409, 500


class ConfigService:
    """The servicer of `config.Config`."""

    def __init__(
        self,
        *,
        tables: TablePort,
        mailboxes: Mailboxes,
        passthrough: Passthrough,
        outflow: Outflow,
        write_timeout_s: float,
    ) -> None:
        self._tables = tables
        self._mailboxes = mailboxes
        self._passthrough = passthrough
        self._outflow = outflow
        self._write_timeout_s = write_timeout_s

    def routes(self) -> Mapping[str, Route]:
        """Full method name to servicer."""
        return {REGISTER: self.register, SUBSCRIBE: self.subscribe}

    async def register(self, request: bytes, context: RpcContext) -> None:
        """Answer code 0; only the bounds on memory can say otherwise."""
        client = await decode_client(config_pb2.ClientInfo, request, context)
        if self._foreign(client.jobId):
            await self._passthrough.forward(REGISTER, only(request), context)
            return
        code, info = OK, "register success"
        longest = self._mailboxes.limits.max_name_chars
        if len(client.jobId) > longest or len(client.role) > longest:
            code, info = INVALID_PARAMETER, f"jobId or role is longer than {longest} characters"
        else:
            try:
                self._mailboxes.register(client.jobId)
            except LimitReached as error:
                code, info = OUT_OF_JOBS, str(error)
        await context.write(config_pb2.Status(code=code, info=info).SerializeToString())

    async def subscribe(self, request: bytes, context: RpcContext) -> None:
        """Send the current table, then every newer one, until the client or we leave."""
        client = await decode_client(config_pb2.ClientInfo, request, context)
        if self._foreign(client.jobId):
            with self._mailboxes.foreign(client.jobId) as became_ours:
                await self._passthrough.forward(SUBSCRIBE, only(request), context, until=became_ours)
            return
        peer, peer_ip = peer_address(context.peer())
        try:
            with self._mailboxes.subscribe(
                client.jobId, role=client.role, peer=peer, peer_ip=peer_ip
            ) as subscription:
                await self._send_tables(subscription, context)
        except NotRegistered as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except LimitReached as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

    async def _send_tables(self, subscription: Subscription, context: RpcContext) -> None:
        while (table := await subscription.next()) is not None:
            try:
                # Real time: a time-out of the network is never scaled.
                async with (
                    asyncio.timeout(self._write_timeout_s),
                    self._outflow.room(subscription.peer_ip, len(table.text)),
                ):
                    await context.write(_wire(table))
            except TimeoutError:
                await context.abort(
                    grpc.StatusCode.UNAVAILABLE,
                    f"nothing read for {self._write_timeout_s:g} s; subscribe again for the newest table",
                )
            subscription.confirm(table)

    def _foreign(self, job_id: str) -> bool:
        return self._passthrough.configured and not self._tables.is_ours(job_id)


def _wire(table: TableVersion) -> bytes:
    """A function, so that of a table on its way to a slow reader no copy but the bytes is held."""
    return config_pb2.RankTableStream(jobId=table.service.job_id, rankTable=table.text).SerializeToString()


__all__ = ["ConfigService"]
