"""POST of the table to URLs.

2xx is delivered. 408, 409, 425, 429, 5xx, and no answer are failures that are tried again; any other
answer is a refusal. Redirects are not followed: a table goes where the configuration says. The body of an
answer is read only as far as a reason needs.

The session comes from a factory, which is the transport seam; its connector must not bound connections,
or one dead target could delay another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from urllib.parse import quote

import aiohttp

from mindie_ha.channels.deliveries import DELIVERED, Outcome
from mindie_ha.channels.ports import HttpTarget, TableVersion

GENERATION_HEADER = "X-Mindie-Ha-Generation"
DIGEST_HEADER = "X-Mindie-Ha-Digest"
SERVICE_HEADER = "X-Mindie-Ha-Service"

SessionFactory = Callable[[], aiohttp.ClientSession]

_TIMEOUT = aiohttp.ClientTimeout(total=5.0, sock_connect=2.0)
_TRY_AGAIN = frozenset({408, 409, 425, 429})
_REASON_BYTES = 200


def open_session() -> aiohttp.ClientSession:
    """A session without a bound on connections: each delivery loop has at most one attempt open."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))


def table_target(host: str, port: int, path: str, *, scheme: str = "http") -> HttpTarget:
    """The target on `host`, a name or a bare address; an IPv6 address gets its brackets."""
    try:
        bracketed = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        bracketed = host
    return HttpTarget(f"{scheme}://{bracketed}:{port}/{path.lstrip('/')}")


class HttpPush:
    """The attempts of all HTTP deliveries; owns the session."""

    def __init__(self, open_session: SessionFactory = open_session) -> None:
        self._open_session = open_session
        self._session: aiohttp.ClientSession | None = None

    async def post(self, target: HttpTarget, table: TableVersion) -> Outcome:
        """One POST; every error of the transport is an Outcome."""
        if self._session is None:
            self._session = self._open_session()
        try:
            async with self._session.post(
                target.url,
                data=table.text.encode(),
                headers=_headers(table),
                timeout=_TIMEOUT,
                allow_redirects=False,
            ) as response:
                return await _judge(response)
        except TimeoutError as error:
            return Outcome("failed", str(error) or f"no answer within {_TIMEOUT.total:g} s")
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            return Outcome("refused", f"not an http URL: {error}; correct the push target")
        except (aiohttp.ClientError, OSError) as error:
            return Outcome("failed", f"{type(error).__name__}: {error}")
        except ValueError as error:
            # aiohttp's word for a header or URL part that cannot be sent at all.
            return Outcome("refused", f"cannot be sent: {error}")

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


def _headers(table: TableVersion) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        GENERATION_HEADER: str(table.generation),
        DIGEST_HEADER: table.digest,
        SERVICE_HEADER: f"{quote(table.service.namespace)}/{quote(table.service.job_id, safe='')}",
    }


async def _judge(response: aiohttp.ClientResponse) -> Outcome:
    status = response.status
    if 200 <= status < 300:
        return DELIVERED
    body = (await response.content.read(_REASON_BYTES)).decode(errors="replace").strip()
    reason = f"HTTP {status} {response.reason or ''}".strip() + (f": {body}" if body else "")
    return Outcome("failed" if status >= 500 or status in _TRY_AGAIN else "refused", reason)


__all__ = [
    "DIGEST_HEADER",
    "GENERATION_HEADER",
    "SERVICE_HEADER",
    "HttpPush",
    "SessionFactory",
    "open_session",
    "table_target",
]
