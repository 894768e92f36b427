"""Where people ask for an isolation and take one back.

The answer is given when the node's ledger holds it, so nothing that was promised is lost with us; the taint
follows, set or lifted by whoever runs as the controller. Asking twice is asking once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mindie_ha.cluster.store import Store
from mindie_ha.engine.node_ledgers import NodeLedgers
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import Conflict, NotFound
from mindie_ha.model.ledgers import Isolation
from mindie_ha.model.settings import Settings
from mindie_ha.policy import isolating, persons


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the ledger holds now. `changed`: it did not hold it before."""

    node: str
    isolation: Isolation
    changed: bool


class IsolationDesk:
    """See the module. Every method raises InputError, NotFound, LedgerUnreadable, ClusterError."""

    def __init__(self, *, store: Store, nodes: NodeLedgers, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._nodes = nodes
        self._clock = clock
        self._settings = settings

    async def isolate(
        self, node: str, *, device: str, text: str, person: str, for_s: float | None
    ) -> Recorded:
        """Keep new work off a node, because of one card or as a whole; `for_s` None: until released."""
        now_s = self._clock.wall()
        wanted = isolating.for_person(
            node,
            device=device,
            text=text,
            person=person,
            for_s=for_s,
            settings=self._settings.faults,
            now_s=now_s,
        )
        uid = self._uid(node)
        isolating.card_of(self._store.node_view(node, now_s=now_s).node, device)
        async with self._writing(node):
            before = self._entry(node, wanted.id)
            ledger = await self._nodes.change(
                node, node_uid=uid, change=lambda ledger: isolating.asked_by_person(ledger, wanted)
            )
        entry = isolating.find(ledger, wanted.id) or wanted
        return Recorded(node, entry, changed=entry != before)

    async def release(self, node: str, isolation_id: str, *, person: str) -> Recorded:
        """Take one isolation back, whoever asked for it."""
        persons.named(person)
        uid = self._store.node_view(node, now_s=self._clock.wall()).node.uid
        async with self._writing(node):
            before = self._entry(node, isolation_id)
            if before is None:
                self._uid(node)
                what = f"node {node} has no isolation {isolation_id}; `mindie-ha faults --node {node}` and"
                raise NotFound(f"{what} GET /v1/nodes/{node} show what stands", status=404)
            now_s = self._clock.wall()
            ledger = await self._nodes.change(
                node,
                node_uid=uid,
                change=lambda ledger: isolating.released(ledger, isolation_id, person=person, now_s=now_s),
            )
        entry = isolating.find(ledger, isolation_id) or before
        return Recorded(node, entry, changed=before.overruled_at_s is None)

    def standing(self, node: str) -> tuple[Isolation, ...]:
        """The isolations of a node that are in force."""
        view = self._store.node_view(node, now_s=self._clock.wall())
        if view.ledger is None:
            self._uid(node)
            return ()
        return tuple(item for item in view.ledger.isolations if item.in_force)

    def _writing(self, node: str) -> asyncio.Lock:
        if self._settings.dry_run:
            raise Conflict("the controller runs with --dry-run: it records nothing", status=409)
        return self._nodes.lock(node)

    def _entry(self, node: str, isolation_id: str) -> Isolation | None:
        ledger = self._store.node_view(node, now_s=self._clock.wall()).ledger
        return isolating.find(ledger, isolation_id) if ledger is not None else None

    def _uid(self, node: str) -> str:
        found = self._store.node_view(node, now_s=self._clock.wall()).node
        if not found.exists:
            raise NotFound(f"there is no node {node[:253]}", status=404)
        return found.uid
