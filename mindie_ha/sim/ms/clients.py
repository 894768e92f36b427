"""The Controller's side of the table server: connect, Register, Subscribe, and start over.

Rules of the real client (source: motor contract §1.3): 60 attempts to connect, then it gives up for good;
Register is repeated each second, 300 times, then an alarm; whatever ends a stream, cleanly or not, starts
the whole Register + Subscribe cycle again; table stream and fault stream are two such cycles side by side.
With `joins_new_streams` it shows the known defect: after the first end the client blocks on every stream it
opens, so the other one stays down until that one ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.ms.links import ControllerLink, LinkError
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.wire import fault_pb2

REGISTER_FAILED = "REGISTER_FAILED"
RANKTABLE_SUBSCRIBE_FAILED = "RANKTABLE_SUBSCRIBE_FAILED"
FAULT_SUBSCRIBE_FAILED = "FAULT_SUBSCRIBE_FAILED"


class ClusterClient:
    """Keeps both streams of one leading Controller; `run` ends only when it gave up connecting."""

    def __init__(
        self,
        link: ControllerLink,
        *,
        clock: Clock,
        settings: MsSettings,
        on_table: Callable[[str], None],
        on_fault: Callable[[fault_pb2.FaultMsgSignal], None],
    ) -> None:
        self._link = link
        self._clock = clock
        self._settings = settings
        self._on_table = on_table
        self._on_fault = on_fault
        self.alarms: list[str] = []
        """Raised and not cleared."""
        self.errors = 0
        """Failed calls and streams that ended with an error, so far."""
        self.last_error = ""
        self.subscriptions = 0
        """Times that the table stream was opened."""

    async def run(self) -> None:
        """Connect and keep both streams for ever; returns after the last failed attempt to connect."""
        try:
            if await self._connect():
                await self._keep_streams()
        finally:
            await self._link.close()

    async def _connect(self) -> bool:
        for _ in range(self._settings.connect_attempts):
            try:
                await self._link.connect(wait_s=self._settings.connect_wait_s)
            except LinkError as error:
                self._failed(error)
                await self._clock.sleep(self._settings.connect_pause_s)
            else:
                return True
        self.alarms.append(REGISTER_FAILED)
        return False

    async def _keep_streams(self) -> None:
        cycles = {"tables": self._table_cycle, "faults": self._fault_cycle}
        async with asyncio.TaskGroup() as group:
            running = {name: group.create_task(cycle(), name=name) for name, cycle in cycles.items()}
            while True:
                await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
                for name, cycle in cycles.items():
                    if running[name].done():
                        running[name] = group.create_task(cycle(), name=name)
                        if self._settings.joins_new_streams:
                            await asyncio.wait([running[name]])

    async def _table_cycle(self) -> None:
        if not await self._register(self._link.register_tables, RANKTABLE_SUBSCRIBE_FAILED):
            return
        self.subscriptions += 1
        try:
            async for text in self._link.tables():
                self._on_table(text)
        except LinkError as error:
            self._failed(error)
        # the real loop spins here; a yield of a second keeps a refusing server from being flooded
        await self._clock.sleep(self._settings.register_pause_s)

    async def _fault_cycle(self) -> None:
        if not await self._register(self._link.register_faults, FAULT_SUBSCRIBE_FAILED):
            return
        try:
            async for signal in self._link.faults():
                self._on_fault(signal)
        except LinkError as error:
            self._failed(error)
        await self._clock.sleep(self._settings.register_pause_s)

    async def _register(self, call: Callable[[], Awaitable[None]], alarm: str) -> bool:
        for _ in range(self._settings.register_attempts):
            try:
                await call()
            except LinkError as error:
                self._failed(error)
                await self._clock.sleep(self._settings.register_pause_s)
                continue
            if alarm in self.alarms:
                self.alarms.remove(alarm)
            return True
        if alarm not in self.alarms:
            self.alarms.append(alarm)
        return False

    def _failed(self, error: LinkError) -> None:
        self.errors += 1
        self.last_error = str(error)


__all__ = ["FAULT_SUBSCRIBE_FAILED", "RANKTABLE_SUBSCRIBE_FAILED", "REGISTER_FAILED", "ClusterClient"]
