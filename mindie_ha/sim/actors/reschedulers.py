"""Volcano's rescheduler: deletes pods of faulty jobs, as the real one does, oddities included.

Off by default, since mindie-ha does this work; switched on to see that the two do not get into each other's
way. It looks once per session (1 s) and remembers a faulty job until enough of its pods are placed again, or
for 1200 s; meanwhile it sees no other fault of that job. A failed deletion is not repeated. The scope widens
with sessions, but never for MS Controller and Coordinator. A job whose PodGroup carries the annotation
ProcessRecoverStrategy is left alone, whatever its value. It writes `remain-retry-times`.

Source: rescheduling contract §2.1-§2.6, vectors of §6.1-§6.4. What is left out: see `rescheduling_rules`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import (
    Key,
    annotations_of,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    number,
    phase_of,
    text,
    texts,
    uid_of,
)
from mindie_ha.sim.actors.fleets import read_hardware
from mindie_ha.sim.actors.rescheduling_rules import (
    JOB_SESSIONS,
    SUPER_POD,
    SUPER_POD_SESSIONS,
    FaultType,
    Hardware,
    JobRules,
    fault_of,
    has_failed,
    is_assigned,
    reason_of,
    refusal,
    rules_of,
    scope,
)
from mindie_ha.sim.actors.schedulers import group_of
from mindie_ha.sim.client import ApiClient, Object

RETRIES = ("vcjob-fault-npu-cm", "volcano-system")
RETRY_KEY = "remain-retry-times"
MARK = "huawei.com/pod-status"
RUNNING = frozenset({"Running", "Unknown"})
EXPIRY_EXTRA_S = 300.0


@dataclass(frozen=True, slots=True)
class ReschedulerSettings:
    """How it works."""

    session_s: float = 1.0
    grace_over_time_s: float = 900.0
    """After this long a graceful deletion is forced; 300 s later the job is forgotten."""


@dataclass(slots=True)
class FaultJob:
    """A job in the fault cache."""

    rules: JobRules
    since_s: float
    pods: frozenset[str]  # UIDs when it was cached
    faulty: frozenset[str] = frozenset()
    types: frozenset[FaultType] = frozenset()
    blocks: frozenset[str] = frozenset()  # logical super pods of the faulty pods
    doomed: frozenset[str] = frozenset()  # asked to be deleted
    executed: bool = False
    sessions: int = 0  # after the deletion was complete, without enough pods placed

    def is_complete(self, present: frozenset[str]) -> bool:
        """Whether the deletion is over; of a job-level one, or of one that widened so far, for every pod."""
        watched = self.faulty | self.doomed
        if not self.rules.narrow or self.sessions >= JOB_SESSIONS:
            watched |= self.pods
        return self.executed and not watched & present


@dataclass(frozen=True, slots=True)
class Session:
    """What one session sees."""

    now_s: float
    hardware: Hardware
    groups: dict[Key, Object]
    pods: dict[Key, list[Object]] = field(default_factory=dict)


class Rescheduler(Actor):
    """Deletes pods of faulty jobs."""

    name = "volcano-rescheduler"
    kinds = ("Pod", "PodGroup", "Node", "ConfigMap")

    def __init__(
        self, *, api: ApiClient, cache: Cache, clock: Clock, entropy: Entropy, settings: ReschedulerSettings
    ) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._settings = settings
        self._cached: dict[Key, FaultJob] = {}
        self._left: dict[Key, int] = {}  # retries that remain
        self._phases: dict[Key, str] = {}  # of the PodGroups one session ago: it opens before they are moved
        self._next_s = 0.0
        self._first = True

    async def reconcile(self) -> float:
        """One session, if one is due: changes do not hasten it."""
        now_s = self.clock.monotonic()
        if now_s < self._next_s:
            return self._next_s - now_s
        self._next_s = now_s + self._settings.session_s
        session = self._session(now_s)
        self._forget(session)
        for key in list(self._cached):
            self._follow(key, session)
        await self._force_overdue(session)
        for key in session.groups:
            self._look_at(key, session)
        for key, job in self._cached.items():
            if not job.executed:
                await self._restart(key, job, session)
        await self._dump()
        self._phases = {key: phase_of(group) for key, group in session.groups.items()}
        self._first = False
        return self._settings.session_s

    # -- what is seen --------------------------------------------------------------------------------

    def _session(self, now_s: float) -> Session:
        groups = {key_of(group): group for group in self.cache.all("PodGroup") if not is_terminating(group)}
        session = Session(now_s, read_hardware(self.cache, first=self._first), groups)
        for pod in self.cache.all("Pod"):
            key = group_of(pod)
            if key in groups:
                session.pods.setdefault(key, []).append(pod)
        return session

    def _forget(self, session: Session) -> None:
        kept_s = self._settings.grace_over_time_s + EXPIRY_EXTRA_S
        self._cached = {
            key: job
            for key, job in self._cached.items()
            if key in session.groups and session.now_s - job.since_s <= kept_s
        }
        self._left = {key: left for key, left in self._left.items() if key in session.groups}

    def _look_at(self, key: Key, session: Session) -> None:
        """Take a running job with a faulty pod into the cache; one without is only counted."""
        group, pods = session.groups[key], session.pods.get(key, [])
        if not {phase_of(group), self._phases.get(key, "")} & RUNNING or key in self._cached:
            return
        rules = rules_of(group, pods)
        if rules.mode == "off":
            return
        self._left.setdefault(key, rules.retries)
        if any(fault_of(pod, session.hardware, rules) for pod in pods):
            self._cached[key] = FaultJob(rules, session.now_s, frozenset(map(uid_of, pods)))

    def _follow(self, key: Key, session: Session) -> None:
        """What became of a cached job since the last session."""
        job, pods = self._cached[key], session.pods.get(key, [])
        if not job.is_complete(frozenset(map(uid_of, pods))):
            return
        minimum = number(session.groups[key], "spec", "minMember", default=1)
        if sum(map(is_assigned, pods)) >= minimum:
            del self._cached[key]
        elif job.rules.narrow and any(map(has_failed, pods)):
            job.executed = False
        elif job.rules.widens and job.sessions < JOB_SESSIONS:
            job.sessions += 1
            blocks = job.rules.super_pods and job.sessions == SUPER_POD_SESSIONS
            job.executed = not (blocks or job.sessions == JOB_SESSIONS)

    # -- what is done --------------------------------------------------------------------------------

    async def _restart(self, key: Key, job: FaultJob, session: Session) -> None:
        pods = session.pods.get(key, [])
        rules = replace(job.rules, by_platform=rules_of(session.groups[key], ()).by_platform)
        found = {uid_of(pod): fault for pod in pods if (fault := fault_of(pod, session.hardware, rules))}
        job.faulty |= found.keys()
        job.types |= frozenset(found.values())
        job.blocks |= {annotations_of(pod).get(SUPER_POD, "") for pod in pods if uid_of(pod) in found}
        reason = reason_of(job.types)
        if not (found or job.sessions) or refusal(rules, reason, left=self._left.get(key)):
            return  # asked again with every session
        if rules.external:
            marked = [(pod, found[uid_of(pod)]) for pod in pods if uid_of(pod) in found]
            await self.attempt_all((name_of(pod), self._mark(pod, fault)) for pod, fault in marked)
        else:
            doomed = scope(pods, job.faulty, rules, sessions=job.sessions, blocks=job.blocks)
            job.doomed |= frozenset(map(uid_of, doomed))
            await self.attempt_all((name_of(pod), self._delete(pod, job, session)) for pod in doomed)
        job.executed = True
        if reason is FaultType.FAILED:
            self._left[key] = self._left.get(key, 0) - 1

    def _delete(self, pod: Object, job: FaultJob, session: Session) -> Awaitable[None]:
        """Gracefully only on a node that is there; force where the label says so."""
        graceful = job.rules.mode == "grace" and text(pod, "spec", "nodeName") in session.hardware.known
        grace_s = None if graceful else 0
        return self.api.delete("Pod", name_of(pod), namespace_of(pod), uid=uid_of(pod), grace_s=grace_s)

    async def _mark(self, pod: Object, fault: str) -> None:
        await self.patch("Pod", pod, {"metadata": {"annotations": {MARK: f"Unhealthy-{fault}"}}})

    async def _force_overdue(self, session: Session) -> None:
        """A graceful deletion that takes too long is forced, with every session anew."""
        for key, job in self._cached.items():
            late = session.now_s - job.since_s > self._settings.grace_over_time_s
            if job.rules.mode == "grace" and job.executed and late:
                left = [pod for pod in session.pods.get(key, []) if uid_of(pod) in job.doomed]
                await self.attempt_all(
                    (name_of(pod), self.api.delete("Pod", *reversed(key_of(pod)), uid=uid_of(pod), grace_s=0))
                    for pod in left
                )

    async def _dump(self) -> None:
        """The retries that remain, for the operator; the whole entry is ours."""
        name, namespace = RETRIES
        entries = {
            "/".join(key): {"UUID": key[1][-36:], "Times": left} for key, left in sorted(self._left.items())
        }
        body = json.dumps(entries, separators=(",", ":"))
        known = self.cache.get("ConfigMap", name, namespace)
        if known is None:
            meta = {"name": name, "namespace": namespace, "labels": {"mx-consumer-volcano": "true"}}
            await self.attempt(
                self.create("ConfigMap", {"metadata": meta, "data": {RETRY_KEY: body}}), what=name
            )
        elif texts(known, "data").get(RETRY_KEY) != body:
            await self.attempt(self.patch("ConfigMap", known, {"data": {RETRY_KEY: body}}), what=name)


__all__ = ["FaultJob", "Rescheduler", "ReschedulerSettings"]
