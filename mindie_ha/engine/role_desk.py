"""Keeps asking MS pods who is active: seldom while all is known, quickly while something is open.

Each look at a service says whom there is to ask. A pod is asked by one task at a time, by one of `parallel`
tasks, and each goes by its own jittered interval: `quick_s` after anything changed about it or while
its recovery settles, then doubling up to `slow_s`. One question without an answer proves nothing; the second
in a row counts. News touches the service, so that a recovery goes on without waiting for anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from mindie_ha.channels.ms_endpoints import Endpoints
from mindie_ha.channels.ms_questions import ask
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.queues import KeyedQueue
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
    """One pod that is asked."""

    role: str
    inquiry: Inquiry
    ip: str
    state: tuple[object, ...]  # a change of it makes the next question come soon
    settles: bool
    interval_s: float
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
        self._due: KeyedQueue[tuple[ScopeKey, PodUID]] = KeyedQueue(clock=clock, entropy=entropy)

    def looked(self, scope: ScopeKey, view: ScopeView | None) -> None:
        """A service was looked at: whom there is to ask now."""
        if self._endpoints is None:
            return
        before = self._asked.pop(scope, {})
        if view is None or len(self._asked) >= MAX_ASKED:
            return
        found = {
            pod.uid: self._kept(scope, before.get(pod.uid), workload, pod, inquiry)
            for workload, pod, inquiry in self._to_ask(view)
        }
        if found:
            self._asked[scope] = found

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._settings.parallel):
                group.create_task(self._work(), name=f"ask MS pods {number}")

    async def _work(self) -> None:
        while True:
            scope, uid = await self._due.get()
            try:
                one = self._asked.get(scope, {}).get(uid)
                if one is not None:
                    await self._ask(scope, uid, one)
            finally:
                self._due.done((scope, uid))

    async def close(self) -> None:
        """End what is open."""
        if self._endpoints is not None:
            await self._endpoints.close()

    def _to_ask(self, view: ScopeView) -> Iterator[tuple[WorkloadView, Pod, Inquiry]]:
        linking = coupled.to_ask(view, settings=self._coupled, now_s=self._clock.wall())
        return _to_ask(view, self._settings.flavor, linking)

    def _kept(
        self, scope: ScopeKey, before: Asked | None, workload: WorkloadView, pod: Pod, inquiry: Inquiry
    ) -> Asked:
        recovery = workload.ledger.recovery
        settles = recovery is not None and recovery.phase is Phase.SETTLE
        state = (pod.ip, pod.ready, pod.restarts, recovery.phase if recovery is not None else "")
        now_s, quick_s = self._clock.monotonic(), self._settings.quick_s
        if before is None:
            self._due.add_at((scope, pod.uid), now_s)
            return Asked(workload.workload.role, inquiry, pod.ip, state, settles, quick_s)
        before.ip, before.settles, before.inquiry = pod.ip, settles, inquiry
        if before.state != state:
            before.state, before.interval_s = state, quick_s
            self._due.add_at((scope, pod.uid), now_s + quick_s)
        return before

    async def _ask(self, scope: ScopeKey, uid: PodUID, one: Asked) -> None:
        assert self._endpoints is not None  # noqa: S101 - nobody is asked without
        try:
            told = await ask(
                self._endpoints, one.inquiry, one.ip, settings=self._settings, server_port=self._coupled.port
            )
            if self._is_asked(scope, uid, one):
                self._take(scope, uid, one, told)
        finally:
            if self._is_asked(scope, uid, one):
                self._due.add_at((scope, uid), self._clock.monotonic() + self._entropy.jitter(one.interval_s))

    def _is_asked(self, scope: ScopeKey, uid: PodUID, one: Asked) -> bool:
        """It may be gone by the time it answers."""
        return self._asked.get(scope, {}).get(uid) is one

    def _take(self, scope: ScopeKey, uid: PodUID, one: Asked, told: Told) -> None:
        self._metrics.role_questions.labels(one.role, _result(told)).inc()
        one.misses = 0 if told.reached else one.misses + 1
        news = (told.reached or one.misses >= MISSES) and self._memory.tell(uid, told)
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
