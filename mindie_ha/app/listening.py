"""Where the HTTP server listens: `[HOST]:PORT`, refused with the setting's name."""

from __future__ import annotations

from aiohttp import web

from mindie_ha.model.errors import SettingsError


async def listen_on(runner: web.AppRunner, listen: str) -> int:
    """Serve on `[HOST]:PORT`; the port."""
    where, advice = f"http.listen {listen}", "give [HOST]:PORT with a free port"
    host, colon, port = listen.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        raise SettingsError("not [HOST]:PORT", where=where, advice=advice)
    try:
        site = web.TCPSite(runner, host.strip("[]") or None, int(port))
        await site.start()
    except OSError as error:
        raise SettingsError(f"cannot listen: {error.strerror or error}", where=where, advice=advice) from None
    addresses = runner.addresses
    return int(addresses[0][1])
