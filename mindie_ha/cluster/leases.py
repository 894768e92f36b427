"""One of several replicas leads: our own client of a coordination.k8s.io Lease, and the fence that it opens.

Promise: at no time are the fences of two candidates open, whatever the API server answers, however their wall
clocks differ, and however long a process stands still. Three rules make it so:

* the fence is open until `duration_s` after a moment *before* the renewal that succeeded was sent;
* a Lease of somebody else is taken only after it was seen unchanged for its whole duration, a tenth more,
  counted from *after* the answer that showed its last change (the tenth pays for clocks that run unequally);
  only one that its holder gave up is free at once;
* every write carries the version that was read, so of two who take it one gets a conflict.

What each answer means:
  200, 201        we hold it from before the request on
  409             read again: ours, go on; somebody else's, lost at once; not leading: somebody was faster
  404             deleted: whoever holds it writes it again; others wait until what they saw last has run out
  429             wait as told, but for no longer than `retry_s`
  5xx, no answer  whether it happened is unknown: go on until the deadline, then read; what was written in our
                  name counts only once it is written again
  403, other 4xx  the same, and `problem` names it

A renewal is tried again until the deadline, never beyond; no request may take longer than `retry_s`, nor than
what is left. After a loss nothing is taken until `stand` is called: whoever leads has to end its work first.

What remains: a request that left in time may arrive late. The client cuts it at the deadline; what the
network still carries meets the UID or the resourceVersion that it was made from. Whoever edits or deletes the
Lease by hand decides who leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.lease_records import LeaseRecord, written
from mindie_ha.cluster.resources import LEASE
from mindie_ha.kit.backoff import Backoff
from mindie_ha.kit.clock import Steady
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log
from mindie_ha.model.errors import (
    ClusterError,
    Conflict,
    InputError,
    LeaseLost,
    NotFound,
    Throttled,
    Unreachable,
)
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import LeaseSettings

LOOK_S = 1.0  # at most so long until a Lease that was given up is seen
AGAIN_S = 0.05  # after a conflict
DRIFT = 1.1  # clocks of two machines may differ in pace by this factor
RELEASE_S = 1.5  # giving it up may take so long: the process wants to end


class Candidate:
    """Stands for one Lease. `run` is a task; the rest is asked by others on the same loop."""

    def __init__(
        self,
        *,
        client: Client,
        namespace: str,
        identity: str,
        settings: LeaseSettings,
        steady: Steady,
        wall: Callable[[], float],
        entropy: Entropy,
        log: Log,
    ) -> None:
        self.identity = identity
        self.acquired = asyncio.Event()
        self.lost = asyncio.Event()  # nothing may be done any more in the name of the leader
        self.lost.set()
        self.problem = ""  # what keeps us from reading or renewing it, for people
        self._client = client
        self._key = ObjectKey(namespace, settings.name)
        self._settings = settings
        self._steady = steady
        self._wall = wall
        self._entropy = entropy
        self._log = log
        self._backoff = Backoff(entropy=entropy, first_s=0.1, max_s=settings.retry_s)
        self._poke = asyncio.Event()
        self._standing = False
        self._until_s = 0.0  # the fence is open until then; steady time, as all times here
        self._record: LeaseRecord | None = None  # as read or written last; None: it is not there
        self._seen: LeaseRecord | None = None  # the last that said who holds it, and since when it says so
        self._seen_s = 0.0
        self._turned_s = steady()

    # -- for those who act -------------------------------------------------------------------------

    def guard(self) -> float:
        """Seconds until the fence closes; raises LeaseLost if it is closed. Never awaits."""
        left_s = self._until_s - self._steady()
        if left_s <= 0:
            self._poke.set()
            raise LeaseLost(
                f"this replica does not lead ({self.leader or 'nobody'} does): nothing is written"
            )
        return left_s

    @property
    def leads(self) -> bool:
        """Whether the fence is open."""
        return self._steady() < self._until_s

    @property
    def leader(self) -> str:
        """Who leads, as far as we know; empty: nobody, or unknown."""
        if self.leads:
            return self.identity
        return self._seen.holder if self._seen is not None and self._free_in() > 0 else ""

    @property
    def age_s(self) -> float:
        """Seconds since the Lease was seen to change."""
        return self._steady() - self._seen_s if self._seen is not None else 0.0

    @property
    def idle_s(self) -> float:
        """Seconds since the loop turned last; liveness looks at it."""
        return self._steady() - self._turned_s

    def stand(self) -> None:
        """Take the Lease as soon as it is free; `acquired` tells."""
        self._standing = True
        self._poke.set()

    async def release(self) -> None:
        """Give the Lease up, so that another takes it at once; `run` has ended. Never raises."""
        self._close()
        try:
            async with asyncio.timeout(RELEASE_S):
                while (held := await self._read()) is not None and held.holder == self.identity:
                    with suppress(Conflict):  # a renewal of ours was still on its way: read again
                        await self._write(held, holder="", limit_s=RELEASE_S)
                        self._log.info("gave the lease up")
        except (ClusterError, InputError, TimeoutError) as error:
            self._log.warning("could not give the lease up; it runs out", error=str(error))

    # -- the loop ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow, take and renew the Lease until cancelled; when it ends the fence is closed."""
        try:
            while True:
                self._turned_s = self._steady()
                self._poke.clear()
                pause_s = await self._turn()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._bounded(pause_s)):
                        await self._poke.wait()
        finally:
            self._close()

    async def _turn(self) -> float:
        """One step; seconds until the next."""
        if self.acquired.is_set() and not self.leads:
            self._lose("it was not renewed in time")
        try:
            if self.acquired.is_set():
                return await self._renew()
            return await self._look()
        except (ClusterError, InputError) as error:
            return self._trouble(error)

    async def _renew(self) -> float:
        try:
            await self._hold(self._record)
        except NotFound:
            if self._record is None:
                raise  # the namespace is missing
            self._log.warning("the lease was deleted; writing it again")
            self._record = None
            return AGAIN_S
        except Conflict:
            found = await self._read()
            if found is not None and found.holder != self.identity:
                self._lose(f"{found.holder or 'nobody'} holds it")
            return self._entropy.jitter(AGAIN_S)
        return self._entropy.uniform(0.8, 1.0) * self._settings.renew_s

    async def _look(self) -> float:
        await self._read()
        wait_s = self._free_in()
        if not self._standing or wait_s > 0:
            self._works()
            pause_s = min(LOOK_S, max(wait_s, AGAIN_S)) if self._standing else LOOK_S
            return self._entropy.uniform(0.8, 1.0) * pause_s
        try:
            await self._hold(self._record)
        except Conflict:
            return self._entropy.jitter(AGAIN_S)  # somebody was faster
        except NotFound:
            if self._record is None:
                raise  # the namespace is missing
            return self._entropy.jitter(AGAIN_S)  # deleted meanwhile
        self._standing = False
        self.lost.clear()
        self.acquired.set()
        self._log.info("leads", identity=self.identity)
        return self._settings.renew_s * self._entropy.uniform(0.8, 1.0)

    def _free_in(self) -> float:
        """Seconds until the Lease may be taken; 0: now."""
        if self._seen is None or self._seen.holder in ("", self.identity):
            return 0.0
        held_s = (self._seen.duration_s or self._settings.duration_s) * DRIFT
        return max(0.0, self._seen_s + held_s - self._steady())

    # -- requests ----------------------------------------------------------------------------------

    async def _hold(self, before: LeaseRecord | None) -> None:
        """Write the Lease in our name; the fence is then open from before the request on."""
        began_s = self._steady()
        await self._write(before, holder=self.identity, limit_s=self._limit_s())
        self._until_s = began_s + self._settings.duration_s
        self._works()

    async def _write(self, before: LeaseRecord | None, *, holder: str, limit_s: float) -> None:
        body = written(
            before,
            key=self._key,
            holder=holder,
            duration_s=self._settings.duration_s if holder else 1,
            now_s=self._wall(),
        )
        async with _within(limit_s):
            if before is None:
                answer = await self._client.create(LEASE, self._key.namespace, body)
            else:
                answer = await self._client.replace(LEASE, self._key, body)
        self._observe(LeaseRecord.read(answer))

    async def _read(self) -> LeaseRecord | None:
        try:
            async with _within(self._limit_s()):
                raw = await self._client.get(LEASE, self._key)
        except NotFound:
            self._record = None
            return None
        self._observe(LeaseRecord.read(raw))
        return self._record

    def _observe(self, record: LeaseRecord) -> None:
        """What the Lease says now, and since when it says so."""
        self._record = record
        if self._seen is None or record.spec != self._seen.spec:
            self._seen, self._seen_s = record, self._steady()

    def _limit_s(self) -> float:
        """How long one request may take: never beyond the deadline that it is to move."""
        left_s = self._until_s - self._steady()
        return min(self._settings.retry_s, left_s) if left_s > 0 else self._settings.retry_s

    # -- states ------------------------------------------------------------------------------------

    def _trouble(self, error: ClusterError | InputError) -> float:
        if str(error) != self.problem:
            self.problem = str(error)
            self._log.warning("the lease cannot be reached", error=self.problem, leads=self.leads)
        if isinstance(error, Throttled):
            return min(max(error.retry_after_s, AGAIN_S), self._settings.retry_s)
        if isinstance(error, Unreachable):
            return self._backoff.next_s()
        return self._entropy.jitter(self._settings.retry_s)

    def _works(self) -> None:
        self._backoff.reset()
        self.problem = ""

    def _lose(self, reason: str) -> None:
        self._log.warning("leads no longer", reason=reason)
        self._close()

    def _close(self) -> None:
        self._until_s = 0.0
        self._standing = False
        self.acquired.clear()
        self.lost.set()

    def _bounded(self, pause_s: float) -> float:
        """Never sleep over the deadline."""
        if not self.acquired.is_set():
            return pause_s
        return min(pause_s, max(self._until_s - self._steady(), 0.0))


@asynccontextmanager
async def _within(limit_s: float) -> AsyncIterator[None]:
    """A bound on a whole request, whatever hangs in it. Raises Unreachable."""
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError:
        raise Unreachable(f"the lease: no answer within {limit_s:.3g} s") from None


__all__ = ["Candidate"]
