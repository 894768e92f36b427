"""MS Controller: boots from the ConfigMap, then lives from what is pushed to it.

Order of a life: boot (blocks on the mounted table), ready, wait for the lock, then as leader: the cluster
client (only if both MINDX_TASK_ID and MINDX_SERVER_IP are set), the table loop, the Coordinator sync. A
pushed text overwrites the table file at once and unchecked; the table loop reads the file every 5 s and
applies the loader's rules. A standby is ready too and connects to nobody.

Everything received and every change of state is kept for judges: `received`, `applied`, `signals`.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.actors.programs import PodSandbox
from mindie_ha.sim.ms import boots
from mindie_ha.sim.ms.clients import ClusterClient
from mindie_ha.sim.ms.links import LinkFactory, LinkTarget
from mindie_ha.sim.ms.loaders import Instance, Load, load
from mindie_ha.sim.ms.probes import controller_site
from mindie_ha.sim.ms.services import MsService
from mindie_ha.sim.ms.settings import MsSettings
from mindie_ha.wire import fault_pb2

ROLE = "mindie-ms-controller"
_KEPT_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class ReceivedTable:
    """One message of the table stream. `at_s` is monotonic time of the injected clock."""

    at_s: float
    wall_s: float
    text: str
    digest: str
    """SHA-256 of the text as received, hexadecimal."""


@dataclass(frozen=True, slots=True)
class AppliedTable:
    """What a reading of the table file did; only readings that found a new text are recorded."""

    at_s: float
    digest: str
    load: Load
    removed: tuple[str, ...]
    """IPs of server pods that the Controller dropped."""
    added: tuple[str, ...]


class MsController:
    """The program of one Controller pod."""

    def __init__(
        self,
        sandbox: PodSandbox,
        *,
        clock: Clock,
        settings: MsSettings,
        service: MsService,
        link_factory: LinkFactory,
    ) -> None:
        self.sandbox = sandbox
        self._clock = clock
        self._settings = settings
        self._service = service
        self._link_factory = link_factory
        self._first_table = asyncio.Event()
        self.received: list[ReceivedTable] = []
        self.applied: list[AppliedTable] = []
        self.signals: list[fault_pb2.FaultMsgSignal] = []
        self.client: ClusterClient | None = None
        self.table = ""
        """The table file: what boot copied, then what was pushed last."""
        self.instances: tuple[Instance, ...] = ()
        self.coordinators: tuple[str, ...] = ()
        self.booted = False
        self.running = False

    @property
    def leads(self) -> bool:
        """Whether this replica is the active one."""
        return self._service.controllers.leader == self.sandbox.uid

    async def run(self) -> int:
        """One life of the pod; ends by cancellation, or with 255 when the boot table is not for this pod."""
        election = self._service.controllers
        election.join(self.sandbox.uid)
        self.running = True
        try:
            self.table = await boots.boot(self.sandbox, clock=self._clock, poll_s=self._settings.boot_poll_s)
            self.booted = True
            async with controller_site(self.sandbox.ip, settings=self._settings):
                self.sandbox.set_ready(True)
                while not election.acquire(
                    self.sandbox.uid, pod=f"{self.sandbox.namespace}/{self.sandbox.name}"
                ):
                    await self._clock.sleep(self._settings.leader_poll_s)
                await self._lead()
        except boots.NotInTableError:
            return boots.EXIT_NOT_IN_TABLE
        finally:
            self.running = False
            election.leave(self.sandbox.uid)
        return 0

    async def _lead(self) -> None:
        async with asyncio.TaskGroup() as group:
            self.client = self._cluster_client()
            if self.client is not None:
                group.create_task(self.client.run(), name="cluster client")
            group.create_task(self._table_loop(), name="table loop")
            group.create_task(self._coordinator_loop(), name="coordinator sync")

    def _cluster_client(self) -> ClusterClient | None:
        env = self.sandbox.env
        job_id, host = env.get("MINDX_TASK_ID", ""), env.get("MINDX_SERVER_IP", "")
        if not (job_id and host):
            return None
        target = LinkTarget(
            host=host,
            port=self._settings.cluster_port,
            local_ip=self.sandbox.ip,
            job_id=job_id,
            role=ROLE,
        )
        return ClusterClient(
            self._link_factory(target),
            clock=self._clock,
            settings=self._settings,
            on_table=self._write_table,
            on_fault=self._keep_signal,
        )

    def _write_table(self, text: str) -> None:
        self.received.append(ReceivedTable(self._clock.monotonic(), self._clock.wall(), text, _digest(text)))
        del self.received[:-_KEPT_RECORDS]
        self.table = text
        self._first_table.set()

    def _keep_signal(self, signal: fault_pb2.FaultMsgSignal) -> None:
        self.signals.append(signal)
        del self.signals[:-_KEPT_RECORDS]

    async def _table_loop(self) -> None:
        try:
            async with self._clock.timeout(self._settings.first_table_wait_s):
                await self._first_table.wait()
        except TimeoutError:
            pass  # the real one goes on with the file that boot left
        last_text = ""
        while True:
            if self.table != last_text:
                last_text = self.table
                self._apply(last_text)
            await self._clock.sleep(self._settings.detecting_s)

    def _apply(self, text: str) -> None:
        result = load(
            text,
            prefill_distributed=self._settings.prefill_distributed,
            decode_distributed=self._settings.decode_distributed,
        )
        before = _servers(self.instances)
        if result.accepted:
            self.instances, self.coordinators = result.instances, result.coordinators
        after = _servers(self.instances)
        self.applied.append(
            AppliedTable(
                at_s=self._clock.monotonic(),
                digest=_digest(text),
                load=result,
                removed=tuple(ip for ip in before if ip not in after),
                added=tuple(ip for ip in after if ip not in before),
            )
        )
        del self.applied[:-_KEPT_RECORDS]

    async def _coordinator_loop(self) -> None:
        while True:
            self._service.synchronize(self.coordinators, self.instances)
            await self._clock.sleep(self._settings.synchronization_s)


def _servers(instances: tuple[Instance, ...]) -> tuple[str, ...]:
    return tuple(ip for instance in instances for ip in instance.servers)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["ROLE", "AppliedTable", "MsController", "ReceivedTable"]
