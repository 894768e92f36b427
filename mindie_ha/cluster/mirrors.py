"""The mirror: all informers together, keeping the store equal to the cluster.

Nothing may act before every source was listed once: half a picture looks like missing pods. A source that
cannot be listed is named, with the reason, instead of waiting in silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.informers import Informer
from mindie_ha.cluster.sources import SOURCES, Source
from mindie_ha.cluster.store import Store
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import OnEnd, Supervisor
from mindie_ha.model.settings import ClusterSettings


class Mirror:
    """One informer per source, feeding one store."""

    def __init__(
        self,
        *,
        client: Client,
        store: Store,
        clock: Clock,
        entropy: Entropy,
        settings: ClusterSettings,
        log: Log,
        metrics: Metrics,
        sources: Sequence[Source] = SOURCES,
    ) -> None:
        self.informers = tuple(
            Informer(
                source,
                client=client,
                clock=clock,
                entropy=entropy.child(source.name),
                settings=settings,
                log=log,
                metrics=metrics,
                on_change=store.on_change,
                on_refused=store.on_refused,
                on_listed=store.on_listed,
                on_rewound=store.on_rewound,
            )
            for source in sources
        )

    def start(self, supervisor: Supervisor) -> None:
        """Run every informer as a task of the supervisor."""
        for informer in self.informers:
            supervisor.start(f"informer-{informer.source.name}", informer.run, on_end=OnEnd.RESTART)

    @property
    def synced(self) -> bool:
        """Whether every source was listed at least once."""
        return all(informer.synced.is_set() for informer in self.informers)

    async def wait_synced(self, *, timeout_s: float) -> dict[str, str]:
        """Wait until all are listed, at most so long (not scaled); the rest, each with its reason."""
        waits = [asyncio.ensure_future(informer.synced.wait()) for informer in self.informers]
        try:
            await asyncio.wait(waits, timeout=timeout_s)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return {
            informer.source.name: informer.problem or "no answer yet"
            for informer in self.informers
            if not informer.synced.is_set()
        }

    def problems(self) -> dict[str, str]:
        """What keeps a source from working now, by source."""
        return {one.source.name: one.problem for one in self.informers if one.problem}

    def absent(self) -> frozenset[str]:
        """The sources whose kinds are not installed."""
        return frozenset(one.source.name for one in self.informers if one.problem and one.absent)

    def away_at_s(self) -> float | None:
        """Wall time since which the API server answers hardly anybody; what we know is as old as that."""
        away = [one.away_at_s for one in self.informers if one.problem and one.away_at_s is not None]
        return min(away) if 2 * len(away) > len(self.informers) else None

    def idlest_s(self) -> float:
        """Seconds since the least active source last asked its server; liveness looks at it."""
        return max(informer.idle_s for informer in self.informers)


__all__ = ["Mirror"]
