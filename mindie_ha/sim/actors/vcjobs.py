"""The Volcano job controller: a vcjob becomes a PodGroup and pods, and is restarted by its policies.

Promises of the real one that recovery depends on: without a policy a missing pod is created again under its
name; policy `RestartJob` on `PodEvicted` or `PodFailed` deletes every other pod too and counts a retry, once
per version of the job; the restart that reaches `maxRetry` makes the job Failed for good; a failed pod
without a policy stays as it is. No pod is created while the PodGroup is Pending, none while the job restarts
and an old pod is still there.

Source: rescheduling contract §1.1, §2.6; Volcano's job controller.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.ascendjobs import tally
from mindie_ha.sim.actors.base import Actor
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.actors.documents import (
    annotations_of,
    controller_uid,
    dig,
    is_finished,
    is_terminating,
    items,
    mapping,
    name_of,
    number,
    phase_of,
    text,
    uid_of,
)
from mindie_ha.sim.actors.vcjob_objects import (
    JOB_VERSION,
    RESTART_JOB,
    TASK_SPEC,
    VolcanoJob,
    group_object,
    pod_object,
    read,
)
from mindie_ha.sim.client import ApiClient, Object

ENDED = ("Failed", "Completed", "Terminated", "Aborted")


class VolcanoJobs(Actor):
    """Keeps every vcjob's objects and status."""

    name = "volcano-jobs"
    kinds = ("Job", "PodGroup", "Pod")

    def __init__(self, *, api: ApiClient, cache: Cache, clock: Clock, entropy: Entropy) -> None:
        super().__init__(api=api, cache=cache, clock=clock, entropy=entropy)
        self._seen: dict[str, dict[str, Object]] = {}  # by job UID: its pods by UID, as last looked at

    async def reconcile(self) -> float:
        """Every job once; a refusal of one does not hold up the others."""
        jobs = self.cache.all("Job")
        owned: dict[str, list[Object]] = {uid_of(job): [] for job in jobs}
        for pod in self.cache.all("Pod") if jobs else ():
            owned.get(controller_uid(pod), []).append(pod)
        self._seen = {uid: seen for uid, seen in self._seen.items() if uid in owned}
        await self.attempt_all(
            (name_of(job), self._reconcile_job(job, owned[uid_of(job)]))
            for job in jobs
            if not is_terminating(job)
        )
        return self.period_s

    async def _reconcile_job(self, job: Object, pods: list[Object]) -> None:
        before = self._seen.get(uid_of(job), {})
        self._seen[uid_of(job)] = {uid_of(pod): pod for pod in pods}
        spec, phase = read(job), text(job, "status", "state", "phase")
        if phase in ENDED:
            await self._kill(pods if phase == "Failed" else (), spec)
            return
        if phase == "Restarting":
            if pods:
                await self._kill(pods, spec)
                return
            phase = "Pending"
            job = await self._say(job, phase, "the pods are made anew")
        elif self._asks_for_restart(job, spec, pods, before):
            await self._restart(job, spec, pods)
            return
        if await self._group_admits(spec):
            await self._make(job, spec, pods)
        await self._update(job, spec, pods)

    def _asks_for_restart(
        self, job: Object, spec: VolcanoJob, pods: list[Object], before: dict[str, Object]
    ) -> bool:
        """Whether a pod of the running version failed, or was deleted before it ended, and a policy minds."""
        version = str(number(job, "status", "version"))
        current = {uid_of(pod): pod for pod in pods}
        events: list[tuple[Object, str]] = [
            (pod, "PodFailed") for pod in pods if phase_of(pod) == "Failed" and not is_terminating(pod)
        ]
        events += [
            (pod, "PodEvicted") for uid, pod in before.items() if uid not in current and not is_finished(pod)
        ]
        return any(
            spec.action(annotations_of(pod).get(TASK_SPEC, ""), event=event, exit_code=_exit_code(pod))
            == RESTART_JOB
            for pod, event in events
            if annotations_of(pod).get(JOB_VERSION) == version
        )

    async def _restart(self, job: Object, spec: VolcanoJob, pods: list[Object]) -> None:
        retries = number(job, "status", "retryCount") + 1
        counts = {"retryCount": retries, "version": number(job, "status", "version") + 1}
        spent = retries >= spec.max_retry
        words = f"maxRetry {spec.max_retry} is reached" if spent else "by its policies"
        await self._say(job, "Failed" if spent else "Restarting", words, **counts)
        await self._kill(pods, spec)

    async def _kill(self, pods: Iterable[Object], spec: VolcanoJob) -> None:
        for pod in pods:
            if not is_terminating(pod) and not (is_finished(pod) and phase_of(pod) == "Succeeded"):
                await self.api.delete("Pod", name_of(pod), spec.namespace, uid=uid_of(pod))

    async def _group_admits(self, spec: VolcanoJob) -> bool:
        group = self.cache.get("PodGroup", spec.group, spec.namespace)
        if group is None:
            group = await self.create("PodGroup", group_object(spec))
        return phase_of(group or {}) not in ("", "Pending")

    async def _make(self, job: Object, spec: VolcanoJob, pods: list[Object]) -> None:
        held, version = {name_of(pod) for pod in pods}, number(job, "status", "version")
        for name, task, index, rank in spec.places():
            if name in held:
                continue
            body = pod_object(spec, name=name, task=task, index=index, rank=rank, version=version)
            pod = await self.create("Pod", body)
            if pod is not None:
                self._seen[spec.uid][uid_of(pod)] = pod

    async def _update(self, job: Object, spec: VolcanoJob, pods: list[Object]) -> None:
        counts = tally(pods)
        ended = counts.succeeded + counts.failed
        if spec.replicas and ended == spec.replicas:
            phase = "Completed" if counts.succeeded >= spec.min_available else "Failed"
        else:
            phase = "Running" if counts.running + counts.succeeded >= spec.min_available else "Pending"
        fields = {
            "running": counts.running,
            "succeeded": counts.succeeded,
            "failed": counts.failed,
            "pending": counts.active - counts.running,
            "minAvailable": spec.min_available,
        }
        await self._say(job, phase, "", **fields)

    async def _say(self, job: Object, phase: str, message: str, **fields: int) -> Object:
        """Write the status where it differs."""
        known = mapping(job, "status")
        same = text(known, "state", "phase") == phase
        if same and all(dig(known, name) == value for name, value in fields.items()):
            return job
        state = {"phase": phase, "message": message}
        if not same:
            state["lastTransitionTime"] = self.now()
        return await self.patch_status("Job", job, {"state": state, **fields})


def _exit_code(pod: Object) -> int | None:
    codes = (
        number(status, "state", "terminated", "exitCode")
        for status in items(pod, "status", "containerStatuses")
    )
    return next((code for code in codes if code), None)


__all__ = ["ENDED", "VolcanoJobs"]
