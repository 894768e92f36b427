"""The HTTP face: health, metrics, state and tables as JSON.

    GET  /healthz /readyz /metrics
    GET  /v1/services                              every service and job
    GET  /v1/services/{ns}/{job_id}                one of them
    GET  /v1/services/{ns}/{job_id}/ranktable      the published table, byte for byte; ETag is its digest;
                                                   with If-None-Match and ?wait=S it answers when it changes
    POST /v1/services/{ns}/{job_id}/ranktable/push hand the current table over to every destination again
    POST /v1/faults                                report public faults; the body is a ConfigMap's message
    …    /v1/faults /v1/nodes                      faults of the fleet, isolations: see `nodes.py`
    POST /v1/workloads/{ns}/{name}/reset           re-arm a parked one: see `workloads.py`
    POST /v1/workloads/{ns}/{name}/adopt           hand it to us: see `adoptions.py`
    POST /v1/workloads/{ns}/{name}/recover         ask for a recovery: see `requesting.py`
    …    /v1/pauses                                who holds deletions, and of what: see `pauses.py`
    GET  /v1/plan /v1/history                      and why of a workload: see `explaining.py`
    GET  /v1/decisions?subject=NS/NAME&limit=N     newest decisions, oldest first

Errors are `{"error": {"what", "where", "advice"}}`. Handlers read snapshots and never touch the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from mindie_ha.channels.errors import LimitReached
from mindie_ha.channels.ports import FaultPort, ReportAnswer, ReportCode, ServiceRef, TableVersion
from mindie_ha.engine.records import Recorder
from mindie_ha.engine.sinks import as_json
from mindie_ha.intake import bodies
from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey, ScopeKey, job_key, service_key
from mindie_ha.web import adoptions, explaining, nodes, pauses, requesting, standing, workloads
from mindie_ha.web.access import USER, Access
from mindie_ha.web.answers import json_response, problem
from mindie_ha.web.explanations import Explainer
from mindie_ha.web.fault_reports import FleetReporter
from mindie_ha.web.overviews import Overviews
from mindie_ha.web.reports import Reporter

MAX_WAIT_S = 60.0
READS = ("GET", "HEAD", "OPTIONS")
DEFAULT_DECISIONS = 100
STATUS_OF = {
    ReportCode.OK: 200,
    ReportCode.INVALID: 400,
    ReportCode.TOO_MANY: 429,
    ReportCode.NOT_KEPT: 503,
}


class Peers(Protocol):
    """`engine.peer_checks.PeerCheck`."""

    def refusal(self, service: ScopeKey, ip: str) -> str:
        """Why an address gets nothing of a service; empty where it does."""
        ...


class TableSource(Protocol):
    """Tables as published."""

    def current(self, service: ServiceRef) -> TableVersion | None:
        """The table published last."""
        ...

    async def wait_newer(self, service: ServiceRef, digest: str, deadline_s: float) -> TableVersion | None:
        """The next table with another digest, or None after `deadline_s`."""
        ...

    def push_again(self, service: ServiceRef) -> int:
        """Offer the current table to every destination again; how many there are."""
        ...


@dataclass(frozen=True, slots=True)
class Health:
    """Whether we are alive and able to do our job; `reasons` names what is missing."""

    live: bool
    ready: bool
    reasons: tuple[str, ...] = ()
    leads: bool = True
    leader: str = ""  # whoever leads, as far as we know
    dry_run: bool = False
    absent: frozenset[str] = frozenset()  # those of `reasons` that are normal: kinds that nobody installed
    away_at_s: float | None = None  # wall time since which the API server does not answer

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons that a person should look at."""
        return tuple(reason for reason in self.reasons if reason not in self.absent)

    @property
    def role(self) -> str:
        """What this replica is."""
        if self.dry_run:
            return "dry-run"
        return "leader" if self.leads else "standby"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Everything that the pages and the API read."""

    reports: Reporter
    tables: TableSource
    recorder: Recorder
    registry: CollectorRegistry
    health: Callable[[], Health]
    faults: FaultPort
    fleet: FleetReporter
    desk: nodes.Desk
    rearm: workloads.Desk
    adoptions: adoptions.Desk
    requests: requesting.Desk
    pauses: pauses.Desk
    explainer: Explainer
    access: Access
    peers: Peers


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SOURCES: web.AppKey[Sources] = web.AppKey("sources", Sources)
OVERVIEWS: web.AppKey[Overviews] = web.AppKey("overviews", Overviews)


def make_app(sources: Sources, *, max_body_bytes: int) -> web.Application:
    """The application, ready to be served."""
    middlewares = [_plain_errors, sources.access.gate, _leader_only]
    app = web.Application(client_max_size=max_body_bytes, middlewares=middlewares)
    app[SOURCES] = sources
    app[OVERVIEWS] = Overviews(sources.reports)
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/readyz", _readyz),
            web.get("/metrics", _metrics),
            web.get("/v1/services", _services),
            web.get("/v1/services/{namespace}/{name}", _service),
            web.get("/v1/services/{namespace}/{name}/ranktable", _ranktable),
            web.post("/v1/services/{namespace}/{name}/ranktable/push", _push),
            web.post("/v1/faults", _report_faults),
            web.get("/v1/decisions", _decisions),
        ]
    )
    nodes.install(app, fleet=sources.fleet, desk=sources.desk)
    workloads.install(app, desk=sources.rearm)
    adoptions.install(app, desk=sources.adoptions)
    requesting.install(app, desk=sources.requests)
    pauses.install(app, desk=sources.pauses)
    explaining.install(app, explainer=sources.explainer)
    return app


@web.middleware
async def _plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return problem(
            error.status, error.reason, where=request.path, advice="see docs/api.md for the routes"
        )


@web.middleware
async def _leader_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A standby can be asked, but changes nothing."""
    health = request.app[SOURCES].health()
    if request.method in READS or health.leads:
        return await handler(request)
    leader = f"{health.leader} does" if health.leader else "nobody does now"
    what, advice = f"this replica does not lead; {leader}", "send it there, or again in a few seconds"
    return problem(503, what, where=request.path, advice=advice)


