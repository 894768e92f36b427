"""Faults on purpose: what networks and overloaded API servers do to clients.

Scripted rules (the next N matching requests) or seeded ones (a share of them) delay, refuse or reset
requests; a refusal may come after the request was carried out, which is the hard case for a client. Watches
can be cut, also in the middle of a line, or fall silent; the history can be expired. Nothing here is random
unless asked for, and then it repeats with the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.requests import ApiRequest
from mindie_ha.sim.statuses import MODIFIED, StatusError, too_many_requests
from mindie_ha.sim.storage import Store
from mindie_ha.sim.watches import Watcher, WatchHub

_REASONS = {
    400: ("BadRequest", 'admission webhook "keep.example.com" denied the request: injected'),
    403: ("Forbidden", "User cannot do this here: injected"),
    409: ("Conflict", MODIFIED),
    500: ("InternalError", "Internal error occurred: injected"),
    502: ("InternalError", "bad gateway: injected"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request: injected"),
    504: ("Timeout", "request did not complete within the allotted timeout: injected"),
}


@dataclass(slots=True)
class Rule:
    """Which requests to disturb and how; an empty pattern matches everything.

    `times` None means for ever; `share` is the part of matching requests that is hit. `code` 0 only delays;
    `reset` drops the connection; `applied` lets the request take effect before the refusal or reset.
    `method` is an HTTP method or `WATCH`; `resource` a plural.
    """

    method: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""
    code: int = 0
    delay_s: float = 0.0
    retry_after_s: int = 1
    reset: bool = False
    applied: bool = False
    times: int | None = 1
    share: float = 1.0
    hits: int = field(default=0, init=False)

    def matches(self, route: Route, request: ApiRequest) -> bool:
        """Whether this rule speaks about the request and is not used up."""
        wanted = (self.method, self.resource, self.name, self.namespace)
        watches = request.query.get("watch", "").lower() in ("true", "1")
        given = ("WATCH" if watches else request.method, route.resource.plural, route.name, route.namespace)
        used_up = self.times is not None and self.hits >= self.times
        return not used_up and all(want in ("", have) for want, have in zip(wanted, given, strict=True))


class Disturbances:
    """The rules in force; the first that matches wins."""

    def __init__(self, *, clock: Clock, entropy: Entropy, store: Store, hub: WatchHub) -> None:
        self._clock = clock
        self._entropy = entropy
        self._store = store
        self._hub = hub
        self.rules: list[Rule] = []

    def add(self, rule: Rule) -> Rule:
        """Put a rule in force; its `hits` tell how often it struck."""
        self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """Leave requests alone again."""
        self.rules.clear()

    def choose(self, route: Route, request: ApiRequest) -> Rule | None:
        """The rule that strikes this request, counted."""
        for rule in self.rules:
            if rule.matches(route, request) and (rule.share >= 1 or self._entropy.uniform(0, 1) < rule.share):
                rule.hits += 1
                return rule
        return None

    async def strike(self, rule: Rule) -> None:
        """Delay, then refuse: raises StatusError or ConnectionResetError where the rule says so."""
        if rule.delay_s:
            await self._clock.sleep(rule.delay_s)
        if rule.reset:
            raise ConnectionResetError("injected: connection reset by the API server")
        if rule.code == 429:
            raise too_many_requests("too many requests: injected", retry_after_s=rule.retry_after_s)
        if rule.code:
            reason, message = _REASONS.get(rule.code, ("InternalError", "injected"))
            headers = {"retry-after": str(rule.retry_after_s)} if rule.code == 503 else {}
            raise StatusError(rule.code, reason, message, headers=headers)

    def cut_watches(self, resource: str = "", *, mid_line: bool = False) -> int:
        """End open watches; `mid_line` breaks the connection within an event. Returns how many."""
        chosen = self._watchers(resource)
        for watcher in chosen:
            watcher.end(mid_line=mid_line)
        return len(chosen)

    def silence_watches(self, resource: str = "", *, for_s: float) -> int:
        """Send nothing on open watches for a while, and everything afterwards. Returns how many."""
        chosen = self._watchers(resource)
        for watcher in chosen:
            watcher.silent_until_s = self._clock.monotonic() + for_s
        return len(chosen)

    def expire_history(self) -> None:
        """Compact: every version before now is too old for watches and pages."""
        self._store.compact()

    def _watchers(self, resource: str) -> list[Watcher]:
        return [each for each in self._hub.watchers() if resource in ("", each.options.resource.plural)]
