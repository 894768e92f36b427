"""How the Controllers of a simulated history reach the tables: no socket, the same rules.

What gRPC adds (bytes on a wire) is left out; registrations, mailboxes, replay and confirmation are those of
the product. A link lives as long as the controller process that it was opened to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from mindie_ha.channels.errors import LimitReached, NotRegistered
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.engine.outlets import Outlets
from mindie_ha.sim.ms.links import LinkError, LinkTarget
from mindie_ha.wire import fault_pb2

PORT = 40000
Receipt = Callable[[str, str, str], None]  # address of the peer, jobID, text


class Server:
    """What one controller process offers; `gone` when it died."""

    def __init__(self, outlets: Outlets) -> None:
        self._outlets = outlets
        self.gone = asyncio.Event()

    @property
    def mailboxes(self) -> Mailboxes:
        """Those of the time it leads now."""
        return self._outlets.mailboxes

    def die(self) -> None:
        """Every stream breaks."""
        self.gone.set()
        self.mailboxes.close()


class MailboxLink:
    """A `ControllerLink` straight into the mailboxes of whoever serves now."""

    def __init__(
        self, target: LinkTarget, *, serving: Callable[[], Server | None], received: Receipt
    ) -> None:
        self._target = target
        self._serving = serving
        self._received = received

    async def connect(self, *, wait_s: float) -> None:  # noqa: ARG002 - refused at once, as by a dead port
        """Reach the server; LinkError where none serves."""
        self._server()

    async def register_tables(self) -> None:
        """`config.Config/Register`."""
        try:
            self._server().mailboxes.register(self._target.job_id)
        except LimitReached as error:
            raise LinkError(str(error)) from error

    async def tables(self) -> AsyncIterator[str]:
        """`config.Config/SubscribeRankTable`."""
        server, ip, job_id = self._server(), self._target.local_ip, self._target.job_id
        try:
            with server.mailboxes.subscribe(
                job_id, role=self._target.role, peer=f"{ip}:{PORT}", peer_ip=ip
            ) as subscription:
                while (table := await subscription.next()) is not None:
                    self._received(ip, job_id, table.text)
                    yield table.text
                    subscription.confirm(table)
        except (NotRegistered, LimitReached) as error:
            raise LinkError(str(error)) from error
        raise LinkError("the stream ended")

    async def register_faults(self) -> None:
        """`fault.Fault/Register`."""
        self._server()

    async def faults(self) -> AsyncIterator[fault_pb2.FaultMsgSignal]:
        """`fault.Fault/SubscribeFaultMsgSignal`: nothing comes, until the stream breaks."""
        await self._server().gone.wait()
        raise LinkError("the stream ended")
        yield fault_pb2.FaultMsgSignal()

    async def close(self) -> None:
        """Nothing is kept between calls."""

    def _server(self) -> Server:
        server = self._serving()
        if server is None or server.gone.is_set():
            raise LinkError("nobody listens")
        return server


__all__ = ["MailboxLink", "Receipt", "Server"]
