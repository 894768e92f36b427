"""A scenario is played: the service comes up, the steps are taken, the end is awaited, the run is judged.

The end is what an observer can see: every expected recovery closed, every pod ready, every subscriber at
the newest table. Then nothing may be written for a while. A scenario that does not come to its end within
its limit is judged as it stands.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mindie_ha.demo import invariants
from mindie_ha.demo.expectations import TaintStory
from mindie_ha.demo.judging import Verdict, judge, taint_story
from mindie_ha.demo.moves import Moves
from mindie_ha.demo.observations import Observations, counted_jobs, jobs_in
from mindie_ha.demo.stage import Stage
from mindie_ha.demo.steps import EventCount, NodeWas, Step, WaitUntil
from mindie_ha.demo.stories import Story
from mindie_ha.engine.records import DecisionRecord
from mindie_ha.kit.tasks import OnEnd
from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.ids import ScopeKind
from mindie_ha.model.recoveries import Outcome
from mindie_ha.web.reports import PodReport, ScopeReport, WorkloadReport

UP_S = 300.0  # of the cluster: a service that is not up by then never will be
CALM_S = 5.0  # between the end and the watch for needless writes
QUIET_S = 45.0
STATUS_S = 0.5
LOOK_S = 0.5
LOOK_REAL_S = 0.03  # looks are never more frequent than this, however fast the clock
SERVER_APP = "mindie-ms-server"


@dataclass(frozen=True, slots=True)
class Performance:
    """What a run was."""

    observations: Observations
    verdict: Verdict
    took_s: float  # real seconds


class Play:
    """One run of a scenario on a stage."""

    def __init__(self, stage: Stage, *, story: Story) -> None:
        self._stage = stage
        self._story = story
        self._clock = stage.clock
        self._scenario = stage.scenario
        self._moves = Moves(stage, story=story)

    @property
    def _seen(self) -> Observations:
        return self._stage.journal.observations

    async def perform(self, *, began_s: float) -> Performance:
        """Play to the end and judge. `began_s` is `time.monotonic()` at the very start."""
        limit_s = 60.0 + 3.0 * (UP_S + self._scenario.limit_s) / self._clock.speed
        await self._stage.unless_failed(self._run(), within_s=limit_s, what="the scenario is over")
        self._stage.journal.read_audit()
        verdict = judge(self._seen, self._scenario.expect)
        took_s = time.monotonic() - began_s
        self._story.closing(verdict, self._seen, took_s=took_s)
        return Performance(self._seen, verdict, took_s)

    async def _run(self) -> None:
        self._stage.app.recorder.listeners.append(self._look_at_status)
        self._stage.supervisor.start("status", self._watch_status, on_end=OnEnd.FAIL)
        await self._set_up()
        for number, step in enumerate(self._scenario.steps, start=1):
            await self._take(step, number)
        if await self._until(self._is_over, within_s=self._scenario.limit_s):
            await self._clock.sleep(CALM_S)
            self._seen.quiet_from_s = self._clock.monotonic()
            await self._clock.sleep(QUIET_S)
        self._stage.journal.note_subscribers()
        await self._stage.supervisor.stop("status")

    async def _set_up(self) -> None:
        scenario = self._scenario
        self._stage.journal.expect_objects(scenario.objects())
        await self._stage.apply(scenario.objects(), where=f"manifest {scenario.manifest}")
        jobs = jobs_in(scenario.objects())
        self._story.milestone("applied", counted_jobs(jobs))
        up = await self._until(lambda: len(self._seen.jobs) == len(jobs) and self._is_well(), within_s=UP_S)
        if not up:
            raise MindieHaError(
                f"the service was not up after {UP_S:.0f} s of the cluster: {'; '.join(self._unwell())}"
            )
        if not self._seen.has_service:
            self._story.milestone(
                "up", f"{sum(pod.ready for pod in self._seen.pods.values())} pods are ready"
            )
            return
        table = self._seen.tables[-1]
        groups = self._seen.groups_of(table.text)
        ready = sum(pod.ready for pod in self._seen.pods.values())
        where = f"generation {table.generation} of the rank table is everywhere (instances: {len(groups)})"
        self._story.milestone("up", f"{ready} pods are ready, {where}")

    # -- steps ---------------------------------------------------------------------------------------

    async def _take(self, step: Step, number: int) -> None:
        where = f"scenario {self._scenario.name}: step {number}"
        if step.wait_s is not None:
            await self._clock.sleep(step.wait_s)
        elif step.wait_until is None:
            await self._moves.take(step, where)
        elif not await self._until(self._awaited(step.wait_until), within_s=step.wait_until.within_s):
            what = step.wait_until.model_dump_json(exclude_none=True)
            self._seen.missed.append(f"step {number}: {what} was not seen in time")

    def _awaited(self, wait: WaitUntil) -> Callable[[], bool]:
        seen = self._seen
        match wait:
            case WaitUntil(status_says=str(text)):
                return lambda: any(text in line for line in seen.said)
            case WaitUntil(event=EventCount(reason=reason, about=about, times=times)):
                return lambda: seen.count_events(reason, about) >= times
            case WaitUntil(tainted=NodeWas(was_under=pod)):
                return lambda: self._taint_under(pod) is TaintStory.STANDING
            case WaitUntil(released=NodeWas(was_under=pod)):
                return lambda: self._taint_under(pod) is TaintStory.RELEASED
            case _:
                return lambda: self._is_closed(str(wait.recovered), parked=False)

    def _taint_under(self, pod: str) -> TaintStory:
        return taint_story(self._seen, self._seen.node_was_under(pod))

    # -- states --------------------------------------------------------------------------------------

    @property
    def _now_s(self) -> float:
        return self._clock.monotonic()

    def _is_over(self) -> bool:
        """Every expected recovery has ended, what is expected of taints and Events is there, all is well."""
        expect = self._scenario.expect
        number = Counter(each.workload for each in expect.recoveries)
        closed = (
            self._is_closed(
                each.workload,
                parked=each.outcome is Outcome.PARKED or each.workload in expect.parked,
                number=number[each.workload],
            )
            for each in expect.recoveries
        )
        stories = (self._taint_under(each.was_under) is each.story for each in expect.taints)
        told = (self._seen.count_events(each.reason, each.about) >= each.times for each in expect.events)
        return all(closed) and all(stories) and all(told) and self._is_well()

    def _is_closed(self, workload: str, *, parked: bool, number: int = 1) -> bool:
        ledger = self._seen.ledger_of(workload)
        if ledger is None or ledger.recovery is not None or ledger.body.get("epoch", 0) < number:
            return False
        return bool(ledger.body.get("parked")) == parked

    def _is_well(self) -> bool:
        return next(self._unwell(), None) is None

    def _unwell(self) -> Iterator[str]:
        """Why the service is not up, as far as an observer can tell."""
        yield from invariants.well_in_the_end(self._seen)
        if not self._seen.has_service:
            return
        self._stage.journal.note_subscribers()
        yield from invariants.newest_table_everywhere(self._seen)
        if not any(each.channel == "grpc" for each in self._seen.deliveries):
            yield "no MS Controller has subscribed"
        text = self._seen.tables[-1].text if self._seen.tables else ""
        groups = self._seen.groups_of(text)
        for job in self._seen.jobs.values():
            members = frozenset(pod.uid for pod in self._seen.members(job.key))
            parked = (ledger := self._seen.ledger_of(job.key)) is not None and ledger.body.get("parked")
            if job.app == SERVER_APP and not parked and groups.get(job.key, ("", None))[1] != members:
                yield f"{job.key} is not in the newest table with its pods"

    async def _until(self, condition: Callable[[], bool], *, within_s: float) -> bool:
        deadline_s = self._now_s + within_s
        while not condition():
            if self._now_s > deadline_s:
                return False
            await self._clock.sleep(max(LOOK_S, LOOK_REAL_S * self._clock.speed))
        return True

    def _look_at_status(self, record: DecisionRecord) -> None:
        """What the status says at the moment of a decision, however short it stands."""
        if record.scope.kind is not ScopeKind.NODE:
            report = self._stage.app.core.reporter.report(record.scope)
            if report is not None:
                self._note(report)

    def _note(self, report: ScopeReport) -> None:
        for line in status_lines(report):
            self._seen.said.setdefault(line, self._now_s)
        for workload in report.workloads:
            name = f"{report.namespace}/{workload.name}"
            self._seen.states.setdefault(name, set()).add(workload.state)
            active = tuple((f"{report.namespace}/{pod.name}", pod.uid) for pod in actives(workload))
            self._seen.note_active(self._now_s, name, active)

    async def _watch_status(self) -> None:
        while True:
            for report in self._stage.app.reports():
                self._note(report)
            await self._clock.sleep(max(STATUS_S, LOOK_REAL_S * self._clock.speed))


def actives(workload: WorkloadReport) -> tuple[PodReport, ...]:
    """The pods that the status calls active."""
    return tuple(pod for pod in workload.pods if pod.ms_state == "active")


def status_lines(report: ScopeReport) -> Iterator[str]:
    """Every sentence that the status shows about a service."""
    for workload in report.workloads:
        yield workload.sentence
        yield from workload.notices
        yield from (f"{pod.ms_state}: {pod.name}: {pod.ms_reason}" for pod in workload.pods if pod.ms_state)
        if workload.recovery is not None:
            yield f"{workload.recovery.condition}: {workload.recovery.condition_message}"
    if report.table is not None:
        yield report.table.sentence
        yield from report.table.notices
        yield from (f"held back: {name}" for name in report.table.held_until_s)
        yield from (
            f"left out: {name}: {reason}" for name, why in report.table.left_out.items() for reason in why
        )


__all__ = ["Performance", "Play", "actives", "status_lines"]
