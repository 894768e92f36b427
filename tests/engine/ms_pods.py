"""MS programs beside the controller on virtual time: they boot, elect, subscribe and answer in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from mindie_ha.channels.errors import LimitReached, NotRegistered
from mindie_ha.sim.ms.links import LinkError, LinkTarget
from mindie_ha.sim.ms.programs import MsPrograms, program_factory
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.wire import fault_pb2

if TYPE_CHECKING:
    from .clusters import Cluster


class MailboxLink:
    """A Controller's connection to whichever controller of ours runs now, without a socket."""

    def __init__(self, cluster: Cluster, target: LinkTarget) -> None:
        self._cluster = cluster
        self._target = target

    async def connect(self, *, wait_s: float) -> None:
        del wait_s
        if not (self._cluster.runs and self._cluster.app.started.is_set()):
            raise LinkError("connect: nobody listens")

    async def register_tables(self) -> None:
        await self.connect(wait_s=0)
        self._cluster.app.outlets.mailboxes.register(self._target.job_id)

    async def tables(self) -> AsyncIterator[str]:
        job, ip = self._target.job_id, self._target.local_ip
        mailboxes = self._cluster.app.outlets.mailboxes
        try:
            with mailboxes.subscribe(job, role=self._target.role, peer=f"{ip}:40000", peer_ip=ip) as stream:
                while (table := await stream.next()) is not None:
                    yield table.text
                    stream.confirm(table)
        except (NotRegistered, LimitReached) as error:
            raise LinkError(str(error)) from error

    async def register_faults(self) -> None:
        return None

    async def faults(self) -> AsyncIterator[fault_pb2.FaultMsgSignal]:
        await asyncio.Event().wait()
        yield fault_pb2.FaultMsgSignal()

    async def close(self) -> None:
        return None


def programs_of(cluster: Cluster, settings: MsSettings) -> MsPrograms:
    """The programs of a cluster's MS pods."""
    return program_factory(
        settings,
        clock=cluster.clock,
        link_factory=lambda target: MailboxLink(cluster, target),
    )
