"""Kubernetes Events from notices: for people with kubectl; no decision ever waits for one.

`record` only puts into a bounded queue; one task sends. The same notice about the same object raises the
count of the Event that stands, at most once in `REPEAT_S`; repetitions in between are dropped, as is
everything above the bound or the rate. What was dropped is counted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mindie_ha.cluster.writer import Writer
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.paces import Pace
from mindie_ha.model.decisions import Notice
from mindie_ha.model.errors import ClusterError, LeaseLost, NotFound
from mindie_ha.model.ids import ObjectKey

COMPONENT = "mindie-ha"
REPEAT_S = 60.0
STANDS_S = 3000.0  # the API keeps Events for an hour; older ones are created anew
BOUND = 1000
REMEMBERED = 5000
PER_SECOND = 20.0
MAX_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class About:
    """The object an Event is about."""

    api_version: str
    kind: str
    key: ObjectKey
    uid: str


@dataclass(slots=True)
class _Standing:
    key: ObjectKey
    count: int
    created_s: float
    sent_s: float


@dataclass(frozen=True, slots=True)
class _Queued:
    about: About
    notice: Notice
    at_s: float
    identity: tuple[str, str, str, str] = field(default=("", "", "", ""))


class Events:
    """See the module. `run` is a task of the supervisor."""

    def __init__(self, *, writer: Writer, clock: Clock, entropy: Entropy, metrics: Metrics) -> None:
        self._writer = writer
        self._clock = clock
        self._entropy = entropy
        self._metrics = metrics
        self._queue: asyncio.Queue[_Queued] = asyncio.Queue(BOUND)
        self._standing: OrderedDict[tuple[str, str, str, str], _Standing] = OrderedDict()
        self._seen_s: OrderedDict[tuple[str, str, str, str], float] = OrderedDict()
        self._pace = Pace(clock=clock, per_s=PER_SECOND)

    def record(self, notice: Notice, about: About) -> bool:
        """Queue an Event; False where it is a repetition or there is no room. Never blocks."""
        now_s = self._clock.monotonic()
        identity = (about.kind, about.uid or str(about.key), notice.reason, notice.key or notice.message)
        seen_s = self._seen_s.get(identity)
        if seen_s is not None and now_s - seen_s < REPEAT_S:
            return self._drop("repeated")
        try:
            self._queue.put_nowait(_Queued(about, notice, self._clock.wall(), identity))
        except asyncio.QueueFull:
            return self._drop("full")
        self._seen_s[identity] = now_s
        self._seen_s.move_to_end(identity)
        while len(self._seen_s) > REMEMBERED:
            self._seen_s.popitem(last=False)
        return True

    async def run(self) -> None:
        """Send what was recorded, until cancelled."""
        while True:
            queued = await self._queue.get()
            await self._pace.turn()
            try:
                await self._send(queued)
            except (ClusterError, LeaseLost) as error:
                self._drop(type(error).__name__)

    async def _send(self, queued: _Queued) -> None:
        now_s = self._clock.monotonic()
        standing = self._standing.get(queued.identity)
        if standing is not None and now_s - standing.created_s < STANDS_S:
            standing.count += 1
            standing.sent_s = now_s
            patch = {"count": standing.count, "lastTimestamp": _stamp(queued.at_s)}
            patch["message"] = queued.notice.message[:MAX_MESSAGE]
            try:
                await self._writer.patch_event(standing.key, patch)
            except NotFound:
                del self._standing[queued.identity]  # expired: create it anew below
            else:
                return
        namespace = queued.about.key.namespace or "default"
        name = await self._writer.create_event(namespace, self._body(queued, namespace))
        self._standing[queued.identity] = _Standing(ObjectKey(namespace, name), 1, now_s, now_s)
        while len(self._standing) > REMEMBERED:
            self._standing.popitem(last=False)

    def _body(self, queued: _Queued, namespace: str) -> dict[str, object]:
        about, notice, stamp = queued.about, queued.notice, _stamp(queued.at_s)
        suffix = self._entropy.uuid().replace("-", "")[:16]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.key.name[:200]}.{suffix}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "name": about.key.name,
                "namespace": about.key.namespace,
                "uid": about.uid,
            },
            "reason": notice.reason,
            "message": notice.message[:MAX_MESSAGE],
            "type": "Warning" if notice.warning else "Normal",
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": "",
        }

    def _drop(self, cause: str) -> bool:
        self._metrics.events_dropped.labels(cause).inc()
        return False


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


__all__ = ["COMPONENT", "About", "Events"]
