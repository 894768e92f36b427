"""Keeps asking MS pods who is active: seldom while all is known, quickly while something is open.

Each look at a service says whom there is to ask. A pod is asked by one task at a time, at most `parallel` are
asked at once, and each goes by its own jittered interval: `quick_s` after anything changed about it or while
its recovery settles, then doubling up to `slow_s`. One question without an answer proves nothing; the second
in a row counts. News touches the service, so that a recovery goes on without waiting for anything else.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from mindie_ha.channels.ms_endpoints import Endpoints
from mindie_ha.channels.ms_questions import ask
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.ids import ObjectKey, PodUID, ScopeKey
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import Phase
from mindie_ha.model.roles import Inquiry, Told
from mindie_ha.model.settings import CoupledSettings, Flavor, RoleSettings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.policy import activity, coupled

MISSES = 2  # questions in a row without an answer that count
MAX_ASKED = 10_000


class Memory(Protocol):
    """`cluster.roles.RoleMemory`."""

    def tell(self, uid: PodUID, told: Told) -> bool:
        """A pod answered; True if that is news."""
        ...


class Touch(Protocol):
    """Look at a service soon."""

    def __call__(self, scope: ScopeKey) -> None: ...


@dataclass(slots=True)
class Asked:
    """One pod that is asked. Times are monotonic."""

    uid: PodUID
    role: str
    inquiry: Inquiry
    ip: str
    state: tuple[object, ...]  # a change of it makes the next question come soon
    settles: bool
    next_s: float
    interval_s: float
    busy: bool = False
    misses: int = 0


class RoleDesk:
    """See the module."""

    def __init__(
        self,
        *,
        memory: Memory,
        endpoints: Endpoints | None,
        touch: Touch,
        settings: RoleSettings,
        coupled: CoupledSettings,
        clock: Clock,
        entropy: Entropy,
        metrics: Metrics,
    ) -> None:
        self._memory = memory
        self._endpoints = endpoints if settings.ask else None
        self._touch = touch
        self._settings = settings
        self._coupled = coupled
        self._clock = clock
        self._entropy = entropy
        self._metrics = metrics
        self._asked: dict[ScopeKey, dict[PodUID, Asked]] = {}
        self._woken = asyncio.Event()
        self._wakes_s = math.inf  # when the next one is due, as far as `run` knows
        self._seats = asyncio.Semaphore(settings.parallel)

    def looked(self, scope: ScopeKey, view: ScopeView | None) -> None:
        """A service was looked at: whom there is to ask now."""
        if self._endpoints is None:
            return
        before = self._asked.pop(scope, {})
        found = {}
        for workload, pod, inquiry in self._to_ask(view) if view is not None else ():
            found[pod.uid] = self._kept(before.get(pod.uid), workload, pod, inquiry)
        if found and len(self._asked) < MAX_ASKED:
            self._asked[scope] = found
            self._wake(min((one.next_s for one in found.values() if not one.busy), default=math.inf))

    async def run(self) -> None:
        """Ask until cancelled."""
        for one in self._all():
            one.busy = False
        async with asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                now_s = self._clock.monotonic()
                for scope, pods in self._asked.items():
                    for one in pods.values():
                        if not one.busy and one.next_s <= now_s:
                            one.busy = True
                            group.create_task(self._ask(scope, one), name="ask an MS pod")
                times = (one.next_s for one in self._all() if not one.busy)
                self._wakes_s = min(times, default=now_s + 60.0)
                with suppress(TimeoutError):
                    async with self._clock.timeout(max(0.0, self._wakes_s - now_s)):
                        await self._woken.wait()

    async def close(self) -> None:
        """End what is open."""
        if self._endpoints is not None:
            await self._endpoints.close()

    def _wake(self, due_s: float) -> None:
        """Somebody is due; everybody is gone through only where that is earlier than what is waited for."""
        if due_s < self._wakes_s:
            self._woken.set()

    def _to_ask(self, view: ScopeView) -> Iterator[tuple[WorkloadView, Pod, Inquiry]]:
        linking = coupled.to_ask(view, settings=self._coupled, now_s=self._clock.wall())
        return _to_ask(view, self._settings.flavor, linking)

    def _all(self) -> list[Asked]:
        return [one for pods in self._asked.values() for one in pods.values()]

    def _kept(self, before: Asked | None, workload: WorkloadView, pod: Pod, inquiry: Inquiry) -> Asked:
        recovery = workload.ledger.recovery
        settles = recovery is not None and recovery.phase is Phase.SETTLE
        state = (pod.ip, pod.ready, pod.restarts, recovery.phase if recovery is not None else "")
        now_s, quick_s = self._clock.monotonic(), self._settings.quick_s
        if before is None:
            return Asked(pod.uid, workload.workload.role, inquiry, pod.ip, state, settles, now_s, quick_s)
        before.ip, before.settles, before.inquiry = pod.ip, settles, inquiry
        if before.state != state:
            before.state, before.interval_s = state, quick_s
            before.next_s = min(before.next_s, now_s + quick_s)
        return before

    async def _ask(self, scope: ScopeKey, one: Asked) -> None:
        assert self._endpoints is not None  # noqa: S101 - nobody is asked without
        try:
            async with self._seats:
                told = await ask(
                    self._endpoints,
                    one.inquiry,
                    one.ip,
                    settings=self._settings,
                    server_port=self._coupled.port,
                )
            if self._asked.get(scope, {}).get(one.uid) is one:  # it may be gone meanwhile
                self._take(scope, one, told)
        finally:
            one.busy = False
            one.next_s = self._clock.monotonic() + self._entropy.jitter(one.interval_s)
            self._wake(one.next_s)

    def _take(self, scope: ScopeKey, one: Asked, told: Told) -> None:
        self._metrics.role_questions.labels(one.role, _result(told)).inc()
        one.misses = 0 if told.reached else one.misses + 1
        news = (told.reached or one.misses >= MISSES) and self._memory.tell(one.uid, told)
        quick_s, slow_s = self._settings.quick_s, self._settings.slow_s
        calm = not (news or one.settles or 0 < one.misses < MISSES)
        one.interval_s = min(2 * one.interval_s, slow_s) if calm else quick_s
        if news:
            self._touch(scope)


def _to_ask(
    view: ScopeView, flavor: Flavor, linking: frozenset[ObjectKey]
) -> Iterator[tuple[WorkloadView, Pod, Inquiry]]:
    """Pods that run where they can answer, and what each is asked. `linking`: whose links matter now."""
    for workload in view.workloads:
        inquiry = activity.inquiry(workload, flavor=flavor)
        if workload.workload.key in linking:
            inquiry = Inquiry.LINKS
        for pod in activity.running(workload.pods) if inquiry is not None else ():
            node = view.nodes.get(pod.node)
            if inquiry is not None and pod.ip and node is not None and node.node.ready:
                yield workload, pod, inquiry


def _result(told: Told) -> str:
    if told.malformed:
        return "malformed"
    return told.activity.value if told.reached else "unreached"


__all__ = ["RoleDesk"]
