"""Where looking commands read from: a running controller's API, or the cluster itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import orjson

from mindie_ha.model.errors import InputError, NotFound, Unreachable

TIMEOUT_S = 10.0
T = TypeVar("T")


async def fetch(server: str, path: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers of GET `path` on a controller. Raises InputError, NotFound, Unreachable."""
    if not server.startswith(("http://", "https://")):
        raise InputError("not an http:// or https:// URL", where=f"--server {server}")
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(server.rstrip("/") + path) as answer,
        ):
            body = await answer.read()
            if answer.status == 404:
                raise NotFound(_reason(body, f"{path} is not there"), status=404)
            if answer.status >= 400:
                raise Unreachable(f"{server}{path} answered {answer.status}", status=answer.status)
            return body, dict(answer.headers)
    except aiohttp.InvalidURL:
        raise InputError("not a URL", where=f"--server {server}") from None
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unreachable(f"{server} does not answer: {_why(error)}; is `mindie-ha run` there?") from None


def one_source(server: str, kubeconfig: Path | None) -> None:
    """Refuse two sources at once, and none where no cluster is around us."""
    if server and kubeconfig is not None:
        raise InputError("give one of --server and --kubeconfig, not both", where="command line")
    if not server:
        some_cluster(kubeconfig, advice="give --server URL of a running controller, or --kubeconfig FILE")


def some_cluster(kubeconfig: Path | None, *, advice: str) -> None:
    """Refuse to look for a cluster outside a pod and without a kubeconfig."""
    if kubeconfig is None and not os.environ.get("KUBERNETES_SERVICE_HOST"):
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


def _reason(body: bytes, otherwise: str) -> str:
    try:
        what = orjson.loads(body)["error"]["what"]
    except (ValueError, KeyError, TypeError):
        return otherwise
    return str(what)
