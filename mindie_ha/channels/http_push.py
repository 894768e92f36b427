"""POST of the table to URLs.

2xx is delivered. 408, 409, 425, 429, 5xx, and no answer are failures that are tried again; any other
answer is a refusal. Redirects are not followed: a table goes where the configuration says. The body of an
answer is read only as far as a reason needs.

The session comes from a factory, which is the transport seam; its connector must not bound connections,
or one dead target could delay another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from urllib.parse import quote

import aiohttp

from mindie_ha.channels.deliveries import DELIVERED, Outcome
from mindie_ha.channels.ports import HttpTarget, TableVersion
from mindie_ha.model.errors import LeaseLost

GENERATION_HEADER = "X-Mindie-Ha-Generation"
DIGEST_HEADER = "X-Mindie-Ha-Digest"
SERVICE_HEADER = "X-Mindie-Ha-Service"

SessionFactory = Callable[[], aiohttp.ClientSession]

_CONNECT_TIMEOUT_S = 2.0
_TRY_AGAIN = frozenset({408, 409, 425, 429})
_REASON_BYTES = 200


def open_session() -> aiohttp.ClientSession:
    """A session without a bound on connections: each delivery loop has at most one attempt open."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))


class HttpPush:
    """The attempts of all HTTP deliveries; owns the session."""

    def __init__(
        self,
        open_session: SessionFactory = open_session,
        *,
        timeout_s: float = 5.0,
        gate: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._open_session = open_session
        self._gate = gate
        self._timeout = aiohttp.ClientTimeout(
            total=timeout_s, sock_connect=min(timeout_s, _CONNECT_TIMEOUT_S)
        )
        self._session: aiohttp.ClientSession | None = None

    async def post(self, target: HttpTarget, table: TableVersion) -> Outcome:
        """One POST; every error of the transport is an Outcome."""
        if self._session is None:
            self._session = self._open_session()
        try:
            self._gate()  # a table that is pushed by who no longer leads would undo a newer one
            async with self._session.post(
                target.url,
                data=table.text.encode(),
                headers=_headers(table),
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                return await _judge(response)
        except LeaseLost as error:
            return Outcome("failed", str(error))
        except TimeoutError as error:
            return Outcome("failed", str(error) or f"no answer within {self._timeout.total:g} s")
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            return Outcome("refused", f"not an http URL ({type(error).__name__}); correct the push target")
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
]
