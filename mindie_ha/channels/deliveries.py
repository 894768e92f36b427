"""One latest-value delivery loop per destination.

The loop offers the newest table until the destination has it or a newer one replaces it, however long that
takes: a receiver that comes up late gets the current table and only that. Failures back off, doubling with
jitter; a refusal waits for the next table, or a long pause. A new table ends any pause at once. Each
destination has its own loop, so a dead one never delays another.

What an attempt is, is injected: HTTP and ConfigMap differ in nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from mindie_ha.channels.latest_values import Mailbox
from mindie_ha.channels.ports import (
    ChannelName,
    DeliveryProblem,
    DeliveryReceipt,
    Owed,
    ProblemListener,
    ServiceRef,
    TableVersion,
    Target,
)
from mindie_ha.channels.settings import DeliverySettings
from mindie_ha.kit.backoff import Backoff
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.tasks import Supervisor


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt came to; `reason` is a sentence for people."""

    kind: Literal["delivered", "failed", "refused"]
    reason: str = ""


DELIVERED = Outcome("delivered")
Attempt = Callable[[TableVersion], Awaitable[Outcome]]
"""Tries once; maps every error of its transport to an Outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTools:
    """What every delivery loop shares."""

    clock: Clock
    entropy: Entropy
    supervisor: Supervisor
    settings: DeliverySettings
    on_receipt: Callable[[DeliveryReceipt], None]
    on_problem: ProblemListener


class Delivery:
    """The loop of one service and one destination; `start` it, `close` it."""

    def __init__(
        self,
        service: ServiceRef,
        target: Target,
        *,
        channel: ChannelName,
        attempt: Attempt,
        tools: DeliveryTools,
    ) -> None:
        self.service = service
        self.target = target
        self.channel = channel
        self._attempt = attempt
        self._tools = tools
        self._box: Mailbox[TableVersion] = Mailbox()
        self._backoff = Backoff(
            entropy=tools.entropy,
            first_s=tools.settings.backoff_first_s,
            max_s=tools.settings.backoff_max_s,
            share=tools.settings.backoff_jitter,
        )
        self._last = DELIVERED
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._task: asyncio.Task[None] | None = None

    @property
    def owed(self) -> Owed | None:
        """What the destination has not got yet."""
        table = self._box.owed
        if table is None:
            return None
        return Owed(
            destination=self.target,
            generation=table.generation,
            digest=table.digest,
            attempts=self._backoff.failures,
            last_error=self._last.reason,
            refused=self._last.kind == "refused",
        )

    def start(self) -> None:
        """Run the loop until `close`; a second call does nothing."""
        if not self._box.closed and self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"deliver {self.service} to {self.target}")

    def offer(self, table: TableVersion) -> None:
        """Deliver `table`, unless it is older than what was offered, or there already."""
        if self._box.offer(table):
            self._at_rest.clear()
            if self._last.kind == "refused":
                self._last = DELIVERED
        elif self._box.owed is None:
            self._at_rest.set()
        self.start()

    def repeat(self, table: TableVersion) -> None:
        """Deliver `table` once more even if it is there already."""
        self._box.reset()
        self.offer(table)

    async def at_rest(self) -> None:
        """Wait until nothing is owed, or what is owed was refused."""
        await self._at_rest.wait()

    def stop(self) -> None:
        """Stop at once, without waiting for the attempt in progress; nothing is owed any more."""
        self._box.close()
        self._at_rest.set()
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop; an attempt in progress is cancelled and awaited."""
        self.stop()
        if self._task is not None:
            # Gathered, so that its cancellation is not taken for ours.
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while (table := await self._box.take()) is not None:
            crash = await self._tools.supervisor.contain("delivery", self._try(table))
            self._last = crash.value or Outcome("failed", f"internal error: {crash.error!r}")
            if self._last.kind == "delivered":
                self._delivered(table)
            else:
                await self._not_delivered(table, self._last)

    def _delivered(self, table: TableVersion) -> None:
        handed_over = self._box.confirm() or table
        self._backoff.reset()
        self._tools.on_receipt(self._receipt(handed_over))
        if self._box.owed is None:
            self._at_rest.set()

    async def _not_delivered(self, table: TableVersion, outcome: Outcome) -> None:
        """Report, then pause; a newer table ends the pause, or forbids it if it is there already."""
        backoff_s = self._backoff.next_s()
        self._tools.on_problem(self._problem(table, outcome))
        if not self._box.give_back():
            return
        if outcome.kind == "refused":
            self._at_rest.set()
        pause_s = self._tools.settings.refused_pause_s if outcome.kind == "refused" else backoff_s
        with suppress(TimeoutError):
            async with self._tools.clock.timeout(pause_s):
                await self._box.poked()

    async def _try(self, table: TableVersion) -> Outcome:
        limit_s = self._tools.settings.attempt_timeout_s
        try:
            # Real time: a time-out of the network is never scaled.
            async with asyncio.timeout(limit_s):
                return await self._attempt(table)
        except TimeoutError:
            return Outcome("failed", f"no result within {limit_s:g} s")

    def _receipt(self, table: TableVersion) -> DeliveryReceipt:
        return DeliveryReceipt(
            service=table.service,
            generation=table.generation,
            digest=table.digest,
            peer=str(self.target),
            channel=self.channel,
            at_s=self._tools.clock.wall(),
        )

    def _problem(self, table: TableVersion, outcome: Outcome) -> DeliveryProblem:
        return DeliveryProblem(
            service=table.service,
            generation=table.generation,
            digest=table.digest,
            peer=str(self.target),
            channel=self.channel,
            reason=outcome.reason,
            refused=outcome.kind == "refused",
            attempts=self._backoff.failures,
            at_s=self._tools.clock.wall(),
        )


__all__ = ["DELIVERED", "Attempt", "Delivery", "DeliveryTools", "Outcome"]
