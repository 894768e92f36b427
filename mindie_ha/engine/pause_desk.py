"""Where people pause deletions and resume them.

The answer is given when the ledger of pauses holds it; whoever runs as the controller sees it with its watch.
Asking twice is asking once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import Conflict, LedgerUnreadable, NotFound
from mindie_ha.model.ids import ObjectKey, ScopeKind
from mindie_ha.model.pauses import Pause, PauseLedger
from mindie_ha.model.settings import Settings
from mindie_ha.policy import holds, persons

ATTEMPTS = 5
Change = Callable[[PauseLedger], PauseLedger]


@dataclass(frozen=True, slots=True)
class Paused:
    """What the ledger held and holds for a scope. `pause`: the one that stands, or that was taken back;
    `replaced`: the one that stood before, where it was another; `note`: what a person should know."""

    scope: str
    pause: Pause | None
    changed: bool
    replaced: Pause | None = None
    note: str = ""


class PauseDesk:
    """See the module. Changes raise InputError, NotFound, LedgerUnreadable, ClusterError."""

    def __init__(self, *, store: Store, ledgers: Ledgers, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._ledgers = ledgers
        self._clock = clock
        self._settings = settings

    async def pause(self, scope: str, *, text: str, person: str, for_s: float | None) -> Paused:
        """Hold the deletions of `scope`; `for_s` None: until it is resumed."""
        now_s = self._clock.wall()
        wanted = holds.for_person(scope, text=text, person=person, for_s=for_s, now_s=now_s)
        self._check_service(scope)
        before, after = await self._change(lambda ledger: holds.paused(ledger, wanted, now_s=now_s))
        changed = before != after
        return Paused(
            scope,
            holds.find(after, scope, now_s=now_s),
            changed=changed,
            replaced=holds.find(before, scope, now_s=now_s) if changed else None,
            note=self._empty(scope),
        )

    async def resume(self, scope: str, *, person: str) -> Paused:
        """Take the pause of exactly this scope back; wider ones stand."""
        persons.named(person)
        now_s = self._clock.wall()
        holds.checked(scope)
        before, after = await self._change(
            lambda ledger: holds.resumed(ledger, scope, person=person, now_s=now_s)
        )
        return Paused(scope, holds.find(before, scope, now_s=now_s), changed=before != after)

    def standing(self) -> tuple[tuple[Pause, ...], str]:
        """The pauses that count now, and why their record cannot be read (then everything is held)."""
        pauses = self._store.pauses()
        return holds.standing(pauses.ledger, now_s=self._clock.wall()), pauses.error

    async def _change(self, change: Change) -> tuple[PauseLedger, PauseLedger]:
        """The ledger before and after."""
        if self._settings.dry_run:
            raise Conflict("the controller runs with --dry-run: it records nothing", status=409)
        for attempt in range(ATTEMPTS):
            pauses = self._store.pauses()
            if pauses.error:
                raise LedgerUnreadable(pauses.error)
            after = change(pauses.ledger)
            if after == pauses.ledger:
                return after, after
            try:
                await self._ledgers.save_pauses(after, version=pauses.version)
            except Conflict:
                if attempt + 1 == ATTEMPTS:
                    raise
                continue
            return pauses.ledger, after
        raise AssertionError("unreachable")

    def _empty(self, scope: str) -> str:
        """A namespace may be paused before anything is in it, but it may be a slip of the pen, too."""
        kind, _, name = scope.partition("/")
        if kind != "namespace" or any(one.namespace == name for one in self._store.scopes()):
            return ""
        return f"no service or job is in namespace {name} now; the pause is for those that come"

    def _check_service(self, scope: str) -> None:
        """A name that nobody has is a slip of the pen."""
        kind, _, name = scope.partition("/")
        if kind != "service":
            return
        key = ObjectKey.parse(name)
        known = {ObjectKey(one.namespace, one.name) for one in self._store.scopes() if one.kind in _KINDS}
        if key not in known:
            raise NotFound(f"there is no service or job {name[:317]}", status=404)


_KINDS = (ScopeKind.SERVICE, ScopeKind.JOB)

__all__ = ["PauseDesk", "Paused"]
