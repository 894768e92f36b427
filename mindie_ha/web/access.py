"""Who may use the HTTP API: names first, then the rate, the client's certificate, and the token.

Everybody may read (`http.open_reads`), so that probes, scrapes and `status` work at once; whoever changes
something shows a bearer token, which Kubernetes judges. `auto` means: in a pod every change needs a token;
elsewhere one from the same machine does not, unless a browser sends it for some page. A token that is shown
is judged in every mode but `off`, and its owner is the person that is recorded.

What a route is called in a role follows from its path: `POST /v1/workloads/{namespace}/{name}/reset` is
`create` of `workloads/reset` in that namespace; a pause is one of the namespace that it holds.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol

from aiohttp import web

from mindie_ha.channels.rates import TokenBucket
from mindie_ha.cluster.reviews import Attributes, User
from mindie_ha.intake import bodies
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import ClusterError, InputError
from mindie_ha.model.settings import HttpAuth
from mindie_ha.web.answers import problem

PROBES = frozenset({"/healthz", "/readyz"})
OPEN = PROBES | {"/metrics"}
READS = frozenset({"GET", "HEAD"})
VERBS = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
USER: web.RequestKey[User] = web.RequestKey("user", User)  # the owner of the token that was shown
MAX_TOKEN, ADDRESSES = 16_384, 1024
# Namespaces and objects are DNS names, a jobID is a label's value; both fit.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\Z")
_NAMED = ("namespace", "name", "node")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9@._-]")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Judge(Protocol):
    """`cluster.reviews.Reviews`."""

    async def who(self, token: str) -> User | None:
        """The owner of a token. Raises ClusterError."""
        ...

    async def may(self, user: User, wanted: Attributes) -> bool:
        """Whether a role allows it. Raises ClusterError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """The settings, and what decides `auto`."""

    auth: HttpAuth = HttpAuth.AUTO
    in_pod: bool = False
    open_reads: bool = True
    client_certificates: bool = False
    rate_per_s: float = 100.0


