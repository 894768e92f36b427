"""One history: a seed, what happens in it, and what the judge has to say.

Services come up, then so many random events follow each other, the judge looking on at every write and after
every event. At last everything that was broken is mended, people do what only people may (a job that its
operator gave up is applied anew, a park is ended), and within an hour of virtual time everything has to be
whole; after that nothing may be written any more.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import time
from dataclasses import dataclass
from functools import lru_cache

from mindie_ha.model.errors import MindieHaError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import BudgetSettings, PhaseSettings, Settings
from mindie_ha.sim.actors.clusterds import ClusterdSettings
from mindie_ha.sim.actors.kubelets import KubeletSettings
from mindie_ha.sim.actors.node_lifecycles import NodeLifecycleSettings
from mindie_ha.sim.actors.schedulers import SchedulerSettings
from mindie_ha.sim.documents import Documents
from mindie_ha.sim.world import WorldSettings
from tools.soak import events, tenants
from tools.soak.loops import Deadlock, LiveLock, VirtualLoop
from tools.soak.mutations import Mutation
from tools.soak.rules import LEARNS_WITHIN_S
from tools.soak.stage import Object, Stage, owner_of, staged
from tools.soak.tenants import MS_JOBS, Service, Tenant

STEPS = 16
UP_WITHIN_S = 300.0
WHOLE_WITHIN_S = 3600.0
SETTLED_S = 70.0  # Events may be counted up, marks released
QUIET_S = 90.0
TAINT = "mindie-ha.io/isolated"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one history. `spent_s` is real time, all else repeats with the seed."""

    seed: int
    violations: tuple[str, ...]
    digest: str
    virtual_s: float
    turns: int
    most_turns: int
    deaths: int
    recoveries: int
    spent_s: float
    story: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was broken."""
        return not self.violations


@lru_cache(maxsize=1)
def _documents() -> Documents:
    return Documents()  # descriptions of all kinds; they never change


def play(seed: int, *, steps: int = STEPS, theme: str = "all", mutation: Mutation | None = None) -> Result:
    """Play one history to its end, or to the first broken promise."""
    began_s = time.monotonic()
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    history = History(seed, steps=steps, theme=theme, mutation=mutation or Mutation())
    try:
        loop.run_until_complete(history.run())
    except (LiveLock, Deadlock) as stuck:
        stage = history.stage
        stage.judge.violations.append(f"{loop.time():.2f}: [9] {type(stuck).__name__}: {stuck}")
    finally:
        loop.end()
        asyncio.set_event_loop(None)
        gc.collect()  # what a history that was broken off leaves behind must not meet the next one
    stage = history.stage
    return Result(
        seed=seed,
        violations=tuple(stage.judge.violations),
        digest=stage.digest.text,
        virtual_s=loop.time(),
        turns=loop.turns,
        most_turns=loop.most_turns,
        deaths=len(stage.lives) - stage.replicas,
        recoveries=stage.judge.recoveries,
        spent_s=time.monotonic() - began_s,
        story=tuple(stage.diary.lines) if stage.judge.violations else (),
    )


class History:
    """See the module."""

    def __init__(self, seed: int, *, steps: int, theme: str, mutation: Mutation) -> None:
        self._dice = random.Random(seed)
        self._seed = seed
        self._steps = steps
        self._theme = theme
        self._mutation = mutation
        self.stage: Stage

    async def run(self) -> None:
        """Everything; complaints are with the judge."""
        dice = self._dice
        drawn = tenants.draw(dice, theme=self._theme)
        nodes = sum(one.machines for one in drawn) + dice.randint(2, 4)
        self.stage = stage = Stage(
            drawn,
            seed=self._seed,
            nodes=nodes,
            replicas=dice.choice((1, 2, 2)),
            world=_world(dice),
            settings=_settings(dice),
            mutation=self._mutation,
            documents=_documents(),
        )
        asyncio.get_running_loop().set_exception_handler(self._unhandled)
        stage.diary.note(f"seed {self._seed}: {nodes} nodes, {', '.join(map(str, drawn))}")
        async with staged(stage):
            for tenant in drawn:
                await stage.apply(tenant)
            await stage.staff()
            if not await self._whole("at the beginning", within_s=UP_WITHIN_S):
                return
            for _ in range(self._steps):
                await self._step()
                if stage.judge.violations:
                    return
            await self._end()

    async def _step(self) -> None:
        stage, dice = self.stage, self._dice
        event = events.draw(dice, theme=self._theme)
        said = await event(stage, dice)
        stage.diary.note(f"* {event.__name__}: {said}")
        stage.digest.add(said)
        await stage.clock.sleep(dice.choice((0.0, 0.1, 1.0, 5.0, 20.0, 60.0)))
        self._look()

    def _look(self) -> None:
        """What can be seen between two events."""
        stage = self.stage
        stage.judge.look()
        for life in stage.alive:
            if life.task.done():
                how = "cancelled" if life.task.cancelled() else repr(life.task.exception())
                stage.judge.wrong(9, f"{life.process.name} ended by itself: {how}")
            if life.crashes():
                stage.judge.wrong(9, f"{life.process.name}: a task crashed\n{life.log.getvalue()}")

    async def _end(self) -> None:
        """Mend everything; then all has to be well, and quiet."""
        stage = self.stage
        stage.diary.note("* everything is mended")
        stage.server.disturbances.clear()
        for node in stage.node_names:
            await events.heal(stage, node)
        await events.pods_let_go(stage, self._dice)
        await stage.clock.sleep(LEARNS_WITHIN_S)  # a controller may hear late of the last fault
        if not await self._whole("in the end", within_s=WHOLE_WITHIN_S, mend=True):
            return
        await stage.clock.sleep(SETTLED_S)
        count = len(stage.judge.writes)
        await stage.clock.sleep(QUIET_S)
        for write in stage.judge.writes[count:]:
            stage.judge.wrong(7, f"written while nothing is wrong: {write.method} {write.path} {write.body}")
        if still := self._ailing():
            stage.judge.wrong(8, f"well, and then not any more: {'; '.join(still)}")
        self._look()

    async def _whole(self, when: str, *, within_s: float, mend: bool = False) -> bool:
        stage = self.stage
        ends_s = stage.clock.monotonic() + within_s
        while (ailing := self._ailing()) and not stage.judge.violations:
            if stage.clock.monotonic() > ends_s:
                stage.judge.wrong(8, f"{when}, not within {within_s:g} s: {'; '.join(ailing)}")
                break
            if mend:
                await self._as_a_person()
            await stage.clock.sleep(5.0)
            self._look()
        return not stage.judge.violations

    async def _as_a_person(self) -> None:
        """End parks; apply anew what its operator gave up."""
        stage = self.stage
        for tenant in stage.tenants:
            for job in tenant.jobs:
                found = stage.get("AscendJob", job, tenant.namespace)
                if found is None:
                    made = next(one for one in tenant.objects() if _is_job(one, job))
                    await stage.api.create("AscendJob", made)
                    stage.diary.note(f"* a person applies {tenant.namespace}/{job} anew")
                elif _is_failed(found):
                    await stage.api.delete("AscendJob", job, tenant.namespace)
                    stage.diary.note(f"* a person deletes {tenant.namespace}/{job}, which is Failed")
                elif stage.ledger(tenant, job).get("parked"):
                    await self._reset(ObjectKey(tenant.namespace, job))

    async def _reset(self, key: ObjectKey) -> None:
        life = self.stage.leader or self.stage.alive[0]
        try:
            await life.app.rearm.reset(key, text="the cause is gone", person="soak")
        except MindieHaError as error:
            self.stage.diary.note(f"* {key} is not reset: {error}")
        else:
            self.stage.diary.note(f"* a person resets {key}")

    def _ailing(self) -> list[str]:
        """What is not well."""
        stage = self.stage
        tainted = [node["metadata"]["name"] for node in stage.all("Node") if _has_our_taint(node)]
        found = [f"{name} has our taint" for name in tainted]
        for tenant in stage.tenants:
            found += [f"{tenant.namespace}: {what}" for what in self._ailing_of(tenant)]
        return found

    def _ailing_of(self, tenant: Tenant) -> list[str]:
        stage, found = self.stage, []
        addresses: dict[str, set[str]] = {}
        for job in tenant.jobs:
            pods = stage.pods(tenant, job)
            wanted = tenant.size(job)
            running = [pod for pod in pods if _runs(pod)]
            if len(pods) != wanted or len(running) != wanted:
                found.append(f"{job}: {len(running)} of {wanted} pods run, {len(pods)} exist")
            if (recovery := stage.ledger(tenant, job).get("recovery")) is not None:
                found.append(f"{job}: open in {recovery['rung']}/{recovery['phase']} {recovery['condition']}")
            addresses[job] = {pod["status"].get("podIP", "") for pod in pods}
        tables = self._ailing_table(tenant, addresses) if isinstance(tenant, Service) else []
        return found + tables

    def _ailing_table(self, service: Service, addresses: dict[str, set[str]]) -> list[str]:
        ledger = self.stage.table(service)
        groups = json.loads(ledger["text"])["server_group_list"] if ledger["text"] else []
        listed = {one["group_id"]: {server["server_ip"] for server in one["server_list"]} for one in groups}
        wanted = {str(ledger["ids"].get(job)): addresses[job] for job in service.instances}
        wanted |= {"0": addresses["mindie-ms-coordinator"], "1": addresses["mindie-ms-controller"]}
        if listed != wanted:
            return [f"the table lists {listed}, there are {wanted}"]
        leader = self.stage.programs.leader(service.namespace, service.job_id)
        if leader is None:
            return ["no Controller is active"]
        if not leader.received or leader.received[-1].text != ledger["text"]:
            return [f"the Controller at {leader.sandbox.ip} has an old table"]
        return []

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        self.stage.judge.wrong(9, f"nobody handles: {context.get('message')} {error!r}")


def _settings(dice: random.Random) -> Settings:
    return Settings(
        phases=PhaseSettings(settle_s=dice.choice((5.0, 30.0))),
        budgets=BudgetSettings(max_attempts=100, backoff_max_s=60.0),
    )


def _world(dice: random.Random) -> WorldSettings:
    slow = dice.random() < 0.25
    kubelet = KubeletSettings(start_s=(1.0, 15.0), ready_s=(5.0, 40.0), stop_s=(1.0, 20.0))
    return WorldSettings(
        kubelet=kubelet if slow else KubeletSettings(),
        clusterd=ClusterdSettings(lag_s=dice.choice(((0.0, 0.5), (0.0, 5.0), (4.0, 5.0)))),
        scheduler=SchedulerSettings(session_s=dice.choice((1.0, 1.0, 5.0))),
        node_lifecycle=NodeLifecycleSettings(grace_s=dice.choice((0.0, 10.0))),
    )


def _is_job(obj: Object, name: str) -> bool:
    return bool(obj["kind"] == "AscendJob" and obj["metadata"]["name"] == name)


def _is_failed(job: Object) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    return any(one["type"] == "Failed" and one["status"] == "True" for one in conditions)


def _has_our_taint(node: Object) -> bool:
    return any(taint["key"] == TAINT for taint in node["spec"].get("taints") or ())


def _runs(pod: Object) -> bool:
    """Runs; a server is ready too, while a standby never is."""
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    running = pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    return running and (ready or owner_of(pod) in MS_JOBS)


__all__ = ["STEPS", "History", "Result", "play"]
