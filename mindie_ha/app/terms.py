"""What runs only while we lead, and in which order it begins and ends.

Begin: the ledgers and pods as the API server holds them now, because what a predecessor wrote last may not
have come by watch yet, and a table must never go back; then the channels; then the label that brings clients;
then the engine. Open recoveries go on where their ledgers say, with what is left of their deadlines.

End: the engine (nothing new is decided), then streams and deliveries. The next term, and giving up the Lease,
wait for that: what still ran could otherwise write in the name of a term that it does not belong to.
"""

from __future__ import annotations

import asyncio

from mindie_ha.app.core import Core
from mindie_ha.app.edges import Edges
from mindie_ha.app.parts import Parts
from mindie_ha.channels.connection_guard import PortLimits
from mindie_ha.cluster.leader_labels import LeaderLabel
from mindie_ha.cluster.sources import LEDGERS, PODS
from mindie_ha.cluster.takeovers import catch_up
from mindie_ha.kit.tasks import OnEnd
from mindie_ha.model.errors import ClusterError, InputError, MindieHaError
from mindie_ha.model.ids import node_key

AGAIN_S = 0.5  # between attempts to read what a predecessor left
TASKS = ("engine", "leader-label", "roles", "events")


class Terms:
    """Begins and ends what leads; one term at a time."""

    def __init__(self, core: Core, parts: Parts, edges: Edges) -> None:
        self.begun = asyncio.Event()  # the engine works, clients are served
        self.grpc_port = 0
        self._core = core
        self._parts = parts
        self._serve = edges.serve
        self.label: LeaderLabel | None = None
        if edges.pod is not None and not core.settings.dry_run:
            self.label = LeaderLabel(
                edges.pod, client=core.client, writer=parts.writer, clock=core.clock, log=core.log
            )

    async def begin(self) -> None:
        """See the module. Raises MindieHaError where the ports cannot be had."""
        core, parts = self._core, self._parts
        await self._caught_up()
        parts.outlets.begin()
        if self._serve:
            self.grpc_port = await parts.outlets.start()
            limits = PortLimits(per_address=core.settings.grpc.max_connections_per_address)
            parts.guard.watch(self.grpc_port, limits)
        if self.label is not None:
            core.supervisor.start("leader-label", self.label.run)
        core.supervisor.start("events", parts.events.run)
        core.supervisor.start("roles", parts.roles.run)
        core.supervisor.start("engine", parts.engine.run, on_end=OnEnd.FAIL)
        parts.engine.touch(core.store.scopes())
        parts.engine.touch(node_key(name) for name in core.store.node_names())
        self.begun.set()

    async def silence(self) -> None:
        """End everything that decides and writes."""
        self.begun.clear()
        for name in TASKS:
            await self._core.supervisor.stop(name)

    async def end(self) -> None:
        """End the rest. Raises MindieHaError where something does not end: then the process has to."""
        await self._parts.outlets.stop()
        left = sorted(set(TASKS) & set(self._core.supervisor.names))
        if left:
            raise MindieHaError(f"tasks of a term that is over do not end: {', '.join(left)}")

    async def _caught_up(self) -> None:
        """Whoever leads can read, or loses its lead: then this is cancelled."""
        core = self._core
        for source in (LEDGERS, PODS):
            while True:
                try:
                    await catch_up(
                        source,
                        client=core.client,
                        store=core.store,
                        page_size=core.settings.cluster.page_size,
                    )
                    break
                except (ClusterError, InputError) as error:
                    core.log.warning("cannot read what was left", source=source.name, error=str(error))
                    await core.clock.sleep(AGAIN_S)


__all__ = ["Terms"]