async def _healthz(request: web.Request) -> web.Response:
    health = request.app[SOURCES].health()
    return json_response({"live": health.live, "reasons": health.reasons}, status=200 if health.live else 503)


async def _readyz(request: web.Request) -> web.Response:
    health = request.app[SOURCES].health()
    return json_response(
        {
            "ready": health.ready,
            "role": health.role,
            "leader": health.leader,
            "reasons": health.reasons,
        },
        status=200 if health.ready else 503,
    )


async def _metrics(request: web.Request) -> web.Response:
    body = generate_latest(request.app[SOURCES].registry)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def _services(request: web.Request) -> web.Response:
    app = request.app
    found, health = await app[OVERVIEWS].gather(), app[SOURCES].health()
    said = standing.report(
        health.problems, role=health.role, leader=health.leader, away_at_s=health.away_at_s
    )
    return json_response(standing.beside(found, said))


async def _service(request: web.Request) -> web.Response:
    namespace, name = request.match_info["namespace"], request.match_info["name"]
    reports = request.app[SOURCES].reports
    for scope in (service_key(namespace, name), job_key(ObjectKey(namespace, name))):
        found = reports.report(scope)
        if found is not None:
            return json_response(found.model_dump(mode="json"))
    return _no_service(namespace, name)


async def _ranktable(request: web.Request) -> web.Response:
    tables = request.app[SOURCES].tables
    service = ServiceRef(request.match_info["namespace"], request.match_info["name"])
    known = _known_digest(request)
    if refusal := _not_theirs(request, service):
        return problem(403, refusal, where=request.path, advice="ask with a token (docs/security.md)")
    try:
        wait_s = min(float(request.query.get("wait", "0")), MAX_WAIT_S)
    except ValueError:
        return problem(
            400, "wait is not a number of seconds", where=request.path_qs, advice="for example ?wait=30"
        )
    table = tables.current(service)
    if wait_s > 0 and (table is None or table.digest == known):
        try:
            table = await tables.wait_newer(service, known, wait_s) or table
        except LimitReached as error:
            return problem(429, str(error), where=request.path, advice="ask again later, without ?wait=")
    if table is None:
        return problem(
            404,
            f"no table was published for {service}",
            where=request.path,
            advice="ask `mindie-ha status` why",
        )
    headers = {"ETag": f'"{table.digest}"', "X-Mindie-Ha-Generation": str(table.generation)}
    headers["X-Mindie-Ha-Digest"] = table.digest
    if known == table.digest:
        return web.Response(status=304, headers=headers)
    return web.Response(text=table.text, content_type="application/json", headers=headers)


