"""Where the HTTP server listens: `[HOST]:PORT`, refused with the setting's name; plain or with TLS.

A context of `ssl` cannot be given another client CA, so renewed files mean a new context: the listening
socket is handed from one site to the next, none is closed in between, and connections that are open live on.
"""

from __future__ import annotations

import asyncio
import socket

from aiohttp import web

from mindie_ha.channels.settings import TlsFiles
from mindie_ha.channels.tls_files import Heard, TlsWatch
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import SettingsError
from mindie_ha.model.settings import HttpSettings

RENEW_S = 10.0  # between two looks at the certificate files


class Listener:
    """Serves a runner's application; the runner's owner ends it."""

    def __init__(
        self,
        runner: web.AppRunner,
        settings: HttpSettings,
        *,
        clock: Clock,
        heard: Heard,
        section: str = "http",
    ) -> None:
        self._runner = runner
        self._section = section
        self._listen = settings.listen
        self._clock = clock
        self._watch: TlsWatch | None = None
        if settings.tls_cert:
            files = TlsFiles(
                cert_path=settings.tls_cert, key_path=settings.tls_key, ca_path=settings.tls_client_ca
            )
            self._watch = TlsWatch(files, where=f"{section}.tls", heard=heard)
        self._socket: socket.socket | None = None
        self._site: web.BaseSite | None = None

    async def start(self) -> int:
        """Listen; the port. Raises InputError with the setting."""
        where, advice = f"{self._section}.listen {self._listen}", "give [HOST]:PORT with a free port"
        host, colon, port = self._listen.rpartition(":")
        if not (colon and port.isdecimal() and int(port) < 65536):
            raise SettingsError("not [HOST]:PORT", where=where, advice=advice)
        host = host.strip("[]")
        try:
            if self._watch is None:
                self._site = web.TCPSite(self._runner, host or None, int(port))
                await self._site.start()
            else:
                await asyncio.to_thread(self._watch.load)
                self._socket = _open(host, int(port))
                await self._hand_over(self._watch)
        except OSError as error:
            reason = f"cannot listen: {error.strerror or error}"
            raise SettingsError(reason, where=where, advice=advice) from None
        return int(self._runner.addresses[0][1])

    async def follow(self) -> None:
        """Use renewed certificate files for new connections, for ever; ends at once without TLS."""
        while self._watch is not None:
            await self._clock.sleep(RENEW_S)
            await self.renew()

    async def renew(self) -> None:
        """Look at the files once."""
        if self._watch is not None and await asyncio.to_thread(self._watch.renewed) is not None:
            await self._hand_over(self._watch)

    def close(self) -> None:
        """Give the port back; for after the runner's clean-up."""
        if self._socket is not None:
            self._socket.close()

    async def _hand_over(self, watch: TlsWatch) -> None:
        if self._socket is None:
            return
        before = self._site
        # Not demanded here, because probes of the kubelet have none; the gate does, on every other route.
        context = await asyncio.to_thread(watch.server_context)
        self._site = web.SockSite(self._runner, self._socket.dup(), ssl_context=context)
        await self._site.start()
        if before is not None:
            await before.stop()


def _open(host: str, port: int) -> socket.socket:
    if host:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", port), family=family, dualstack_ipv6=both, backlog=128)
