"""The other side of the ports, kept small: an owner of tables, a ConfigMap API, a relay that cuts lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from mindie_ha.channels.deliveries import DeliveryTools
from mindie_ha.channels.fault_signals import CLUSTER, FaultSubject, NodeFaults
from mindie_ha.channels.ports import (
    DeliveryProblem,
    DeliveryReceipt,
    ReportAnswer,
    ReportCode,
    ServiceRef,
    SubscriberKind,
    TableVersion,
    Unresolved,
    WriteResult,
)
from mindie_ha.channels.settings import DeliverySettings
from mindie_ha.kit.clock import Clock, LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import Supervisor

CHAT = ServiceRef("mindie", "chat")


def table(generation: int, *, service: ServiceRef = CHAT, digest: str = "", text: str = "") -> TableVersion:
    """A table whose text tells its generation."""
    return TableVersion(
        service=service,
        generation=generation,
        digest=digest or f"sha256:{generation}",
        text=text or f'{{"generation":{generation}}}',
        at_s=float(generation),
    )


@dataclass
class FakeTables:
    """Owns the tables of a few services and notes what the channels report."""

    pods: dict[str, ServiceRef] = field(default_factory=dict)
    services: set[ServiceRef] = field(default_factory=lambda: {CHAT})
    tables: dict[ServiceRef, TableVersion] = field(default_factory=dict)
    receipts: list[DeliveryReceipt] = field(default_factory=list)
    joined: list[tuple[ServiceRef, str, SubscriberKind]] = field(default_factory=list)
    left: list[tuple[ServiceRef, str, SubscriberKind]] = field(default_factory=list)

    def resolve(self, job_id: str, peer_ip: str) -> ServiceRef | Unresolved:
        found = [service for service in self.services if service.job_id == job_id]
        if len(found) == 1:
            return found[0]
        if peer_ip in self.pods:
            return self.pods[peer_ip]
        return Unresolved(f"{len(found)} services carry jobID {job_id}, and no pod has address {peer_ip}")

    def current(self, service: ServiceRef) -> TableVersion | None:
        return self.tables.get(service)

    def is_ours(self, job_id: str) -> bool:
        return any(service.job_id == job_id for service in self.services)

    def on_receipt(self, receipt: DeliveryReceipt) -> None:
        self.receipts.append(receipt)

    def subscriber_joined(self, service: ServiceRef, *, role: str, peer: str, kind: SubscriberKind) -> None:
        self.joined.append((service, role, kind))

    def subscriber_left(self, service: ServiceRef, *, role: str, peer: str, kind: SubscriberKind) -> None:
        self.left.append((service, role, kind))


@dataclass
class FakeSignals:
    """Knows the faults of some subjects, and one role that may ask."""

    tables: FakeTables
    faults: dict[FaultSubject, tuple[NodeFaults, ...]] = field(default_factory=dict)
    roles: set[str] = field(default_factory=lambda: {"mindie-ms-controller"})
    asked: int = 0

    def subject(self, job_id: str, peer_ip: str) -> FaultSubject | None:
        if not job_id:
            return CLUSTER
        found = self.tables.resolve(job_id, peer_ip)
        return FaultSubject("service", str(found)) if isinstance(found, ServiceRef) else None

    def role_refusal(self, job_id: str, role: str) -> str:
        return "" if not self.tables.is_ours(job_id) or role in self.roles else f"no job with app={role}"

    def faults_of(self, subject: FaultSubject) -> tuple[NodeFaults, ...]:
        self.asked += 1
        return self.faults.get(subject, ())


@dataclass
class FakeReports:
    """Takes every report and answers as told."""

    answer: ReportAnswer = field(default_factory=lambda: ReportAnswer(ReportCode.OK, "received", accepted=1))
    taken: list[tuple[Mapping[str, object], str]] = field(default_factory=list)

    async def report(self, body: Mapping[str, object], *, entry: str) -> ReportAnswer:
        self.taken.append((body, entry))
        return self.answer


@dataclass
class FakeConfigMaps:
    """A ConfigMap API that can fail or hang."""

    results: list[WriteResult] = field(default_factory=list)
    hangs: bool = False
    written: list[tuple[str, str, str]] = field(default_factory=list)

    async def write_table(self, namespace: str, name: str, *, key: str, text: str) -> WriteResult:
        if self.hangs:
            await asyncio.Event().wait()
        result = self.results.pop(0) if self.results else WriteResult("written")
        if result.outcome == "written":
            self.written.append((f"{namespace}/{name}", key, text))
        return result


def supervisor(clock: Clock) -> Supervisor:
    return Supervisor(clock=clock, entropy=Entropy(1), log=silent_log(), metrics=Metrics())


def tools(
    clock: Clock,
    *,
    receipts: list[DeliveryReceipt] | None = None,
    problems: list[DeliveryProblem] | None = None,
    settings: DeliverySettings | None = None,
) -> DeliveryTools:
    """What delivery loops share, noting receipts and problems in the given lists."""
    return DeliveryTools(
        clock=clock,
        entropy=Entropy(1),
        supervisor=supervisor(clock),
        settings=settings or DeliverySettings(),
        on_receipt=(receipts if receipts is not None else []).append,
        on_problem=(problems if problems is not None else []).append,
    )


async def eventually(condition: Callable[[], object], *, within_s: float = 3.0) -> None:
    """Wait until `condition` holds; fails the test after `within_s`."""
    clock = LoopClock()
    async with clock.timeout(within_s):
        while not condition():
            await clock.sleep(0.005)


class Line:
    """A TCP line to a server; `cut` resets every connection without a word."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._swallows = asyncio.Event()
        self.cut_after_bytes = 0
        self.port = 0

    def lead_to(self, server_port: int) -> None:
        """New connections go there."""
        self._server_port = server_port

    def swallow(self) -> None:
        """Carry nothing any more, and say nothing about it."""
        self._swallows.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._writers |= {writer, far_writer}
        with suppress(ConnectionError):
            await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer, back=True))

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool = False
    ) -> None:
        carried = 0
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if self._swallows.is_set():
                    await asyncio.Event().wait()
                carried += len(data)
                if back and 0 < self.cut_after_bytes < carried:
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@asynccontextmanager
async def line_to(server_port: int) -> AsyncIterator[Line]:
    """A line on a free port of the loopback."""
    line = Line(server_port)
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        line.cut()
        await server.wait_closed()
