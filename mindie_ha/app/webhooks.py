"""The webhook's own server: nothing else is reachable on its port, and its end ends nothing else."""

from __future__ import annotations

from aiohttp import web

from mindie_ha.app.listening import Listener
from mindie_ha.channels.tls_files import Heard
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.settings import HttpSettings, WebhookSettings
from mindie_ha.web.admission import make_admission_app

STOP_S = 2.0


class WebhookServer:
    """Serves the webhook while it is enabled."""

    def __init__(self, settings: WebhookSettings, *, metrics: Metrics, clock: Clock, heard: Heard) -> None:
        self.enabled = settings.enabled
        self.port = 0
        app = make_admission_app(enforce=settings.enforce, metrics=metrics)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=STOP_S)
        face = HttpSettings(listen=settings.listen, tls_cert=settings.tls_cert, tls_key=settings.tls_key)
        self._listener = Listener(self._runner, face, clock=clock, heard=heard, section="webhook")

    async def start(self) -> int:
        """Listen, if enabled; the port. Raises InputError."""
        if self.enabled:
            await self._runner.setup()
            self.port = await self._listener.start()
        return self.port

    async def follow(self) -> None:
        """Use renewed certificate files, for ever."""
        await self._listener.follow()

    async def close(self) -> None:
        """End it."""
        await self._runner.cleanup()
        self._listener.close()