def _not_theirs(request: web.Request, service: ServiceRef) -> str:
    """Why a table is not for the address that asks, who shows no token either."""
    if USER in request:
        return ""
    scope = service_key(service.namespace, service.job_id)
    return request.app[SOURCES].peers.refusal(scope, request.remote or "")


async def _push(request: web.Request) -> web.Response:
    tables = request.app[SOURCES].tables
    service = ServiceRef(request.match_info["namespace"], request.match_info["name"])
    table = tables.current(service)
    if table is None:
        return problem(404, f"no table was published for {service}", where=request.path)
    destinations = tables.push_again(service)
    answer = {"generation": table.generation, "digest": table.digest, "destinations": destinations}
    return json_response(answer, status=202)


async def _decisions(request: web.Request) -> web.Response:
    try:
        limit = int(request.query.get("limit", str(DEFAULT_DECISIONS)))
    except ValueError:
        return problem(
            400, "limit is not a whole number", where=request.path_qs, advice="for example ?limit=50"
        )
    records = list(request.app[SOURCES].recorder.recent(subject=request.query.get("subject", "")))
    newest = records[-limit:] if limit > 0 else []
    return json_response({"decisions": [as_json(record) for record in newest]})


def _known_digest(request: web.Request) -> str:
    """The first entity tag of If-None-Match; proxies may have made it a weak one."""
    first = request.headers.get("If-None-Match", "").split(",")[0].strip()
    return first.removeprefix("W/").strip('"')


async def _report_faults(request: web.Request) -> web.Response:
    where = request.path
    try:
        body = bodies.parse_object((await request.read()).decode(), where=where)
    except UnicodeDecodeError:
        return _fault_answer(ReportAnswer(ReportCode.INVALID, "the body is not UTF-8"), where=where)
    except InputError as error:
        return _fault_answer(ReportAnswer(ReportCode.INVALID, error.what), where=where)
    answer = await request.app[SOURCES].faults.report(body, entry="http")
    return _fault_answer(answer, where=where)


def _fault_answer(answer: ReportAnswer, *, where: str) -> web.Response:
    """The answer of the wire in the body, and the status that says the same to HTTP clients."""
    body: dict[str, object] = {
        "code": int(answer.code),
        "info": answer.info,
        "accepted": answer.accepted,
        "left_out": answer.left_out,
    }
    if answer.code is not ReportCode.OK:
        advice = "docs/api.md describes the message" if answer.code is ReportCode.INVALID else "send it again"
        body["error"] = {"what": answer.info, "where": where, "advice": advice}
    return json_response(body, status=STATUS_OF[answer.code])


def _no_service(namespace: str, name: str) -> web.Response:
    return problem(
        404,
        f"there is no service or job {namespace}/{name}",
        where=f"/v1/services/{namespace}/{name}",
        advice="GET /v1/services lists them; a service is named by its namespace and jobID label",
    )