class Access:
    """The gate in front of every route."""

    def __init__(self, rules: AccessRules, *, judge: Judge, clock: Clock) -> None:
        self._rules = rules
        self._judge = judge
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    @web.middleware
    async def gate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer what may not pass, and let through the rest."""
        if request.path in PROBES:
            return await handler(request)
        refusal = _names(request) or self._rate(request) or self._certificate(request)
        if refusal is None:
            refusal = await self._token(request)
        return refusal if refusal is not None else await handler(request)

    def _rate(self, request: web.Request) -> web.Response | None:
        ip = request.remote or ""
        bucket = self._buckets.pop(ip, None) or TokenBucket(
            rate_per_s=self._rules.rate_per_s, clock=self._clock
        )
        self._buckets[ip] = bucket
        if len(self._buckets) > ADDRESSES:
            self._buckets.popitem(last=False)
        if bucket.allow():
            return None
        advice = f"at most {self._rules.rate_per_s:g} a second from one address"
        answer = problem(429, "too many requests", where=request.path, advice=advice)
        answer.headers["Retry-After"] = "1"
        return answer

    def _certificate(self, request: web.Request) -> web.Response | None:
        if not self._rules.client_certificates:
            return None
        transport = request.transport
        if transport is not None and transport.get_extra_info("peercert"):
            return None
        return problem(
            401, "a client certificate is needed", where=request.path, advice="http.tls_client_ca signs them"
        )

    async def _token(self, request: web.Request) -> web.Response | None:
        changes = request.method not in READS
        if self._rules.auth is HttpAuth.OFF:
            return None
        token, malformed = _bearer(request)
        if malformed:
            return _unknown(request, "the Authorization header is not `Bearer TOKEN`")
        if not token:
            return self._without(request, changes=changes)
        try:
            return await self._judged(request, token, changes=changes)
        except ClusterError as error:
            advice = "docs/security.md; nothing was changed"
            return problem(503, f"the token cannot be checked: {error}", where=request.path, advice=advice)

    async def _judged(self, request: web.Request, token: str, *, changes: bool) -> web.Response | None:
        user = await self._judge.who(token)
        if user is None:
            return _unknown(request, "the token is not valid")
        request[USER] = user
        if not changes:
            return None
        wanted = await attributes(request)
        if await self._judge.may(user, wanted):
            return None
        return problem(
            403, f"{user.name} may not {wanted}", where=request.path, advice="docs/security.md shows a role"
        )

    def _without(self, request: web.Request, *, changes: bool) -> web.Response | None:
        """A request that shows no token."""
        if not changes and (self._rules.open_reads or request.path in OPEN):
            return None
        if self._rules.auth is HttpAuth.AUTO and not self._rules.in_pod and _is_local(request):
            if not (changes and "Origin" in request.headers):
                return None
            return problem(403, "a page in a browser may not change anything", where=request.path)
        return _unknown(request, "a bearer token is needed")


async def attributes(request: web.Request) -> Attributes:
    """What a request wants, as roles name it."""
    info = request.match_info
    resource = info.route.resource
    kind, part = resource_of(resource.canonical if resource is not None else request.path)
    namespace, name = info.get("namespace", ""), info.get("name") or info.get("node", "")
    if kind == "pauses":
        namespace, name = _held(await _scope(request)), ""
    verb = VERBS.get(request.method, "update")
    return Attributes(verb=verb, resource=kind, subresource=part, namespace=namespace, name=name)


def resource_of(pattern: str) -> tuple[str, str]:
    """Resource and subresource of a route by its path, without what stands for names."""
    words = [part for part in pattern.strip("/").split("/") if not part.startswith("{")]
    kind, *rest = words[1:] or ["api"]
    return kind, rest[-1] if rest else ""


def person_of(request: web.Request, said: str, *, otherwise: str) -> str:
    """Who asks: the owner of the token, else who they say they are."""
    user = request.get(USER)
    if isinstance(user, User):
        return _NOT_IN_NAMES.sub(".", user.name).lstrip("@._-")[:63] or otherwise
    return said or otherwise


def _names(request: web.Request) -> web.Response | None:
    for part in _NAMED:
        value = request.match_info.get(part)
        if value is not None and not _NAME.match(value):
            advice = "letters, digits, . _ -, at most 253"
            return problem(400, f"{value[:64]!r} is no name", where=f"{part} in the path", advice=advice)
    return None


def _bearer(request: web.Request) -> tuple[str, bool]:
    """The token, and whether there is a header without one."""
    header = request.headers.get("Authorization", "")
    kind, _, token = header.partition(" ")
    token = token.strip()
    wrong = kind.lower() != "bearer" or not token.isascii() or not 0 < len(token) <= MAX_TOKEN
    return ("", bool(header)) if wrong else (token, False)


async def _scope(request: web.Request) -> str:
    """The scope of a pause: in the path or in the body; empty where there is none that can be read."""
    if "scope" in request.match_info:
        return request.match_info["scope"]
    try:
        found = bodies.parse_object((await request.read()).decode() or "{}", where=request.path).get("scope")
    except (InputError, UnicodeDecodeError):
        return ""
    return found if isinstance(found, str) else ""


def _held(scope: str) -> str:
    """The namespace of a scope; empty for the whole cluster, and for what is no scope at all."""
    kind, _, rest = scope.partition("/")
    namespace = rest.partition("/")[0] if kind in ("namespace", "service") else ""
    return namespace if _NAME.match(namespace) else ""


def _is_local(request: web.Request) -> bool:
    try:
        address = ip_address((request.remote or "").partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _unknown(request: web.Request, what: str) -> web.Response:
    advice = "Authorization: Bearer TOKEN, or `--token-file`; docs/security.md"
    answer = problem(401, what, where=request.path, advice=advice)
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
