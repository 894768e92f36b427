"""Verbs on objects: paths, queries and error mapping over a `Transport`; bodies stay bytes.

No retries and no fence here: reading callers (informers) and writing ones (`writer.py`, `leases.py`) have
their own policy each, at exactly one level. A write takes the caller's `gate`, which says right before it
leaves whether it may, and for how long it may be under way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.cluster.resources import Resource
from mindie_ha.cluster.transports import Gate, Transport, bounded_lines, check
from mindie_ha.model.ids import ObjectKey


class PatchKind(StrEnum):
    """The patch formats of the API, by content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: one namespace or all (empty), by labels and fields."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """The query parameters of a list or watch."""
        query = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in query.items() if value}


class Client:
    """Kubernetes verbs; every method raises `ClusterError` kinds only."""

    def __init__(self, transport: Transport, *, request_timeout_s: float = 10.0) -> None:
        self._transport = transport
        self._timeout_s = request_timeout_s

    async def get(self, resource: Resource, key: ObjectKey, *, gate: Gate | None = None) -> bytes:
        """One object."""
        return await self._send("get", "GET", resource, resource.path(key), key=key, gate=gate)

    async def list_page(
        self,
        resource: Resource,
        selection: Selection,
        *,
        limit: int,
        continue_token: str = "",
    ) -> bytes:
        """One page of a list; its metadata holds the token of the next. `limit` 0: all in one piece."""
        query = selection.query()
        if limit:
            query["limit"] = str(limit)
        if continue_token:
            query["continue"] = continue_token
        path = resource.collection(selection.namespace)
        return await self._send("list", "GET", resource, path, query=query)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, selection: Selection, *, resource_version: str, timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch from a version on, bookmarks included."""
        query = {
            **selection.query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(timeout_s))),
        }
        path = resource.collection(selection.namespace)
        async with (
            self._transport.stream("GET", path, query=query) as chunks,
            aclosing(bounded_lines(chunks)) as lines,
        ):
            yield lines

    async def create(
        self, resource: Resource, namespace: str, body: bytes, *, gate: Gate | None = None
    ) -> bytes:
        """Create; Conflict where it exists."""
        return await self._send(
            "create", "POST", resource, resource.collection(namespace), body=body, gate=gate
        )

    async def replace(
        self, resource: Resource, key: ObjectKey, body: bytes, *, gate: Gate | None = None
    ) -> bytes:
        """Update whole; with a resourceVersion in `body`, only if it is the current one."""
        return await self._send("update", "PUT", resource, resource.path(key), key=key, body=body, gate=gate)

    async def patch(
        self, resource: Resource, key: ObjectKey, body: bytes, *, kind: PatchKind, gate: Gate | None = None
    ) -> bytes:
        """Change parts."""
        return await self._send(
            "patch", "PATCH", resource, resource.path(key), key=key, body=body, content=kind, gate=gate
        )

    async def delete(
        self, resource: Resource, key: ObjectKey, options: bytes, *, gate: Gate | None = None
    ) -> bytes:
        """Delete with DeleteOptions; the answer is the object as it terminates, or a Status."""
        return await self._send(
            "delete", "DELETE", resource, resource.path(key), key=key, body=options, gate=gate
        )

    async def _send(
        self,
        verb: str,
        method: str,
        resource: Resource,
        path: str,
        *,
        key: ObjectKey | None = None,
        query: dict[str, str] | None = None,
        body: bytes | None = None,
        content: str = "application/json",
        gate: Gate | None = None,
    ) -> bytes:
        headers = {"Content-Type": content} if body is not None else {}
        limit_s = self._timeout_s if gate is None else min(self._timeout_s, gate())
        reply = await self._transport.request(
            method, path, query=query, body=body, headers=headers, timeout_s=limit_s, gate=gate
        )
        return check(reply, action=f"{verb} {resource.plural}" + (f" {key}" if key else ""))


__all__ = ["Client", "PatchKind", "Selection"]
