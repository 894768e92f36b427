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

import structlog

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
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy

_log = structlog.get_logger("mindie_ha.channels")


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
        delivered_digest: str | None = None,
    ) -> None:
        self.service = service
        self.target = target
        self.channel = channel
        self._attempt = attempt
        self._tools = tools
        self._box = Mailbox(delivered_digest=delivered_digest)
        self._attempts = 0
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
            attempts=self._attempts,
            last_error=self._last.reason,
            refused=self._last.kind == "refused",
        )

    def start(self) -> None:
        """Run the loop until `close`; it is started anew with the next table should it die of a bug."""
        if not self._box.closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(), name=f"deliver {self.service} to {self.target}")
            self._task.add_done_callback(self._ended)

    def offer(self, table: TableVersion) -> None:
        """Deliver `table`, unless it is older than what was offered, or there already."""
        if self._box.offer(table):
            self._attempts, self._last = 0, DELIVERED
            self._at_rest.clear()
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
            # Its exception, if any, has been logged; our own cancellation still gets through.
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while (table := await self._box.take()) is not None:
            outcome = await self._try(table)
            if outcome.kind == "delivered":
                self._box.confirm()
                self._attempts, self._last = 0, DELIVERED
                self._tools.on_receipt(self._receipt(table))
                if self._box.owed is None:
                    self._at_rest.set()
                continue
            self._attempts += 1
            self._last = outcome
            self._tools.on_problem(self._problem(table, outcome))
            if not self._box.give_back():
                continue
            if outcome.kind == "refused":
                self._at_rest.set()
            with suppress(TimeoutError):
                async with self._tools.clock.timeout(self._pause_s(outcome)):
                    await self._box.poked()

    async def _try(self, table: TableVersion) -> Outcome:
        limit_s = self._tools.settings.attempt_timeout_s
        try:
            # Real time: a time-out of the network is never scaled.
            async with asyncio.timeout(limit_s):
                return await self._attempt(table)
        except TimeoutError:
            return Outcome("failed", f"no result within {limit_s:g} s")

    def _pause_s(self, outcome: Outcome) -> float:
        settings = self._tools.settings
        if outcome.kind == "refused":
            return settings.refused_pause_s
        doublings = min(self._attempts - 1, 30)
        pause_s = min(settings.backoff_max_s, settings.backoff_first_s * 2.0**doublings)
        return self._tools.entropy.jitter(pause_s, settings.backoff_jitter)

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
            attempts=self._attempts,
            at_s=self._tools.clock.wall(),
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._box.give_back()
            self._last = Outcome("failed", f"internal error: {error!r}")
            _log.error("delivery loop died", peer=str(self.target), service=str(self.service), exc_info=error)


__all__ = ["DELIVERED", "Attempt", "Delivery", "DeliveryTools", "Outcome"]
