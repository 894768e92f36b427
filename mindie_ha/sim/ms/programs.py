"""Which program runs in a MindIE pod; what the kubelet asks, and where judges look.

Controllers and Coordinators are programs of this package; server instances need none (the kubelet makes
them ready). Every program ever started stays listed, so that a judge can read what a deleted Controller had
received; the lists are as long as the number of MS pods a run creates.
"""

from __future__ import annotations

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.actors.programs import PodSandbox, Program
from mindie_ha.sim.ms import boots
from mindie_ha.sim.ms.controllers import MsController
from mindie_ha.sim.ms.coordinators import MsCoordinator
from mindie_ha.sim.ms.grpc_links import GrpcLink
from mindie_ha.sim.ms.links import LinkFactory
from mindie_ha.sim.ms.probes import Reply, controller_reply, coordinator_reply
from mindie_ha.sim.ms.server_links import ServerLinks
from mindie_ha.sim.ms.services import MsService
from mindie_ha.sim.ms.settings import MsSettings

NOT_FOUND: Reply = (404, None)


class MsPrograms:
    """A `ProgramFactory` for the pods of every service of a cluster."""

    def __init__(self, *, clock: Clock, settings: MsSettings, link_factory: LinkFactory) -> None:
        self._clock = clock
        self._settings = settings
        self._link_factory = link_factory
        self._links = ServerLinks(settings.stale_links)
        self._services: dict[tuple[str, str], MsService] = {}
        self.controllers: list[MsController] = []
        """Every Controller started so far, oldest first."""
        self.coordinators: list[MsCoordinator] = []

    def __call__(self, sandbox: PodSandbox) -> Program | None:
        """The program of a pod; None for a server instance and for everything that is not MindIE."""
        role = boots.role_of(sandbox)
        if role == boots.CONTROLLER:
            controller = MsController(
                sandbox,
                clock=self._clock,
                settings=self._settings,
                service=self._service(sandbox),
                link_factory=self._link_factory,
            )
            self.controllers.append(controller)
            return controller
        if role == boots.COORDINATOR:
            coordinator = MsCoordinator(
                sandbox, clock=self._clock, settings=self._settings, service=self._service(sandbox)
            )
            self.coordinators.append(coordinator)
            return coordinator
        if role == boots.SERVER:
            self._links.started(sandbox)
        return None

    def leader(self, namespace: str, job_id: str) -> MsController | None:
        """The active Controller of a service, if there is one."""
        for controller in reversed(self.controllers):
            sandbox = controller.sandbox
            if (sandbox.namespace, _job_id(sandbox)) == (namespace, job_id) and controller.leads:
                return controller
        return None

    def leaders(self) -> dict[str, str]:
        """Who really leads now: UID of the pod by `namespace/name` of its job."""
        leading = [each.sandbox for each in self.controllers if each.running and each.leads]
        leading += [each.sandbox for each in self.coordinators if each.running and each.active]
        return {f"{pod.namespace}/{pod.name.rsplit('-', 2)[0]}": pod.uid for pod in leading}

    def reply(self, ip: str, port: int, path: str) -> Reply | None:
        """What the pod at `ip` answers, as over HTTP but from memory; None where nobody listens."""
        for coordinator in reversed(self.coordinators):
            if coordinator.sandbox.ip == ip and coordinator.running and coordinator.booted:
                return coordinator_reply(coordinator, port, path) or NOT_FOUND
        for controller in reversed(self.controllers):
            if controller.sandbox.ip == ip and controller.running and controller.booted:
                return controller_reply(port, path) or NOT_FOUND
        return self._links.reply(ip, port, path)

    def _service(self, sandbox: PodSandbox) -> MsService:
        key = (sandbox.namespace, _job_id(sandbox))
        if key not in self._services:
            self._services[key] = MsService(
                self._clock, lease_s=self._settings.lease_s, leads_first=self._settings.leads_first
            )
        return self._services[key]


def program_factory(
    settings: MsSettings, *, clock: Clock, link_factory: LinkFactory = GrpcLink
) -> MsPrograms:
    """The factory for a kubelet; on virtual time pass a `link_factory` that opens no socket."""
    return MsPrograms(clock=clock, settings=settings, link_factory=link_factory)


def _job_id(sandbox: PodSandbox) -> str:
    return sandbox.labels.get("jobID", "")


__all__ = ["MsPrograms", "program_factory"]
