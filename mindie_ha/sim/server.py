"""The embedded API server: one request in, one response out, no transport.

`ApiServer` implements `Exchange`; the aiohttp edge and in-memory clients call the same method. Everything is
in memory and, with a seeded `Entropy` and a virtual clock, repeats exactly. A write is applied without
awaiting, so requests are serialised as they arrive; `run()` does what the controllers of a real control
plane do behind it (garbage, namespaces) and has to be owned by the caller's task supervisor.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim import crds, deletions, reading, subresources, writing
from mindie_ha.sim.audits import AuditEntry, new_audit
from mindie_ha.sim.bodies import APPLY, decode, media_type
from mindie_ha.sim.core import NAMESPACES, NO_OPTIONS, Core, WriteOptions
from mindie_ha.sim.disturbances import Disturbances
from mindie_ha.sim.documents import Documents
from mindie_ha.sim.expiries import EventExpiry
from mindie_ha.sim.garbage import GarbageCollector
from mindie_ha.sim.kinds import Kinds, Route
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import (
    Object,
    StatusError,
    bad_request,
    method_not_allowed,
    no_such_path,
    qualified,
    success,
)
from mindie_ha.sim.storage import Store, Stored
from mindie_ha.sim.watches import BUFFER, WatchHub

NAMES_FROM_THE_START = (
    "default", "kube-system", "kube-public", "kube-node-lease",
    "mindie", "mindx-dl", "volcano-system", "cluster-system",
)  # fmt: skip
_JSON = {"content-type": "application/json"}
_HEALTH = ("/healthz", "/readyz", "/livez")


class ApiServer:
    """An API server in memory; see `handle`. `audit` lists the writes, oldest first."""

    def __init__(
        self,
        *,
        clock: Clock,
        entropy: Entropy,
        documents: Documents | None = None,
        watch_buffer: int = BUFFER,
    ) -> None:
        store = Store()
        self.core = Core(
            clock=clock,
            entropy=entropy.child("api-server"),
            store=store,
            kinds=Kinds(),
            hub=WatchHub(store=store, clock=clock, buffer=watch_buffer),
            documents=Documents() if documents is None else documents,
            audit=new_audit(),
        )
        self.audit = self.core.audit
        self.disturbances = Disturbances(
            clock=clock, entropy=entropy.child("disturbances"), store=store, hub=self.core.hub
        )
        self.garbage = GarbageCollector(self.core)
        self.expiry = EventExpiry(self.core)
        crds.install(self.core)
        for name in NAMES_FROM_THE_START:
            writing.create(self.core, Route(NAMESPACES), {"metadata": {"name": name}}, NO_OPTIONS)

    async def run(self) -> None:
        """Collect garbage, empty deleted namespaces and expire Events, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.garbage.run(), name="garbage collector")
            tasks.create_task(self.expiry.run(), name="event expiry")

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Answer one request; refusals are answers too."""
        await asyncio.sleep(0)  # in memory nothing else would let watchers run between two writes
        try:
            return await self._answer(request)
        except StatusError as error:
            return _refusal(error)
        except RecursionError:
            return _refusal(bad_request("the object is nested too deeply"))

    async def _answer(self, request: ApiRequest) -> ApiResponse:
        path = request.path.rstrip("/") or "/"
        route = self.core.kinds.route(path)
        if request.method == "POST" and path in subresources.REVIEWS:
            body = decode(request.body, request.headers.get("content-type", ""))
            return _json(201, orjson.dumps(subresources.review(subresources.REVIEWS[path], body)))
        if route is None:
            return self._document(path, request)
        rule = self.disturbances.choose(route, request)
        if rule and not rule.applied:
            await self.disturbances.strike(rule)
        reads = request.method in ("GET", "HEAD")
        response = await (self._read if reads else self._write)(route, request)
        if rule and rule.applied:
            await self.disturbances.strike(rule)
        return response

    async def _read(self, route: Route, request: ApiRequest) -> ApiResponse:
        if request.query.get("watch", "").lower() in ("true", "1") and not route.name:
            return reading.watch(self.core, route, request)
        if not route.name:
            return await reading.list_(self.core, route, request)
        if route.subresource not in ("", "status"):
            raise method_not_allowed()
        return reading.get(self.core, route, request)

    async def _write(self, route: Route, request: ApiRequest) -> ApiResponse:
        code, uid, name = 500, "", route.name
        try:
            response, stored = await self._change(route, request)
            code = response.status
            if stored is not None:
                uid, name = stored.obj["metadata"].get("uid", ""), stored.obj["metadata"]["name"]
        except StatusError as error:
            code = error.code
            found = self.core.store.get(route.resource, route.namespace, route.name) if route.name else None
            uid = found.obj["metadata"]["uid"] if found else ""
            raise
        else:
            return response
        finally:
            self.audit.append(
                AuditEntry(
                    time=self.core.clock.wall(),
                    verb=_verb(request.method, route),
                    resource=qualified(route.resource),
                    namespace=route.namespace,
                    name=name,
                    subresource=route.subresource,
                    uid=uid,
                    user_agent=request.headers.get("user-agent", ""),
                    code=code,
                    dry_run="dryRun" in request.query,
                )
            )

    async def _change(self, route: Route, request: ApiRequest) -> tuple[ApiResponse, Stored | None]:
        core, content_type = self.core, request.headers.get("content-type", "")
        agent = request.headers.get("user-agent", "")
        options = WriteOptions.read(request.query, agent, method=request.method)
        allowed = ("", "status", "finalize")
        match request.method:
            case "POST" if not route.name and (route.namespace or not route.resource.namespaced):
                stored = writing.create(core, route, decode(request.body, content_type), options)
                if route.resource is crds.CRDS and not options.dry_run:
                    stored = crds.establish(core, stored)
                return self._stored(201, route, request, stored)
            case "PUT" if route.name and route.subresource in allowed:
                stored = writing.update(core, route, decode(request.body, content_type), options)
                return self._stored(200, route, request, stored)
            case "PATCH" if route.name and route.subresource in allowed:
                if media_type(content_type) == APPLY:
                    stored, new = writing.apply(core, route, request.body, options)
                    if new and route.resource is crds.CRDS and not options.dry_run:
                        stored = crds.establish(core, stored)
                    return self._stored(201 if new else 200, route, request, stored)
                stored = writing.patch(core, route, content_type, request.body, options)
                return self._stored(200, route, request, stored)
            case "DELETE" if not route.subresource and (route.namespace or not route.resource.namespaced):
                return await self._delete(route, request)
            case "POST" if route.subresource in ("binding", "eviction"):
                return self._act(route, decode(request.body, content_type), options)
        raise method_not_allowed()

    def _act(self, route: Route, body: Any, options: WriteOptions) -> tuple[ApiResponse, Stored | None]:
        if route.subresource == "binding":
            answer = subresources.bind(self.core, route, body, options)
            return _json(201, orjson.dumps(answer)), self.core.existing(*_place(route))
        answer, stored = subresources.evict(self.core, route, body)
        return _json(201, orjson.dumps(answer)), stored

    async def _delete(self, route: Route, request: ApiRequest) -> tuple[ApiResponse, Stored | None]:
        body: Any = decode(request.body, request.headers.get("content-type", "")) if request.body else {}
        options = deletions.DeleteOptions.read(body, request.query)
        if not route.name:
            listed = await reading.selected(self.core, route, request.query)
            gone = deletions.delete_collection(self.core, route, options, listed)
            agent = request.headers.get("user-agent", "")
            for stored in gone:
                self.core.record("delete", route.resource, stored, user_agent=agent, dry_run=options.dry_run)
            return _json(
                200, reading.listing(route, listed, {"resourceVersion": str(self.core.store.version)})
            ), None
        stored, removed = deletions.delete(self.core, route, options)
        if not removed or route.resource.kind == "Pod":
            return self._stored(200, route, request, stored)
        meta = stored.obj["metadata"]
        details: Object = {"name": meta["name"], "kind": route.resource.plural, "uid": meta["uid"]}
        if route.resource.group:
            details["group"] = route.resource.group
        return _json(200, orjson.dumps(success(details=details))), stored

    def _stored(
        self, code: int, route: Route, request: ApiRequest, stored: Stored
    ) -> tuple[ApiResponse, Stored]:
        return _json(code, reading.one(self.core, route, request, stored)), stored

    def _document(self, path: str, request: ApiRequest) -> ApiResponse:
        if path.startswith(_HEALTH):
            return ApiResponse(200, b"ok", {"content-type": "text/plain; charset=utf-8"})
        documents, kinds = self.core.documents, self.core.kinds.all()
        if path.startswith("/openapi/"):
            found = documents.openapi(path, request.query, request.headers, kinds)
        else:
            found = documents.discover(request, kinds)
        if found is None and not kinds_know(path, kinds):
            return ApiResponse(404, b"404 page not found\n", {"content-type": "text/plain; charset=utf-8"})
        return found or _refusal(no_such_path())


def kinds_know(path: str, kinds: tuple[Resource, ...]) -> bool:
    """Whether a path lies in a group and version that is served; elsewhere not even a Status is said."""
    return any(f"{path}/".startswith(f"{each.base_path}/") for each in kinds)


def _verb(method: str, route: Route) -> str:
    if method == "DELETE" and not route.name:
        return "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(
        method, method.lower()
    )


def _place(route: Route) -> tuple[Resource, str, str]:
    return route.resource, route.namespace, route.name


def _json(code: int, body: bytes) -> ApiResponse:
    return ApiResponse(code, body, _JSON)


def _refusal(error: StatusError) -> ApiResponse:
    return ApiResponse(error.code, orjson.dumps(error.status()), {**_JSON, **error.headers})
