"""What holds deletions of a whole scope: a person's pause, or a maintenance window (`windows.py`). Pure.

A hold never stops what only looks, tells, isolates or gives back: recoveries open, and do what they do before
and after their deletions. Where the record of pauses cannot be read everything is held: a person may
have paused for a reason that we cannot see, and waiting is the smaller harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey, ScopeKey
from mindie_ha.model.pauses import CLUSTER, MAX_PAUSES, MAX_RESUMED, Pause, PauseLedger, Pauses, Resumed
from mindie_ha.policy import persons

HELD_BY_PAUSE = "HeldByPause"
HELD_BY_WINDOW = "HeldByMaintenance"
MAX_NAME = 253
_LAST_S = 253402300799.0  # the end of the year 9999: a ledger may hold any number


@dataclass(frozen=True, slots=True)
class Hold:
    """Whether deletions are held, by which named condition, and when to look again. `ended`: who ended the
    last one by hand."""

    condition: str = ""
    message: str = ""
    wake_at_s: float | None = None
    ended: str = ""
    ended_at_s: float = 0.0

    @property
    def on(self) -> bool:
        """Whether deletions are held."""
        return bool(self.condition)


def scope_of(*, namespace: str = "", service: str = "") -> str:
    """The scope that people name; without any the cluster. Raises InputError."""
    if not (namespace or service):
        return CLUSTER
    if namespace and service:
        raise InputError("give one of cluster, namespace and service", where="scope")
    return checked(f"service/{service}" if service else f"namespace/{namespace}")


def checked(scope: str) -> str:
    """`scope` where it is one. Raises InputError."""
    kind, *names = scope.split("/")
    count = {CLUSTER: 0, "namespace": 1, "service": 2}.get(kind)
    fits = all(0 < len(name) <= MAX_NAME and name.isprintable() for name in names)
    if len(names) != count or not fits or " " in scope:
        advice = "cluster, namespace/NAMESPACE or service/NAMESPACE/JOBID"
        raise InputError(f"{scope[:64]!r} is no scope", where="scope", advice=advice)
    return scope


def command(scope: str) -> str:
    """How a person ends a pause."""
    kind, _, rest = scope.partition("/")
    return f"mindie-ha resume --{kind}" + (f" {rest}" if rest else "")


def for_person(scope: str, *, text: str, person: str, for_s: float | None, now_s: float) -> Pause:
    """The pause that a person asks for; `for_s` None: until it is resumed. Raises InputError."""
    lasts_s = persons.lasting(for_s)
    return Pause(
        scope=checked(scope),
        text=persons.reason(text),
        person=persons.named(person),
        since_s=now_s,
        ends_at_s=None if lasts_s is None else now_s + lasts_s,
    )


def standing(ledger: PauseLedger, *, now_s: float) -> tuple[Pause, ...]:
    """The pauses that count now."""
    return tuple(one for one in ledger.pauses if one.ends_at_s is None or now_s < one.ends_at_s)


def find(ledger: PauseLedger, scope: str, *, now_s: float) -> Pause | None:
    """The pause of exactly this scope that counts now."""
    return next((one for one in standing(ledger, now_s=now_s) if one.scope == scope), None)


def paused(ledger: PauseLedger, wanted: Pause, *, now_s: float) -> PauseLedger:
    """The ledger with a pause; one of the same scope that counts keeps its start. Raises InputError."""
    before = find(ledger, wanted.scope, now_s=now_s)
    if before is not None:
        ends = (before.ends_at_s, wanted.ends_at_s)
        same_end = None not in ends and abs((ends[0] or 0.0) - (ends[1] or 0.0)) < 1.0
        kept = {"since_s": before.since_s, "ends_at_s": ends[0] if same_end else ends[1]}
        wanted = wanted.model_copy(update=kept)
        if wanted == before:
            return ledger
    others = tuple(one for one in standing(ledger, now_s=now_s) if one.scope != wanted.scope)
    if len(others) >= MAX_PAUSES:
        raise InputError(f"there are {MAX_PAUSES} pauses already", where="scope", advice="pause the cluster")
    return ledger.model_copy(update={"pauses": (*others, wanted)})


def resumed(ledger: PauseLedger, scope: str, *, person: str, now_s: float) -> PauseLedger:
    """The ledger without the pause of exactly this scope, and with who ended it. Raises InputError."""
    who = persons.named(person)
    pause = find(ledger, scope, now_s=now_s)
    if pause is None:
        return ledger
    kept = tuple(one for one in standing(ledger, now_s=now_s) if one.scope != scope)
    return PauseLedger(
        pauses=kept, resumed=(*ledger.resumed, Resumed(pause=pause, person=who, at_s=now_s))[-MAX_RESUMED:]
    )


def _over(scope: ScopeKey) -> tuple[str, ...]:
    """The scopes that a service or job is in, widest first."""
    key = ObjectKey(scope.namespace, scope.name)
    return CLUSTER, f"namespace/{scope.namespace}", f"service/{key}"


def covering(ledger: PauseLedger, scope: ScopeKey, *, now_s: float) -> tuple[Pause, ...]:
    """The pauses under which a service or job stands, widest first."""
    covers = _over(scope)
    found = (one for one in standing(ledger, now_s=now_s) if one.scope in covers)
    return tuple(sorted(found, key=lambda one: covers.index(one.scope)))


def judge(pauses: Pauses, scope: ScopeKey, *, now_s: float) -> Hold:
    """What holds the deletions of a service or job now."""
    if pauses.error:
        return Hold(HELD_BY_PAUSE, f"deletions are held, the record of pauses is unreadable: {pauses.error}")
    found = covering(pauses.ledger, scope, now_s=now_s)
    if not found:
        return _ended(pauses.ledger, scope)
    ends = [one.ends_at_s for one in found if one.ends_at_s is not None]
    said = "; ".join(f"{one.scope} by {one.person.removeprefix(persons.PERSON)}: {one.text}" for one in found)
    commands = ", ".join(f"`{command(one.scope)}`" for one in found)
    until = f"{_moment(max(ends))} or {commands}" if len(ends) == len(found) else commands
    return Hold(HELD_BY_PAUSE, f"paused ({said}), until {until}", min(ends, default=None))


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(min(at_s, _LAST_S), tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _ended(ledger: PauseLedger, scope: ScopeKey) -> Hold:
    """No hold, and who ended the last pause of a service or job by hand."""
    covers = _over(scope)
    for one in reversed(ledger.resumed):
        if one.pause.scope in covers:
            who, asked = (name.removeprefix(persons.PERSON) for name in (one.person, one.pause.person))
            text = f"{who} resumed {one.pause.scope}, which {asked} had paused: {one.pause.text}"
            return Hold(ended=text, ended_at_s=one.at_s)
    return Hold()
