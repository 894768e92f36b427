"""Steps that stand in the way of a recovery: finalizers, programs that never start, pauses.

Nobody is judged by them, so they are only told, not noted as harm; a crash loop is, since a program fails.
"""

from __future__ import annotations

import json
from typing import Any

from mindie_ha.demo import steps
from mindie_ha.demo.observations import Harm, Injected
from mindie_ha.demo.stage import Stage
from mindie_ha.demo.stories import Story
from mindie_ha.model.errors import MindieHaError
from mindie_ha.sim.actors.pod_runs import CRASHES
from mindie_ha.sim.client import ApiError

PERSON = "demo"


class Obstacles:
    """Takes steps on a stage. Raises MindieHaError where the scenario speaks of what is not."""

    def __init__(self, stage: Stage, *, story: Story) -> None:
        self._stage = stage
        self._story = story
        self._crashing: dict[str, str] = {}  # workload -> replica

    async def take(self, step: steps.Step, where: str) -> bool:
        """Do what the step says; whether it was one of these."""
        try:
            return await self._take(step, where)
        except ApiError as error:
            raise MindieHaError(f"{where}: {error}") from None

    async def _take(self, step: steps.Step, where: str) -> bool:
        match step:
            case steps.Step(finalizer=steps.Finalizer(pod=pod, name=name)):
                await self._finalizers(pod, [name])
                self._story.milestone("obstacle", f"finalizer {name} stands on {pod}")
            case steps.Step(finalizer_gone=str(pod)):
                await self._finalizers(pod, None)
                self._story.milestone("obstacle", f"the finalizer of {pod} is taken away")
            case steps.Step(crash_loop=steps.CrashLoop() as loop):
                await self._crash(loop)
            case steps.Step(crash_loop_over=str(workload)):
                await self._crashes(workload, self._replica(workload, where), None)
                self._story.milestone("obstacle", f"new pods of {workload} start well again")
            case steps.Step(pause=steps.Pause() as pause):
                await self._stage.app.pauses.pause(
                    pause.scope, text=pause.reason, person=PERSON, for_s=pause.for_s
                )
                self._story.milestone("person", f"pauses {pause.scope}: {pause.reason}")
            case steps.Step(resume=str(scope)):
                await self._stage.app.pauses.resume(scope, person=PERSON)
                self._story.milestone("person", f"resumes {scope}")
            case _:
                return False
        return True

    async def _finalizers(self, pod: str, names: list[str] | None) -> None:
        namespace, _, name = pod.partition("/")
        await self._stage.api.patch("Pod", name, namespace, {"metadata": {"finalizers": names}})

    async def _crash(self, loop: steps.CrashLoop) -> None:
        self._crashing[loop.workload] = loop.replica
        seen, now_s = self._stage.journal.observations, self._stage.clock.monotonic()
        fault = Injected(
            now_s, "", "", f"crash loop, exit code {loop.code}", loop.workload, kind=Harm.PROCESS
        )
        seen.faults.append(fault)
        self._story.broken(fault)
        await self._crashes(loop.workload, loop.replica, json.dumps({"code": loop.code, "after_s": 1}))

    async def _crashes(self, workload: str, replica: str, text: str | None) -> None:
        namespace, _, name = workload.partition("/")
        template: dict[str, Any] = {"metadata": {"annotations": {CRASHES: text}}}
        body = {"spec": {"replicaSpecs": {replica: {"template": template}}}}
        await self._stage.api.patch("AscendJob", name, namespace, body)

    def _replica(self, workload: str, where: str) -> str:
        if workload not in self._crashing:
            raise MindieHaError(f"{where}: {workload} has no crash loop")
        return self._crashing.pop(workload)


__all__ = ["Obstacles"]
