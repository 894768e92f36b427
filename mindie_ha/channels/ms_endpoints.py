"""Asking one endpoint of an MS pod: a GET on the pod's own address, and nothing that it can do to us.

Promise: an answer or an `Unanswered` within the time-out, which is real time and never scaled. Redirects are
not followed, nothing is decompressed, and no more than `MAX_BODY` bytes of a body are read. What is asked has
no side effect. With TLS the certificates are those of the settings, read once.

Source: motor contract §2.2-2.3, §2.6-2.8.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from mindie_ha.model.errors import SettingsError
from mindie_ha.model.settings import RoleSettings

MAX_BODY = 65_536  # links to hundreds of peers


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; the body may be cut at `MAX_BODY`."""

    status: int
    body: bytes = b""


class Unanswered(Exception):  # noqa: N818 - reads as what happened
    """Nothing that is HTTP came back in time; the text says why, in a few words."""


class Endpoints(Protocol):
    """The seam: over HTTP it is `HttpEndpoints`; simulations answer from memory."""

    async def get(self, ip: str, port: int, path: str) -> Answer:
        """One question. Raises Unanswered and nothing else."""
        ...

    async def close(self) -> None:
        """End what is open."""
        ...


class HttpEndpoints:
    """See the module. Raises SettingsError where a TLS file cannot be read."""

    def __init__(self, settings: RoleSettings, *, session: Callable[[], aiohttp.ClientSession]) -> None:
        self._open_session = session
        self._session: aiohttp.ClientSession | None = None
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout_s)
        self._scheme = "https" if settings.tls else "http"
        self._ssl: ssl.SSLContext | bool = _context(settings) if settings.tls else True
        self._server_name = settings.tls_server_name or None

    async def get(self, ip: str, port: int, path: str) -> Answer:
        """One question. Raises Unanswered and nothing else."""
        if self._session is None:
            self._session = self._open_session()
        try:
            async with self._session.get(
                f"{self._scheme}://{_host(ip)}:{port}{path}",
                timeout=self._timeout,
                allow_redirects=False,
                ssl=self._ssl,
                server_hostname=self._server_name,
            ) as response:
                return Answer(response.status, await _beginning(response))
        except TimeoutError:
            raise Unanswered(f"no answer within {self._timeout.total:g} s") from None
        except aiohttp.ClientConnectorCertificateError:
            raise Unanswered("its certificate is not accepted") from None
        except aiohttp.ClientConnectorSSLError:
            raise Unanswered("no TLS connection, or our certificate is not accepted") from None
        except aiohttp.ClientConnectorError as error:
            raise Unanswered(f"no connection: {error.os_error.strerror or 'refused'}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unanswered(f"no HTTP answer ({type(error).__name__})") from None

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


def open_session() -> aiohttp.ClientSession:
    """A session for questions: a connection each, so that a pod's old connection never speaks for it."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True), auto_decompress=False
    )


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    while len(body) < MAX_BODY and (chunk := await response.content.read(MAX_BODY - len(body))):
        body += chunk
    return body


def _host(ip: str) -> str:
    """An address for a URL. Raises ValueError for anything else: a pod's status is not ours."""
    address = ipaddress.ip_address(ip)
    return f"[{address}]" if address.version == 6 else str(address)


def _context(settings: RoleSettings) -> ssl.SSLContext:
    advice = "roles.tls_ca, tls_cert and tls_key name PEM files that can be read, the key without password"
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca or None)
        if settings.tls_cert:
            # an empty password instead of a question on the terminal
            context.load_cert_chain(settings.tls_cert, settings.tls_key, password="")
    except OSError as error:  # ssl.SSLError is one
        raise SettingsError(
            f"TLS for MS pods: {error}", where="roles.tls_ca, roles.tls_cert", advice=advice
        ) from None
    context.check_hostname = bool(settings.tls_verify and settings.tls_server_name)
    context.verify_mode = ssl.CERT_REQUIRED if settings.tls_verify else ssl.CERT_NONE
    return context


__all__ = ["MAX_BODY", "Answer", "Endpoints", "HttpEndpoints", "Unanswered", "open_session"]
