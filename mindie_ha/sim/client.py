"""How the actors reach an API server: a small client over any `Exchange`.

The same actors run against the embedded server (in memory) and against a real control plane
(`--actors-only`), so everything they do is an ordinary API request on plain JSON objects.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import quote

from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange
from mindie_ha.sim.resources import Resource, by_kind

Object = dict[str, Any]  # one Kubernetes object as decoded JSON


class ApiError(Exception):
    """The API server refused: `status` is the HTTP code, `reason` the Kubernetes reason."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class ApiClient:
    """Reads, writes and watches objects by kind name."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None where there is none."""
        try:
            return await self._json("GET", path_of(by_kind(kind), namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, kind: str, namespace: str = "", *, labels: str = "") -> tuple[list[Object], str]:
        """All objects of a kind (in one namespace, or everywhere) and the list's resourceVersion."""
        query = {"labelSelector": labels} if labels else {}
        body = await self._json("GET", path_of(by_kind(kind), namespace), query=query)
        resource = by_kind(kind)
        items = [{"apiVersion": resource.api_version, "kind": kind, **item} for item in body["items"]]
        return items, body["metadata"]["resourceVersion"]

    async def create(self, kind: str, body: Object) -> Object:
        """Create; raises ApiError 409 where it exists."""
        resource = by_kind(kind)
        body = {"apiVersion": resource.api_version, "kind": kind, **body}
        namespace = body["metadata"].get("namespace", "")
        return await self._json("POST", path_of(resource, namespace), body=body)

    async def patch(
        self, kind: str, name: str, namespace: str, body: Object, *, subresource: str = ""
    ) -> Object:
        """JSON merge patch; lists are replaced, null removes."""
        path = path_of(by_kind(kind), namespace, name, subresource)
        headers = {"content-type": "application/merge-patch+json"}
        return await self._json("PATCH", path, body=body, headers=headers)

    async def replace(self, kind: str, body: Object, *, subresource: str = "") -> Object:
        """Update whole; with a resourceVersion in it, only if it still is the current one."""
        meta = body["metadata"]
        path = path_of(by_kind(kind), meta.get("namespace", ""), meta["name"], subresource)
        return await self._json("PUT", path, body=body)

    async def post(self, kind: str, name: str, namespace: str, subresource: str, body: Object) -> Object:
        """POST to a subresource, for example a pod's `binding` or `eviction`."""
        return await self._json("POST", path_of(by_kind(kind), namespace, name, subresource), body=body)

    async def delete(
        self, kind: str, name: str, namespace: str = "", *, grace_s: int | None = None, uid: str | None = None
    ) -> None:
        """Delete; an object that is already gone is no error."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        try:
            await self._json("DELETE", path_of(by_kind(kind), namespace, name), body=options)
        except ApiError as error:
            if error.status != 404:
                raise

    async def watch(
        self, kind: str, resource_version: str, *, namespace: str = "", labels: str = ""
    ) -> AsyncGenerator[tuple[str, Object], None]:
        """`(type, object)` from `resource_version` on; ends when the server ends the stream."""
        query = {"watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        if labels:
            query["labelSelector"] = labels
        request = ApiRequest("GET", path_of(by_kind(kind), namespace), query)
        response = _checked(await self._exchange.handle(request))
        if response.stream is None:
            raise ApiError(500, "NoStream", "a watch was answered without a stream")
        rest = b""
        try:
            async for chunk in response.stream:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        event = json.loads(line)
                        yield event["type"], event["object"]
        finally:
            # Ends the watch at once; a generator that is only dropped ends whenever it is collected.
            close = getattr(response.stream, "aclose", None)
            if close is not None:
                await close()

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Object | None = None,
        headers: dict[str, str] | None = None,
    ) -> Object:
        raw = b"" if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", "accept": "application/json", **(headers or {})}
        response = _checked(await self._exchange.handle(ApiRequest(method, path, query or {}, sent, raw)))
        decoded: Object = json.loads(response.body)
        return decoded


def path_of(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The URL path of a collection, an object or a subresource."""
    parts = [resource.base_path]
    if namespace and resource.namespaced:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(resource.plural)
    parts += [quote(part, safe="") for part in (name, subresource) if part]
    return "/".join(parts)


def _checked(response: ApiResponse) -> ApiResponse:
    if response.status < 400:
        return response
    try:
        status = json.loads(response.body)
    except ValueError:
        status = {}
    raise ApiError(response.status, status.get("reason", ""), status.get("message", ""))
