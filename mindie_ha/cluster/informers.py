"""List and watch: a cache per kind that is always right again after any disturbance.

Nested loops, one duty each: `run` lists and watches for ever, `_listed` takes one full list (paged),
`_followed` resumes watches from the last version until a list is needed, `watch_once` is one HTTP stream.
All of it is one task, so two lists never run at once.

Every trouble is met at exactly one level:
  cut stream, 5xx, silence   resume from the last version after back-off   (`_watched`)
  silence again              list anew: something swallows our watches     (`_unheard`)
  failures in a row          list anew: another server may come back       (`_broken`)
  clean end                  resume at once, unless it ended before it began   (`_newsless`)
  410, unparsable line       list anew and tell the difference             (`run`)
  429                        wait as long as told; no failure              (`_pause`)
  403                        named in `problem`, tried again slowly        (`_pause`)
  a version that goes back   forget all versions: the cluster was restored or replaced   (`_rewound`)
  404 of a CRD               quiet; what is known is kept, empty counts as synced   (`_pause`)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing

from mindie_ha.cluster.caches import Cache, OnChange
from mindie_ha.cluster.client import Client
from mindie_ha.cluster.slim import Page, SlimObject, version_number
from mindie_ha.cluster.sources import Source
from mindie_ha.cluster.transports import Silent
from mindie_ha.cluster.watches import Bookmark, Changed, Unparsable, watch_once
from mindie_ha.kit.backoff import Backoff
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import ClusterError, Denied, Gone, InputError, NotFound, Throttled, Unreachable
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import ClusterSettings

MAX_SILENCES = 2  # then watches are not to be trusted here, and a list tells
EARLY_S = 1.0  # a watch that ends sooner than this, and brought nothing, was not meant
EMPTY_S = 5.0  # at most so long between such watches
MAX_BREAKS = 3  # failures in a row: a server that was away may come back as another one, so a list tells
ABSENT_S = 10.0  # between looks for a CRD that is not installed


OnListed = Callable[[Source, int], None]  # a full list was applied; its version as a number
OnRewound = Callable[[Source], None]  # the server's history went back, before the list is applied
OnRefused = Callable[[Source, ObjectKey | None, InputError], None]


class Informer:
    """Keeps the objects of one source. `synced` is set after the first complete list."""

    def __init__(
        self,
        source: Source,
        *,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        settings: ClusterSettings,
        log: Log,
        metrics: Metrics,
        on_change: OnChange,
        on_refused: OnRefused,
        on_listed: OnListed = lambda _source, _version: None,
        on_rewound: OnRewound = lambda _source: None,
    ) -> None:
        self.source = source
        self.synced = asyncio.Event()
        self.problem = ""  # what keeps it from working, for people; empty while it works
        self.away_at_s: float | None = None  # wall time since which its server does not answer
        self.absent = False  # its kind is not installed, which is nobody's fault
        self.lists = 0  # full lists taken
        self._client = client
        self._clock = clock
        self._settings = settings
        self._log = log.bind(source=source.name)
        self._metrics = metrics
        self._on_refused = on_refused
        self._on_change = on_change
        self._malformed: set[ObjectKey] = set()  # refused as they are now
        self._on_listed = on_listed
        self._on_rewound = on_rewound
        self._backoff = Backoff(entropy=entropy, first_s=0.1, max_s=30.0)
        self._cache = Cache(source, on_change=on_change)
        self._entropy = entropy
        self._version = ""  # where the next watch begins
        self._silences = 0  # watches in a row on which nothing came
        self._contact_s = clock.monotonic()
        self._active_s = clock.monotonic()
        self._listed_s = clock.monotonic()
        metrics.informer_age_s.labels(source.name).set_function(lambda: self.age_s)

    @property
    def objects(self) -> Mapping[ObjectKey, SlimObject]:
        """What is known now; a live read-only view."""
        return self._cache.objects

    @property
    def age_s(self) -> float:
        """Seconds since the server was last heard (data or bookmark)."""
        return self._clock.monotonic() - self._contact_s

    @property
    def idle_s(self) -> float:
        """Seconds since it last asked the server or heard it: small even while nobody answers."""
        return self._clock.monotonic() - max(self._active_s, self._contact_s)

    async def run(self) -> None:
        """List and watch until cancelled."""
        cause, whole = "start", False
        while True:
            try:
                version = await self._listed(cause, whole=whole)
                self._working()
                cause = await self._followed(version)
                whole = False
            except Gone:  # a continue token expired between pages: next time in one piece
                cause, whole = "expired", True
                await self._clock.sleep(self._backoff.next_s())
            except (ClusterError, InputError) as error:
                await self._pause(error)

    async def _listed(self, cause: str, *, whole: bool) -> str:
        """Take one full list, tell what differs, return its version."""
        found: dict[ObjectKey, SlimObject] = {}
        kept: set[ObjectKey] = set()
        token = ""
        while True:
            self._active_s = self._clock.monotonic()
            body = await self._client.list_page(
                self.source.resource,
                self.source.selection,
                limit=0 if whole else self._settings.page_size,
                continue_token=token,
            )
            self._contact_s = self._clock.monotonic()
            page = Page(body, self.source.model, kind=self.source.resource.kind)
            found.update({item.key: item for item in page.objects})
            for key, error in page.refused:
                self._refuse(key, error)
                kept |= {key} if key is not None else set()
            token = page.continue_token
            if not token:
                break
        self._listed_s = self._clock.monotonic()
        self.lists += 1
        self._metrics.informer_lists.labels(self.source.name, cause).inc()
        rewound = self._rewound(page.resource_version)
        for _ in self._cache.replacing(found, kept=kept, rewound=rewound):
            await asyncio.sleep(0)
        for key in self._malformed - kept:
            self._readable(key)
        self._on_listed(self.source, version_number(page.resource_version))
        self.synced.set()
        return page.resource_version

    def _rewound(self, listed: str) -> bool:
        """Whether the server is behind what it told before (restored from a backup, or another server)."""
        if not 0 < version_number(listed) < version_number(self._version):
            return False
        self._log.warning(
            "the server's history went back: what it lists counts", listed=listed, had=self._version
        )
        self._on_rewound(self.source)
        return True

    async def _followed(self, version: str) -> str:
        """Watch from `version` on, again and again; returns why a list is needed."""
        self._version = version
        while self._clock.monotonic() - self._listed_s < self._settings.relist_s:
            cause = await self._watched()
            if cause:
                return cause
        return "periodic"

    async def _watched(self) -> str:
        """One watch from the last version; returns why a list is needed, or nothing to go on."""
        before, began_s = self._version, self._clock.monotonic()
        self._active_s = self._clock.monotonic()
        stream = watch_once(
            self._client,
            self.source,
            resource_version=self._version,
            timeout_s=self._settings.watch_timeout_s * self._entropy.uniform(0.8, 1.0),
            inactivity_s=self._settings.inactivity_s,
        )
        try:
            async with aclosing(stream) as events:
                cause = await self._taken(events)
        except Unparsable as error:
            self._metrics.lines_unparsable.labels(self.source.name).inc()
            self._log.warning("watch line unparsable, listing again", error=str(error))
            await self._clock.sleep(self._backoff.next_s())
            return "unparsable"
        except Gone:
            await self._clock.sleep(self._backoff.next_s())
            return "expired"
        except NotFound:
            return "absent"  # the CRD went away: the list says so
        except ClusterError as error:
            return await self._broken(error)
        if cause or self._version != before:
            return cause
        return await self._newsless(self._clock.monotonic() - began_s)

    async def _taken(self, events: AsyncIterator[Changed | Bookmark]) -> str:
        """Take events to the end of the stream; why a list is needed before, or nothing."""
        async for event in events:
            behind = self._advanced(event)
            self._take(event)
            if behind:
                await self._clock.sleep(self._backoff.after(5))
                return "rewound"
        return ""

    def _advanced(self, event: Changed | Bookmark) -> bool:
        """Move on to the version of an event; whether a bookmark shows the server behind what it told."""
        if not 0 < version_number(event.resource_version) < version_number(self._version):
            self._version = event.resource_version or self._version
            return False
        return isinstance(event, Bookmark)

    async def _newsless(self, lasted_s: float) -> str:
        """A watch that ended and brought nothing must not spin, the less the sooner it ended."""
        if lasted_s >= EARLY_S:
            await self._clock.sleep(self._backoff.after(1))
            return ""
        await self._clock.sleep(min(self._backoff.next_s(), EMPTY_S))
        return self._unheard()

    async def _broken(self, error: ClusterError) -> str:
        if isinstance(error, Silent):  # a kind of which nothing happens may be silent: no trouble yet
            self._metrics.informer_breaks.labels(self.source.name, type(error).__name__).inc()
            await self._clock.sleep(self._backoff.next_s())
            return self._unheard()
        await self._pause(error)
        return "away" if self._backoff.failures >= MAX_BREAKS else ""

    def _unheard(self) -> str:
        """Count a watch on which nothing came; after some in a row a list has to tell."""
        self._silences += 1
        if self._silences < MAX_SILENCES:
            return ""
        self._silences = 0
        return "silent"

    def _take(self, event: Changed | Bookmark) -> None:
        self._contact_s = self._clock.monotonic()
        self._silences = 0
        self._backoff.reset()  # only here: a list that works says nothing about the watch after it
        self._working()
        if isinstance(event, Bookmark):
            return
        if event.refused is not None:
            self._refuse(event.key, event.refused)
            return
        if event.key is not None:
            self._readable(event.key)
        if event.new is None:
            self._cache.drop(event.key, uid=event.uid)
        else:
            self._cache.put(event.new)

    def _refuse(self, key: ObjectKey | None, error: InputError) -> None:
        self._metrics.inputs_refused.labels(self.source.name).inc()
        self._log.warning("object refused", object=str(key), error=str(error))
        self._on_refused(self.source, key, error)
        if key is not None:
            self._malformed.add(key)

    def _readable(self, key: ObjectKey) -> None:
        """A malformed object was corrected, or is gone; nobody may have known it before."""
        if key in self._malformed:
            self._malformed.discard(key)
            self._on_change(self.source, key, None, None)

    def _working(self) -> None:
        self.away_at_s = None
        if self.problem:
            self._log.info("works again", was=self.problem)
            self.problem = ""

    async def _pause(self, error: ClusterError | InputError) -> None:
        """Wait as the error asks; say what is wrong once, not each time."""
        self.absent = isinstance(error, NotFound) and self.source.resource.custom
        if not isinstance(error, Unreachable):
            self.away_at_s = None
        elif self.away_at_s is None:
            self.away_at_s = self._clock.wall()
        if isinstance(error, Throttled):
            await self._clock.sleep(max(error.retry_after_s, 0.1))
            return
        if self.absent:
            self._trouble(f"{self.source.resource.kind} is not installed in this cluster", quiet=True)
            self._contact_s = self._clock.monotonic()
            self.synced.set()
            await self._clock.sleep(ABSENT_S)
            return
        self._metrics.informer_breaks.labels(self.source.name, type(error).__name__).inc()
        if isinstance(error, Denied):
            self._trouble(f"permission is missing: {error}")
            if self.source.optional:
                self.synced.set()  # as if there were none of them; `status` says what is missing
        elif not isinstance(error, Unreachable) or self._backoff.failures >= 2:
            self._trouble(str(error))
        await self._clock.sleep(self._backoff.next_s())

    def _trouble(self, problem: str, *, quiet: bool = False) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        if quiet:
            self._log.info("waits", problem=problem)
        else:
            self._log.warning("does not work", problem=problem)


__all__ = ["Informer", "OnListed", "OnRefused", "OnRewound"]
