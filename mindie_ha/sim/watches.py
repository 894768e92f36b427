"""Watches: who is told about which change, with the semantics that informers rely on.

A watcher sees every change of its kind above its version, in order, once. Objects that enter or leave the
selection become ADDED or DELETED. A version below the history's floor answers one ERROR event with a 410
Status. Buffers are bounded: a watcher that does not read is cut, as the real watch cache does, and comes
back with its last version. Subscription begins when the stream is first read and is resumed from the version
of the request, so a response that nobody reads costs nothing and misses nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import orjson

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.selectors import Test
from mindie_ha.sim.statuses import Object, expired
from mindie_ha.sim.storage import Change, Kind, Store, Stored, kind_of

BUFFER = 10_000  # events waiting for one watcher before it is cut
BOOKMARK_S = 60.0
LAST_BOOKMARK_S = 2.0  # before timeoutSeconds ends
INITIAL_END = {"k8s.io/initial-events-end": "true"}

Encode = Callable[[Stored], bytes]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """One watch request. `initial` are the synthetic ADDED events; live ones begin above `version`."""

    resource: Resource
    namespace: str
    selects: Test | None
    version: int
    initial: tuple[Stored, ...]
    bookmarks: bool
    mark_initial_end: bool
    timeout_s: float
    encode: Encode


@dataclass(eq=False, slots=True)
class Watcher:
    """One open watch: its buffer and the wishes of the disturbances."""

    options: WatchOptions
    limit: int
    lines: deque[bytes] = field(default_factory=deque)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    cut: bool = False
    broken: bool = False
    silent_until_s: float = float("-inf")

    def offer(self, change: Change) -> None:
        """Take a change if it concerns this watcher."""
        options = self.options
        if options.namespace and change.key[0] != options.namespace:
            return
        line = _event(change, options)
        if line is None:
            return
        if len(self.lines) >= self.limit:
            self.end()
            return
        self.lines.append(line)
        self.wake.set()

    def end(self, *, mid_line: bool = False) -> None:
        """End the stream after what is buffered; `mid_line` breaks it within an event."""
        if mid_line:
            self.lines.append(b'{"type":"MODIFIED","object":{"kind":"')
        self.broken = mid_line
        self.cut = True
        self.wake.set()


class WatchHub:
    """The open watches by kind; told of every change by the store."""

    def __init__(self, *, store: Store, clock: Clock, buffer: int = BUFFER) -> None:
        self._store = store
        self._clock = clock
        self._buffer = buffer
        self._watchers: dict[Kind, dict[Watcher, None]] = {}  # a dict keeps the order of arrival
        store.listen(self._tell)

    def _tell(self, kind: Kind, change: Change) -> None:
        for watcher in self._watchers.get(kind, ()):
            watcher.offer(change)

    def watchers(self, kind: Kind | None = None) -> list[Watcher]:
        """Open watches of one kind, or all."""
        kinds = [kind] if kind else list(self._watchers)
        return [watcher for each in kinds for watcher in self._watchers.get(each, ())]

    async def stream(self, options: WatchOptions) -> AsyncIterator[bytes]:
        """Chunks of whole event lines until the time-out, a cut, or the reader closes."""
        watcher = Watcher(options, self._buffer)
        kind = kind_of(options.resource)
        if not self._replay(watcher, kind):
            yield watcher.lines.popleft()
            return
        self._watchers.setdefault(kind, {})[watcher] = None
        try:
            async for chunk in self._chunks(watcher):
                yield chunk
        finally:
            del self._watchers[kind][watcher]

    def _replay(self, watcher: Watcher, kind: Kind) -> bool:
        options = watcher.options
        floor = self._store.collection(kind).floor
        if options.version < floor:
            gone = expired(f"too old resource version: {options.version} ({floor})")
            watcher.lines.append(_line("ERROR", orjson.dumps(gone.status())))
            return False
        for stored in options.initial:
            watcher.lines.append(_line("ADDED", options.encode(stored)))
        if options.mark_initial_end:
            watcher.lines.append(self._bookmark(options, options.version, INITIAL_END))
        for change in self._store.changes_after(kind, options.version):
            watcher.limit += 1  # what is replayed does not count against a reader that has not begun
            watcher.offer(change)
        watcher.limit += len(options.initial)
        return True

    async def _chunks(self, watcher: Watcher) -> AsyncIterator[bytes]:
        schedule = _Schedule(watcher.options, self._clock.monotonic())
        while True:
            now_s = self._clock.monotonic()
            silent = now_s < watcher.silent_until_s
            if watcher.lines and not silent:
                chunk = b"".join(watcher.lines)
                watcher.lines.clear()
                watcher.limit = self._buffer
                yield chunk
            elif watcher.broken:
                raise ConnectionResetError("the connection of a watch broke")
            elif watcher.cut or now_s >= schedule.end_s:
                return
            elif schedule.bookmark_due(now_s, self._store.version) and not silent:
                yield self._bookmark(watcher.options, self._store.version, None)
            else:
                await self._wait(watcher, schedule.delay_s(now_s, watcher.silent_until_s))

    async def _wait(self, watcher: Watcher, delay_s: float) -> None:
        watcher.wake.clear()
        try:
            async with self._clock.timeout(delay_s):
                await watcher.wake.wait()
        except TimeoutError:
            return

    @staticmethod
    def _bookmark(options: WatchOptions, version: int, annotations: dict[str, str] | None) -> bytes:
        meta: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        resource = options.resource
        body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        return _line("BOOKMARK", orjson.dumps(body))


class _Schedule:
    """When a watch ends and when it is owed a bookmark: every minute, and once shortly before its end."""

    def __init__(self, options: WatchOptions, now_s: float) -> None:
        self.end_s = now_s + options.timeout_s
        self._marked = options.version
        self._marks_s = [now_s + BOOKMARK_S, self.end_s - LAST_BOOKMARK_S] if options.bookmarks else []

    def bookmark_due(self, now_s: float, version: int) -> bool:
        """Whether to send one now; only if the version has moved."""
        if all(now_s < mark_s for mark_s in self._marks_s):
            return False
        self._marks_s = [mark_s for mark_s in self._marks_s if mark_s > now_s]
        if now_s + BOOKMARK_S < self.end_s:
            self._marks_s.append(now_s + BOOKMARK_S)
        moved, self._marked = version > self._marked, version
        return moved

    def delay_s(self, now_s: float, silent_until_s: float) -> float:
        """How long nothing but an event can happen."""
        times_s = [at_s for at_s in (self.end_s, silent_until_s, *self._marks_s) if at_s > now_s]
        return min(times_s, default=now_s) - now_s


def _event(change: Change, options: WatchOptions) -> bytes | None:
    selects = options.selects
    if selects is None:
        return _line(change.type, options.encode(change.now))
    was = change.before is not None and selects(change.before.obj)
    if change.type == "DELETED":
        return _line("DELETED", options.encode(change.now)) if was else None
    if selects(change.now.obj):
        return _line("MODIFIED" if was else "ADDED", options.encode(change.now))
    if was and change.before is not None:
        left = change.before.thaw()
        left["metadata"]["resourceVersion"] = str(change.version)
        return _line("DELETED", options.encode(Stored(left, change.version)))
    return None


def _line(type_: str, body: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"
