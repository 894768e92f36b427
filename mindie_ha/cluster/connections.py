"""The real transport: kubernetes_asyncio for configuration and credentials, its aiohttp session for bytes.

Responses stay raw: the generated models of that library are slow and large. The library is imported when a
connection is opened, not before (70 MB that no pure command needs). In a cluster the service account token
is re-read each minute by the library; with a kubeconfig an answer of 401 makes the next request read the
file again.

The library's session asks the environment for proxies and a netrc before every request, each time in a
thread; ours shares its connector, asks once, and saves a good part of each request.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml
from aiohttp.abc import AbstractStreamWriter

from mindie_ha.cluster.transports import Gate, Reply, check
from mindie_ha.model.errors import ClusterError, InputError, MindieHaError, Unreachable

CONNECT_TIMEOUT_S = 10.0
READ_BUFFER = 2 << 20  # a watch line holds a whole object: 1.5 MiB at most, by etcd's default
POOL = 256  # connections: one per watch and per write in flight
# The library looks into a parsed file without checking its shape.
_MALFORMED = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError)
_NO_ANSWER = (aiohttp.ClientError, OSError, asyncio.TimeoutError)


class GatedPayload(aiohttp.BytesPayload):
    """A body that asks before it leaves.

    aiohttp sends the headers together with the first bytes of the body, once there is a connection. A gate
    that raises ends the request there: a server that got less than the announced length carries nothing out.
    """

    def __init__(self, body: bytes, gate: Gate) -> None:
        super().__init__(body)
        self._gate = gate
        self.refused: MindieHaError | None = None  # what the gate raised

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Ask, then write. Raises what the gate raises; nothing awaits between the two."""
        try:
            self._gate()
        except MindieHaError as error:
            self.refused = error
            raise
        await super().write_with_length(writer, content_length)


