"""Where looking commands read from: a running controller's API, or the cluster itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
import orjson
from yarl import URL

from mindie_ha.cli.tokens import headers
from mindie_ha.cluster.connections import kubeconfig_of
from mindie_ha.model.errors import Conflict, Denied, InputError, NotFound, Unreachable
from mindie_ha.model.ids import ObjectKey

TIMEOUT_S = 10.0
T = TypeVar("T")


async def fetch(server: str, path: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers of GET `path` on a controller. Raises InputError, NotFound, Unreachable."""
    return await send(server, path, method="GET")


async def send(server: str, path: str, *, method: str, body: object = None) -> tuple[bytes, dict[str, str]]:
    """One request to a controller; its body and headers. Raises InputError, NotFound, ClusterError."""
    if not server.startswith(("http://", "https://")):
        raise InputError("not an http:// or https:// URL", where=f"--server {server}")
    proof = headers(server, method=method)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    url = server.rstrip("/") + path
    data = None if body is None else orjson.dumps(body)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, URL(url, encoded=True), data=data, headers=proof) as answer,
        ):
            found = await answer.read()
            _check(answer.status, found, server=server, path=path)
            return found, dict(answer.headers)
    except (aiohttp.InvalidURL, ValueError):
        raise InputError("not a URL", where=f"--server {server}") from None
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unreachable(f"{server} does not answer: {_why(error)}; is `mindie-ha run` there?") from None


async def ask(server: str, path: str, *, method: str = "GET", body: object = None) -> dict[str, Any]:
    """What a controller answers, as plain data. Raises InputError, NotFound, ClusterError."""
    answer, _ = await send(server, path, method=method, body=body)
    found: dict[str, Any] = orjson.loads(answer)
    return found


def workload_path(key: ObjectKey, word: str) -> str:
    """Where a controller tells of one workload, or takes a wish for it."""
    return f"/v1/workloads/{quote(key.namespace, safe='')}/{quote(key.name, safe='')}/{word}"


def _check(status: int, body: bytes, *, server: str, path: str) -> None:
    """Raise what an answer says."""
    if status == 400:
        raise InputError(_reason(body, f"{path} refused it"), where=_place(body, path))
    if status in (401, 403):
        why = _reason(body, f"{path} answered {status}")
        raise Denied(f"{why}; give --token-file FILE (docs/security.md)", status=status)
    if status == 404:
        raise NotFound(_reason(body, f"{path} is not there"), status=404)
    if status == 409:
        raise Conflict(_reason(body, f"{path}: somebody else was faster"), status=409)
    if status >= 400:
        why = _reason(body, "")
        raise Unreachable(f"{server}{path} answered {status}{': ' if why else ''}{why}", status=status)


def one_source(server: str, kubeconfig: Path | None) -> None:
    """Refuse two sources at once, and none where no cluster is around us."""
    if server and kubeconfig is not None:
        raise InputError("give one of --server and --kubeconfig, not both", where="command line")
    if not server:
        some_cluster(kubeconfig, advice="give --server URL of a running controller, or --kubeconfig FILE")


def some_cluster(kubeconfig: Path | None, *, advice: str) -> None:
    """Refuse to look for a cluster outside a pod and without a kubeconfig, given or of $KUBECONFIG."""
    named = kubeconfig is not None or kubeconfig_of(os.environ)
    if not named and not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise InputError(
            "no cluster is named, and this is not a pod of one", where="command line", advice=advice
        )


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine to its end."""
    return asyncio.run(coroutine)


def _why(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.strerror or str(error.os_error)
    return str(error) or type(error).__name__


def _place(body: bytes, otherwise: str) -> str:
    try:
        where = orjson.loads(body)["error"]["where"]
    except (ValueError, KeyError, TypeError):
        return otherwise
    return str(where)


def _reason(body: bytes, otherwise: str) -> str:
    try:
        what = orjson.loads(body)["error"]["what"]
    except (ValueError, KeyError, TypeError):
        return otherwise
    return str(what)
