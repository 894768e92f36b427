"""MS Coordinator: ready only while it is active and can serve.

It boots like every MindIE pod, tries for the lock, and learns about instances only from the leading
Controller. Readiness (`/v1/readiness`) is 200 when it is active and knows at least one prefill and one decode
instance, or, where no instance has a role, at least one instance; `/v2/health/ready` is the same without the
test for being active. (Source: motor contract §2.3, §3.1.)
"""

from __future__ import annotations

from collections.abc import Sequence

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.actors.programs import PodSandbox
from mindie_ha.sim.ms import boots
from mindie_ha.sim.ms.loaders import DECODE, PREFILL, UNDEFINED, Instance
from mindie_ha.sim.ms.probes import coordinator_sites
from mindie_ha.sim.ms.services import MsService
from mindie_ha.sim.ms.settings import MsSettings


class MsCoordinator:
    """The program of one Coordinator pod."""

    def __init__(
        self, sandbox: PodSandbox, *, clock: Clock, settings: MsSettings, service: MsService
    ) -> None:
        self.sandbox = sandbox
        self._clock = clock
        self._settings = settings
        self._service = service
        self.instances: tuple[Instance, ...] = ()
        self.booted = False
        self.running = False

    @property
    def active(self) -> bool:
        """Whether this replica is the active one (`is_master`)."""
        return self._service.coordinators.leader == self.sandbox.uid

    @property
    def can_serve(self) -> bool:
        """At least one P and one D are known, or one instance where roles are not given."""
        roles = {instance.role for instance in self.instances}
        return {PREFILL, DECODE} <= roles or roles == {UNDEFINED}

    @property
    def ready(self) -> bool:
        """What `/v1/readiness` answers."""
        return self.active and self.can_serve

    def refresh(self, instances: Sequence[Instance]) -> None:
        """`POST /v1/instances/refresh` by the leading Controller: replaces what is known."""
        self.instances = tuple(instances)
        self.sandbox.set_ready(self.ready)

    async def run(self) -> int:
        """One life of the pod; ends by cancellation, or with 255 when the boot table is not for this pod."""
        election = self._service.coordinators
        election.join(self.sandbox.uid)
        self.running = True
        try:
            await boots.boot(self.sandbox, clock=self._clock, poll_s=self._settings.boot_poll_s)
            self.booted = True
            self._service.listeners[self.sandbox.ip] = self
            async with coordinator_sites(self.sandbox.ip, self, settings=self._settings):
                while True:
                    election.acquire(self.sandbox.uid, pod=f"{self.sandbox.namespace}/{self.sandbox.name}")
                    self.sandbox.set_ready(self.ready)
                    await self._clock.sleep(self._settings.leader_poll_s)
        except boots.NotInTableError:
            return boots.EXIT_NOT_IN_TABLE
        finally:
            self.running = False
            election.leave(self.sandbox.uid)
            if self._service.listeners.get(self.sandbox.ip) is self:
                del self._service.listeners[self.sandbox.ip]


__all__ = ["MsCoordinator"]
