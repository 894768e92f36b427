"""The desk where public faults are reported: ConfigMap, gRPC and HTTP end here, with one set of answers.

A report is an edge that nobody repeats, so it is answered only after the ledger holds it. The state is read
from the ledger each time and written by compare-and-swap: no second copy can drift, and whoever takes over
goes on where we stopped. Reports are taken one after the other; those that wait are bounded.

A ConfigMap is read once per content, also across our restarts. One that comes too fast for its resource is
read later instead of being lost. What ends by itself is swept when its time comes.

Source: fault input contract §3; design: reports are edges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from mindie_ha.channels.ports import ReportAnswer, ReportCode
from mindie_ha.cluster.public_reports import PublicReport
from mindie_ha.cluster.writer import Written
from mindie_ha.engine.looks import Look
from mindie_ha.intake import bodies, public_faults, public_messages
from mindie_ha.intake.public_codes import PublicCodes
from mindie_ha.intake.public_faults import PublicFaults
from mindie_ha.intake.public_messages import Message
from mindie_ha.intake.public_rates import Rates
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import Conflict, InputError, MindieHaError
from mindie_ha.model.ids import PUBLIC_SWEEP, ObjectKey, ScopeKey
from mindie_ha.model.public_faults import PublicFaultLedger

ANSWER_TIMEOUT_S = 15.0  # longer than one write with its retries usually takes
MAX_WAITING = 256
MAX_CONFLICTS = 5
CONFIG_MAP, GRPC, HTTP = "configmap", "grpc", "http"

Change = Callable[[PublicFaults], PublicFaults]


class Memory(Protocol):
    """What the store knows of public faults."""

    def public_ledger(self) -> PublicFaultLedger:
        """All of them."""
        ...

    def public_report(self, key: ObjectKey) -> PublicReport | None:
        """The message in a ConfigMap."""
        ...

    def assume_public(self, ledger: PublicFaultLedger) -> None:
        """Keep a ledger that must not be written."""
        ...

    def serials(self) -> Mapping[str, str]:
        """Nodes by serial number."""
        ...


class Paper(Protocol):
    """Writes the ledger."""

    async def save_public(self, ledger: PublicFaultLedger) -> Written:
        """Compare and swap; Conflict where somebody else wrote first."""
        ...


@dataclass(slots=True)
class _Kept:
    """What one change did."""

    no_room: int = 0


class PublicReportDesk:
    """Takes reports; implements the channels' `FaultPort` and one kind of scope of the work queue."""

    def __init__(
        self, *, memory: Memory, paper: Paper, codes: PublicCodes, clock: Clock, log: Log, metrics: Metrics
    ) -> None:
        self._memory = memory
        self._paper = paper
        self._codes = codes
        self._clock = clock
        self._log = log
        self._metrics = metrics
        self._rates = Rates.full(codes.resources, now_s=clock.monotonic())
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def report(self, body: Mapping[str, object], *, entry: str) -> ReportAnswer:
        """Take one message; what it says is remembered when this returns with code 0."""
        answer = await self._report(body, entry=entry, then=_unchanged)
        self._count(entry, answer)
        return answer

    async def reconcile(self, scope: ScopeKey) -> Look:
        """Read one ConfigMap, or sweep."""
        if scope == PUBLIC_SWEEP:
            return await self._sweep()
        key = ObjectKey(scope.namespace, scope.name)
        report = self._memory.public_report(key)
        if report is None:
            return await self._forget(str(key))
        if self._memory.public_ledger().read.get(str(key)) == report.mark:
            return Look()
        return await self._read(report)

    async def _read(self, report: PublicReport) -> Look:
        where = f"ConfigMap {report.key}"

        def then(state: PublicFaults) -> PublicFaults:
            return public_faults.answered(state, str(report.key), report.mark)

        try:
            body = bodies.parse_object(report.text, where=where)
        except InputError as error:
            self._count(CONFIG_MAP, ReportAnswer(ReportCode.INVALID, str(error)))
            self._log.warning("public fault ConfigMap refused", config_map=str(report.key), reason=str(error))
            return Look()
        resource = public_messages.resource_of(body)
        wait_s = self._rates.wait_s(resource, now_s=self._clock.monotonic())
        if wait_s:
            return Look(wake_at_s=self._clock.wall() + wait_s)
        answer = await self._report(body, entry=CONFIG_MAP, then=then)
        self._count(CONFIG_MAP, answer)
        if answer.code is not ReportCode.OK or answer.left_out:
            reasons = "; ".join(answer.left_out[:3]) or answer.info
            self._log.warning("public fault ConfigMap", config_map=str(report.key), reason=reasons)
        return Look(failed=answer.code is ReportCode.NOT_KEPT)

    async def _report(self, body: Mapping[str, object], *, entry: str, then: Change) -> ReportAnswer:
        resource = public_messages.resource_of(body)
        self._rates, allowed = self._rates.take(resource, now_s=self._clock.monotonic())
        if not allowed:
            told = "is not configured" if resource not in self._codes.resources else "reports too often"
            return ReportAnswer(ReportCode.TOO_MANY, f"resource {resource[:64]!r} {told}")
        try:
            message = public_messages.read(body, codes=self._codes, serials=self._memory.serials(), where="")
        except InputError as error:
            return ReportAnswer(ReportCode.INVALID, str(error))
        kept = _Kept()

        def change(state: PublicFaults) -> PublicFaults:
            applied = public_faults.apply(state, message, now_s=self._clock.wall())
            kept.no_room = applied.no_room
            return then(applied.state)

        refused = await self._keep(change)
        if refused:
            return ReportAnswer(ReportCode.NOT_KEPT, refused)
        self._log.info("public faults reported", entry=entry, message=message.id, resource=resource)
        return _answer(message, kept.no_room)

    async def _keep(self, change: Change) -> str:
        """Change the ledger; empty when it stands, else why it does not."""
        if self._waiting >= MAX_WAITING:
            return f"{MAX_WAITING} reports wait already; send it again later"
        self._waiting += 1
        try:
            async with self._clock.timeout(ANSWER_TIMEOUT_S), self._turn:
                await self._write(change)
        except TimeoutError:
            return f"not remembered within {ANSWER_TIMEOUT_S:g} s; send it again"
        except MindieHaError as error:
            return f"not remembered: {error}"
        finally:
            self._waiting -= 1
        return ""

    async def _write(self, change: Change) -> None:
        for attempt in range(MAX_CONFLICTS + 1):
            present = self._memory.public_ledger()
            wanted = change(PublicFaults.of(present)).ledger()
            if wanted == present:
                return
            try:
                written = await self._paper.save_public(wanted)
            except Conflict:
                if attempt == MAX_CONFLICTS:
                    raise
                continue
            if written is Written.DRY_RUN:
                self._memory.assume_public(wanted)
            return

    async def _forget(self, name: str) -> Look:
        refused = await self._keep(lambda state: public_faults.forgotten(state, name))
        return Look(failed=bool(refused))

    async def _sweep(self) -> Look:
        refused = await self._keep(lambda state: public_faults.expire(state, now_s=self._clock.wall()))
        if refused:
            self._log.warning("public faults that ended are still written down", reason=refused)
            return Look(failed=True)
        return Look(wake_at_s=PublicFaults.of(self._memory.public_ledger()).next_end_s())

    def _count(self, entry: str, answer: ReportAnswer) -> None:
        self._metrics.public_reports.labels(entry, answer.code.name.lower()).inc()


def _answer(message: Message, no_room: int) -> ReportAnswer:
    left_out = tuple(str(error) for error in message.left_out)
    total = len(message.faults) + len(left_out)
    if no_room:
        info = f"{no_room} reports found no room; recover old faults, then send it again"
        return ReportAnswer(ReportCode.NOT_KEPT, info, accepted=len(message.faults), left_out=left_out)
    info = "public fault received"
    if left_out:
        info = f"{len(message.faults)} of {total} faults taken; left out: {'; '.join(left_out[:5])}"
    return ReportAnswer(ReportCode.OK, info, accepted=len(message.faults), left_out=left_out)


def _unchanged(state: PublicFaults) -> PublicFaults:
    return state


__all__ = ["CONFIG_MAP", "GRPC", "HTTP", "PublicReportDesk"]
