"""The Ascend Operator: an AscendJob becomes a PodGroup, a Service, pods and a rank table.

Promises of the real one that recovery depends on: no pod is created while the PodGroup is Pending; every
index without a pod object is created again with the same name and rank (a terminating pod still holds its
index); failed pods are left to others; a Failed pod makes the job Failed for good unless unconditional
retry applies; the round counts re-creations and is kept in memory only.
Source: rescheduling contract §4.3-§4.9 and vectors O1-O30.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.ascendjobs import (
    SCALING_RULE,
    JobSpec,
    Role,
    Status,
    backoff_limit,
    conditions_with,
    is_terminal,
    next_condition,
    read_job,
    remaining_retries,
    tally,
    validate,
)
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import (
    condition,
    controller_uid,
    dig,
    is_integer,
    is_terminating,
    items,
    labels_of,
    name_of,
    namespace_of,
    number,
    phase_of,
    text,
    uid_of,
)
from mindie_ha.sim.actors.job_envs import SERVER_DOMAIN, Addresses
from mindie_ha.sim.actors.job_objects import (
    VERSION,
    group_object,
    leader_service,
    leader_service_name,
    pod_name,
    pod_object,
)
from mindie_ha.sim.actors.ranktable_writers import RanktableWriter
from mindie_ha.sim.actors.scaling_rules import may_create
from mindie_ha.sim.client import ApiClient, Object

RETRIES = ("vcjob-fault-npu-cm", "volcano-system")
CLUSTERD = ("clusterd-grpc-svc", "mindx-dl")
REFUSED_RETRY_S = 2.0
RETRYABLE_EXIT = range(128, 256)
UNKNOWN_EXIT = 0xBEEF


@dataclass(slots=True)
class JobMemory:
    """What the operator keeps in memory of one job; lost with the operator."""

    limit: int
    has_table: bool
    round: int = 0
    seen: dict[str, Object] = field(default_factory=dict)

    def count_deletions(self, current: dict[str, Object]) -> None:
        """Raise the round for pods that vanished, once per round; then remember the current ones."""
        for uid, pod in self.seen.items():
            if uid not in current and counts_for_round(pod, self.round):
                self.round += 1
        self.seen = current


def counts_for_round(pod: Object, round_: int) -> bool:
    """A deleted pod ends the round that created it; without role or numeric version it is ignored."""
    version = labels_of(pod).get(VERSION, "")
    return "replica-type" in labels_of(pod) and is_integer(version) and int(version) == round_


def exit_code_of(pod: Object) -> int:
    """Exit code of container `ascend`; a placeholder that counts as retryable where there is none."""
    for status in items(pod, "status", "containerStatuses"):
        if status.get("name") == "ascend" and dig(status, "state", "terminated", "exitCode") is not None:
            return number(status, "state", "terminated", "exitCode")
    return UNKNOWN_EXIT


class AscendOperator(Actor):
    """Keeps every AscendJob's objects and status."""

    name = "ascend-operator"
    kinds = ("AscendJob", "PodGroup", "Pod", "Service", "ConfigMap", "Queue")

    def __init__(self, *, api: ApiClient, cache: Cache, clock: Clock, entropy: Entropy) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._memory: dict[str, JobMemory] = {}
        self._tables = RanktableWriter(api=api, cache=cache, clock=clock)

    async def reconcile(self) -> float:
        """Every job once; a refusal of one does not hold up the others."""
        jobs = self.cache.all("AscendJob")
        owned: dict[str, list[Object]] = {uid_of(job): [] for job in jobs}
        for pod in self.cache.all("Pod"):
            owned.get(controller_uid(pod), []).append(pod)
        self._memory = {uid: memory for uid, memory in self._memory.items() if uid in owned}
        self._tables.keep_only(owned.keys())
        self._wait_s = self.period_s
        await self.attempt_all(
            (name_of(job), self._reconcile_job(job, owned[uid_of(job)]))
            for job in jobs
            if not is_terminating(job)
        )
        return self._wait_s

    async def _reconcile_job(self, job: Object, pods: list[Object]) -> None:
        memory = self._remember(job)
        memory.count_deletions({uid_of(pod): pod for pod in pods})
        if is_terminal(job):
            await self._finish(job, pods)
            return
        problem = validate(job, queues={name_of(queue) for queue in self.cache.all("Queue")})
        if problem is not None:
            reason, message = problem
            await self._set_condition(job, Status.FAILED, "JobValidFailed", f"{reason}: {message}")
            await self.event("AscendJob", job, reason=reason, message=message)
            return
        spec = read_job(job)
        if not items(job, "status", "conditions"):
            job = await self._set_condition(job, Status.CREATED, "JobCreated", f"{spec.name} is created.")
        if 0 < memory.limit < memory.round:
            message = f"AscendJob {spec.name} has failed because it has reached the specified backoff limit"
            await self._set_condition(job, Status.FAILED, "JobFailed", message)
            return
        if await self._group_admits(job, spec):
            await self._run_job(job, spec, memory, pods)

    def _remember(self, job: Object) -> JobMemory:
        """The job's memory; at first sight this is its create event."""
        if uid_of(job) not in self._memory:
            limit = backoff_limit(job)
            # A non-numeric fault-retry-times drops the event before the rank table generator exists (O7).
            self._memory[uid_of(job)] = JobMemory(
                limit=-1 if limit is None else limit, has_table=limit is not None
            )
        return self._memory[uid_of(job)]

    async def _group_admits(self, job: Object, spec: JobSpec) -> bool:
        group = self.cache.get("PodGroup", spec.group, spec.namespace)
        if group is None:
            group = await self.create("PodGroup", group_object(spec))
        phase = phase_of(group or {})
        if phase in ("", "Pending"):
            reason = "PodGroupPending" if phase else "PodGroupNotInitialized"
            await self._set_condition(
                job, Status.CREATED, reason, f"PodGroup {spec.group} is not admitted yet."
            )
            return False
        return True

    async def _run_job(self, job: Object, spec: JobSpec, memory: JobMemory, pods: list[Object]) -> None:
        await self._ensure_service(spec)
        restarted = await self._restart_by_exit_code(spec, pods)
        await self._sync_pods(spec, memory, pods)
        await self._update_status(job, spec, pods, restarted=restarted)
        if memory.has_table:
            await self._tables.sync(spec, pods)

    async def _ensure_service(self, spec: JobSpec) -> None:
        name = leader_service_name(spec)
        if name and spec.leader and self.cache.get("Service", name, spec.namespace) is None:
            await self.create("Service", leader_service(spec, spec.leader))

    async def _sync_pods(self, spec: JobSpec, memory: JobMemory, pods: list[Object]) -> None:
        held = {name_of(pod) for pod in pods}
        wanted = {
            pod_name(spec, role, index): (role, index)
            for role in spec.roles
            for index in range(role.replicas)
        }
        for pod in pods:
            if name_of(pod) not in wanted and not is_terminating(pod):
                await self.api.delete("Pod", name_of(pod), spec.namespace, uid=uid_of(pod))
        missing = [place for name, place in wanted.items() if name not in held]
        if not missing:
            return
        if SCALING_RULE in spec.labels and not await self._scaling_admits(spec):
            self._wait_s = min(self._wait_s, REFUSED_RETRY_S)
            return
        addresses = self._addresses(spec)
        for role, index in missing:
            await self._create_pod(spec, role, index, memory, addresses)

    async def _create_pod(
        self, spec: JobSpec, role: Role, index: int, memory: JobMemory, addresses: Addresses
    ) -> None:
        pod = await self.create(
            "Pod", pod_object(spec, role, index, round_=memory.round, addresses=addresses)
        )
        if pod is not None:
            memory.seen[uid_of(pod)] = pod

    async def _scaling_admits(self, spec: JobSpec) -> bool:
        rule = await self.api.get("ConfigMap", spec.labels[SCALING_RULE], spec.namespace)
        return may_create(spec, rule, self.cache.all("PodGroup", spec.namespace))

    def _addresses(self, spec: JobSpec) -> Addresses:
        clusterd = text(self.cache.get("Service", *CLUSTERD) or {}, "spec", "clusterIP")
        name = leader_service_name(spec)
        leader = text(self.cache.get("Service", name, spec.namespace) or {}, "spec", "clusterIP")
        return Addresses(server=clusterd or SERVER_DOMAIN, leader=leader or f"{name}.{spec.namespace}.svc")

    async def _restart_by_exit_code(self, spec: JobSpec, pods: list[Object]) -> bool:
        """Delete failed pods of roles with restartPolicy ExitCode whose code is retryable."""
        restarted = False
        policies = {role.lower: role.restart_policy for role in spec.roles}
        for pod in pods:
            by_code = policies.get(labels_of(pod).get("replica-type", "")) == "ExitCode"
            if not by_code or phase_of(pod) != "Failed" or is_terminating(pod):
                continue
            if exit_code_of(pod) in RETRYABLE_EXIT or exit_code_of(pod) == UNKNOWN_EXIT:
                await self.api.delete("Pod", name_of(pod), spec.namespace, uid=uid_of(pod))
                restarted = True
        return restarted

    async def _update_status(
        self, job: Object, spec: JobSpec, pods: list[Object], *, restarted: bool
    ) -> None:
        counts = tally(pods)
        restarting = restarted or condition(job, Status.RESTARTING).get("status") == "True"
        retry_left = bool(counts.failed) and not restarting and await self._retry_left(spec)
        status = next_condition(counts, total=spec.replicas, restarting=restarting, retry_left=retry_left)
        if restarted:
            status = Status.RESTARTING
        job = await self._set_replicas(job, spec, pods)
        if status is not None:
            reason, message = _words(status, spec)
            await self._set_condition(job, status, reason, message)

    async def _retry_left(self, spec: JobSpec) -> bool:
        """Unconditional retry: fault-retry-times is set and the scheduler's ConfigMap leaves a retry."""
        if number(spec.labels, "fault-retry-times") <= 0:
            return False
        return remaining_retries(await self.api.get("ConfigMap", *RETRIES), spec) >= 1

    async def _set_replicas(self, job: Object, spec: JobSpec, pods: list[Object]) -> Object:
        statuses: Object = {}
        for role in spec.roles:
            mine = tally([pod for pod in pods if labels_of(pod).get("replica-type") == role.lower])
            counts = {"active": mine.active, "succeeded": mine.succeeded, "failed": mine.failed}
            statuses[role.kind] = {key: value for key, value in counts.items() if value}
        known = dig(job, "status", "replicaStatuses")
        if known == statuses:
            return job
        # A merge patch would keep counters that are gone, so they are named null.
        cleared = {
            kind: dict.fromkeys(("active", "succeeded", "failed")) | new for kind, new in statuses.items()
        }
        conditions = items(job, "status", "conditions")
        return await self.patch_status(
            "AscendJob", job, {"replicaStatuses": cleared, "conditions": conditions}
        )

    async def _set_condition(self, job: Object, status: Status, reason: str, message: str) -> Object:
        known = condition(job, status)
        last = items(job, "status", "conditions")[-1:]
        if known.get("status") == "True" and known.get("reason") == reason and last == [known]:
            return job
        now = self.now()
        body: Object = {
            "conditions": conditions_with(job, status, reason=reason, message=message, now=now),
            "lastReconcileTime": now,
            "replicaStatuses": dig(job, "status", "replicaStatuses") or {},
        }
        if not text(job, "status", "startTime"):
            body["startTime"] = now
        return await self.patch_status("AscendJob", job, body)

    async def _finish(self, job: Object, pods: list[Object]) -> None:
        """Terminal state: Pending pods go, cleanPodPolicy applies, the PodGroup goes."""
        policy = text(job, "spec", "runPolicy", "cleanPodPolicy")
        doomed = {"Pending", ""} | ({"Running"} if policy == "Running" else set())
        for pod in pods:
            if not is_terminating(pod) and (policy == "All" or phase_of(pod) in doomed):
                await self.api.delete("Pod", name_of(pod), namespace_of(pod), uid=uid_of(pod))
        group = self.cache.get("PodGroup", f"{name_of(job)}-{uid_of(job)}", namespace_of(job))
        if group is not None and not is_terminating(group):
            await self.api.delete("PodGroup", name_of(group), namespace_of(group), uid=uid_of(group))
        if not text(job, "status", "completionTime"):
            await self.patch_status("AscendJob", job, {"completionTime": self.now()})


def _words(status: Status, spec: JobSpec) -> tuple[str, str]:
    """Reason and message of a condition."""
    words: dict[Status, Any] = {
        Status.RUNNING: ("JobRunning", f"AscendJob {spec.name} is running."),
        Status.SUCCEEDED: ("JobRunning", f"AscendJob {spec.name} successfully completed."),
        Status.RESTARTING: ("JobRestarting", f"AscendJob {spec.name} is restarting because pods failed."),
        Status.FAILED: ("JobFailed", f"AscendJob {spec.name} has failed because pods failed."),
    }
    reason, message = words[status]
    return reason, message


__all__ = ["AscendOperator", "JobMemory", "counts_for_round", "exit_code_of"]
