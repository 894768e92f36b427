"""Changes of node ledgers: one at a time for each node, each on what was written last.

Recoveries, people and the node planner all write the same ledger. Here they queue up, and a conflict with
another process is met by taking the newest and changing that; three in a row are given back to the caller.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import Conflict, LedgerUnreadable
from mindie_ha.model.ledgers import NodeLedger
from mindie_ha.model.views import NodeView
from mindie_ha.policy import isolating

ATTEMPTS = 3
Change = Callable[[NodeLedger], NodeLedger]


class NodeLedgers:
    """See the module."""

    def __init__(self, *, store: Store, ledgers: Ledgers, clock: Clock) -> None:
        self._store = store
        self._ledgers = ledgers
        self._clock = clock
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def lock(self, node: str) -> asyncio.Lock:
        """Held while somebody changes what stands on a node."""
        return self._locks[node]

    def check(self, view: NodeView) -> None:
        """Conflict where the node's ledger is no longer that of `view`."""
        now = self._store.node_view(view.node.name, now_s=self._clock.wall())
        if now.ledger_version != view.ledger_version:
            what = f"the ledger of node {view.node.name} changed since it was looked at"
            raise Conflict(what, status=409)

    async def save(self, ledger: NodeLedger, *, version: str) -> None:
        """Write `ledger` in the place of the version that was looked at; the caller holds the lock."""
        await self._ledgers.save_node(ledger, version=version)

    async def change(self, node: str, *, node_uid: str, change: Change) -> NodeLedger:
        """Apply `change` to the newest ledger and write it where it differs; the caller holds the lock.

        Raises LedgerUnreadable, Conflict and other ClusterErrors: then nothing was written.
        """
        for attempt in range(ATTEMPTS):
            before, version = self._newest(node, node_uid)
            after = change(before)
            if after == before:
                return after
            try:
                await self._ledgers.save_node(after, version=version)
            except Conflict:
                if attempt + 1 == ATTEMPTS:
                    raise
                continue
            return after
        raise AssertionError("unreachable")

    def _newest(self, node: str, node_uid: str) -> tuple[NodeLedger, str]:
        view = self._store.node_view(node, now_s=self._clock.wall())
        if view.ledger_error:
            raise LedgerUnreadable(view.ledger_error)
        ledger = view.ledger or NodeLedger(node=node, node_uid=node_uid)
        return isolating.born_again(ledger, node_uid=node_uid), view.ledger_version