class KubernetesTransport:
    """A `Transport` to a real API server. Made by `connect`; closed by `close`."""

    def __init__(self, api: Any, *, kubeconfig: str | None, user_agent: str) -> None:
        self._api = api  # kubernetes_asyncio.client.ApiClient, which has no types
        self._kubeconfig = kubeconfig
        self._user_agent = user_agent
        self._reload = False
        self._proxy = _proxy_of(api)
        self._session = aiohttp.ClientSession(
            connector=api.rest_client.pool_manager.connector, connector_owner=False, read_bufsize=READ_BUFFER
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
        gate: Gate | None = None,
    ) -> Reply:
        """The reply, whatever its status; raises Unreachable where there is none in time."""
        limit = aiohttp.ClientTimeout(total=timeout_s)
        arguments = await self._arguments(headers)
        data = body if gate is None else GatedPayload(body or b"", gate)
        try:
            async with self._session.request(
                method, self._url(path, query), data=data, timeout=limit, allow_redirects=False, **arguments
            ) as response:
                content = await response.read()
        except _NO_ANSWER as error:
            if isinstance(data, GatedPayload) and data.refused is not None:
                raise data.refused from error
            raise _unreachable(method, path, error) from error
        self._notice(response.status)
        return Reply(response.status, content, _lower(response.headers))

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Chunks as they come. Raises what `check` raises if refused, Unreachable if cut."""
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
        arguments = await self._arguments(None)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                response = await self._session.request(
                    method, self._url(path, query), timeout=limit, allow_redirects=False, **arguments
                )
        except _NO_ANSWER as error:
            raise _unreachable(method, path, error) from error
        try:
            self._notice(response.status)
            if response.status != 200:
                check(await _refusal(response), action=f"{method} {path}")
            async with aclosing(_chunks(response, method, path)) as chunks:
                yield chunks
        finally:
            response.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()
        await self._api.close()

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        url = f"{self._api.configuration.host.rstrip('/')}{path}"
        return f"{url}?{urlencode(query)}" if query else url

    async def _arguments(self, headers: Mapping[str, str] | None) -> dict[str, Any]:
        sent = {"Accept": "application/json", "User-Agent": self._user_agent, **(headers or {})}
        await self._authorize(sent)
        arguments: dict[str, Any] = {"headers": sent}
        rest = self._api.rest_client
        if rest.server_hostname:
            arguments["server_hostname"] = rest.server_hostname
        if self._proxy:
            arguments["proxy"] = self._proxy
        return arguments

    async def _authorize(self, headers: dict[str, str]) -> None:
        """Add the token, which the library reads anew from time to time; a file that is being replaced may be
        missing or empty for a moment."""
        from kubernetes_asyncio.config import ConfigException  # noqa: PLC0415 - large, see the module's note

        try:
            if self._reload and self._kubeconfig:
                self._reload = False
                await _load(self._api.configuration, self._kubeconfig)
            await self._api.update_params_for_auth(headers, [], ["BearerToken"])
        except (MindieHaError, ConfigException, *_MALFORMED) as error:
            raise Unreachable(f"the credentials cannot be read now: {error}") from error

    def _notice(self, status: int) -> None:
        if status == 401:
            self._reload = True


async def connect(kubeconfig: str | None, *, user_agent: str = "mindie-ha") -> KubernetesTransport:
    """A transport from a kubeconfig file, or with None from that of $KUBECONFIG, else from the pod's service
    account.

    Raises InputError where the kubeconfig is not usable, ClusterError where the service account is not.
    """
    kubeconfig = kubeconfig or kubeconfig_of(os.environ)
    if kubeconfig:
        _check_file(kubeconfig)
    from kubernetes_asyncio import client  # noqa: PLC0415 - large, see the module's note

    configuration = client.Configuration()
    await _load(configuration, kubeconfig)
    configuration.connection_pool_maxsize = POOL
    try:
        api = client.ApiClient(configuration)
    except (OSError, ValueError) as error:  # certificate files that are missing or malformed
        raise _unusable(kubeconfig, error) from error
    return KubernetesTransport(api, kubeconfig=kubeconfig, user_agent=user_agent)


def kubeconfig_of(environment: Mapping[str, str]) -> str:
    """The file that KUBECONFIG names; of several the one that is there. Empty: none. Raises InputError."""
    names = [name for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    found = [name for name in names if Path(name).exists()] or names[:1]
    if len(found) > 1:
        raise InputError("names several files", where="KUBECONFIG", advice="give one with --kubeconfig FILE")
    return found[0] if found else ""


def _check_file(kubeconfig: str) -> None:
    """A missing file: the library would print a line of its own and then blame the content."""
    try:
        with Path(kubeconfig).open("rb"):
            pass
    except OSError as error:
        raise _unusable(kubeconfig, error.strerror or str(error)) from None


async def _load(configuration: Any, kubeconfig: str | None) -> None:
    from kubernetes_asyncio import config  # noqa: PLC0415 - large, see the module's note

    try:
        if kubeconfig:
            await config.load_kube_config(
                config_file=kubeconfig, client_configuration=configuration, persist_config=False
            )
        else:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, yaml.YAMLError, *_MALFORMED) as error:
        raise _unusable(kubeconfig, error) from error


def _unusable(kubeconfig: str | None, error: Exception | str) -> MindieHaError:
    reason = f"is not usable: {' '.join(str(error).split())}"
    if kubeconfig:
        return InputError(reason, where=f"kubeconfig {kubeconfig}", advice="give --kubeconfig FILE")
    return ClusterError(f"service account of this pod {reason} (outside a pod give --kubeconfig FILE)")


def _proxy_of(api: Any) -> str | None:
    """The proxy of the kubeconfig, else that of the environment (HTTPS_PROXY, NO_PROXY and their like)."""
    if api.rest_client.proxy:
        return str(api.rest_client.proxy)
    server = urlsplit(api.configuration.host)
    return None if proxy_bypass(server.netloc) else getproxies().get(server.scheme)


async def _refusal(response: aiohttp.ClientResponse) -> Reply:
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            body = await response.read()
    except _NO_ANSWER:
        body = b""  # the status alone says enough
    return Reply(response.status, body, _lower(response.headers))


async def _chunks(response: aiohttp.ClientResponse, method: str, path: str) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except _NO_ANSWER as error:  # ClientPayloadError: the server died in the middle of the stream
        raise _unreachable(method, path, error) from error


def _unreachable(method: str, path: str, error: BaseException) -> Unreachable:
    said = (error.strerror or error.os_error) if isinstance(error, aiohttp.ClientConnectorError) else error
    # A proxy's URL may hold a password, and errors of a proxy quote it.
    text = re.sub(r"//[^/@\s]*@", "//", str(said))
    return Unreachable(f"{method} {path}: no answer ({type(error).__name__}: {text})")


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


__all__ = ["KubernetesTransport", "connect"]
