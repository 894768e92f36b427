"""The controller dies at each write of each kind of recovery; the next one finishes as if nothing had been.

The rung of a server instance is in `test_restarts.py`, where Kubernetes Events count as well; here they do
not: an Event is told after what it tells, so a death beside one is a death between two other writes. Write
`cut` arrives and its answer does not; for whoever comes next that is the same as dying before write `cut + 1`
leaves. With 0 the first one never leaves. Ledgers are among the writes: what was decided stands, or nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from mindie_ha.model.settings import Owner, OwnershipSettings, Settings

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, Object, cluster, quick
from .pairs import COORDINATOR, service
from .test_training_jobs import SICK, in_super_pods, reset, training, word_history

pytestmark = pytest.mark.looptime
P0 = "mindie-server-p0"
TRAIN = "train"
PATIENCE_S = 90.0  # longer than any of these recoveries


@dataclass(frozen=True)
class Story:
    """One kind of recovery. `writes`: so many it has; more would do no harm."""

    stage: Callable[[], AbstractAsyncContextManager[Cluster]]
    happens: Callable[[Cluster], Awaitable[None]]
    job: str
    rungs: list[str]
    replaced: set[str]
    writes: int
    settings: Settings
    retry_time: int | None = None  # of reset-config, afterwards
    words: list[int] | None = None  # that GracefulExit had
    ours: int | None = None  # deletions that we sent; None: one for each pod that was replaced


async def worker_chip(c: Cluster) -> None:
    await c.world.set_faults(c.node_of("train-worker-1"), [CHIP])


async def block_chip(c: Cluster) -> None:
    await c.world.set_faults(c.node_of("train-worker-2"), [CHIP])


async def sick_card(c: Cluster) -> None:
    await c.world.set_faults(c.node_of("train-worker-1"), [SICK])


async def node_lost(c: Cluster) -> None:
    await c.world.set_faults("node-8", [NOT_READY])


async def server_chip(c: Cluster) -> None:
    await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])


@asynccontextmanager
async def pairs_of_ms() -> AsyncIterator[Cluster]:
    pinned = service(pins=("node-8 node-9", "node-9 node-0"))
    async with cluster(service=pinned, nodes=10, settings=quick()) as c:
        yield c


@asynccontextmanager
async def beside_volcano() -> AsyncIterator[Cluster]:
    async with cluster(volcano_reschedules=True, settings=VOLCANO) as c:
        yield c


VOLCANO = quick().model_copy(update={"ownership": OwnershipSettings(owner=Owner.VOLCANO)})
ALL = {"train-master-0", "train-worker-0", "train-worker-1", "train-worker-2"}
MS = {f"{COORDINATOR}-master-0", f"{COORDINATOR}-worker-0"}

STORIES = {
    "ms-pod-then-job": Story(
        pairs_of_ms, node_lost, COORDINATOR, ["pod", "job"], MS, writes=31, settings=quick(), ours=3
    ),
    "training-pod-rejoins": Story(
        lambda: training(pod_rescheduling="on"),
        worker_chip,
        TRAIN,
        ["pod"],
        {"train-worker-1"},
        writes=17,
        settings=quick(),
        retry_time=1,
    ),
    "super-pod-block": Story(
        lambda: in_super_pods(homes=4, spare=2),
        block_chip,
        TRAIN,
        ["pod", "super-pod"],
        {"train-worker-1", "train-worker-2"},
        writes=23,
        settings=quick(),
        retry_time=1,
        ours=3,
    ),
    "word-to-leave": Story(
        lambda: training(subHealthyStrategy="graceExit"),
        sick_card,
        TRAIN,
        ["job"],
        ALL,
        writes=21,
        settings=quick(),
        words=[1, 0],
    ),
    "volcano-deletes": Story(
        beside_volcano,
        server_chip,
        P0,
        ["job"],
        {f"{P0}-master-0", f"{P0}-worker-0"},
        writes=18,
        settings=VOLCANO,
        ours=0,
    ),
}
CUTS = [
    pytest.param(story, cut, id=f"{name}-{cut}")
    for name, story in STORIES.items()
    for cut in range(story.writes + 1)
]


@pytest.mark.parametrize(("story", "cut"), CUTS)
async def test_killed_at_a_write(story: Story, cut: int) -> None:
    async with story.stage() as c:
        old = c.uids()
        cut_next(c, cut)
        await story.happens(c)
        await died(c)
        await c.clock.sleep(1.0)
        await c.start(story.settings)
        record = await c.recovered(story.job)
        prove(c, story, record, old)


def cut_next(c: Cluster, cut: int) -> None:
    """From now on, so many writes arrive."""
    door = c.runs[-1].door
    door.counts_events = False
    if cut:
        door.cut_after = door.writes + cut
    else:
        door.cut_before = door.writes + 1


async def died(c: Cluster) -> None:
    """The door shut, or everything was over before."""
    run = c.runs[-1]
    await asyncio.wait((asyncio.ensure_future(run.door.shut.wait()),), timeout=PATIENCE_S)
    await c.kill()


def prove(c: Cluster, story: Story, record: Object, old: dict[str, str]) -> None:
    """What holds however often somebody died on the way."""
    ledger = c.ledger(story.job)
    assert record["rungs"] == story.rungs
    assert record["outcome"] == "recovered"
    assert (ledger["epoch"], len(ledger["attempts"])) == (1, len(story.rungs))
    assert {name for name, uid in c.uids().items() if old.get(name) != uid} == story.replaced
    assert len(c.judge.deleted) == (len(story.replaced) if story.ours is None else story.ours)
    if story.retry_time is not None:
        assert reset(c)["RetryTime"] == story.retry_time
    if story.words is not None:
        assert word_history(c) == story.words


ADOPTION_WRITES = 6
PAUSE_WRITES = 12


@pytest.mark.parametrize("cut", range(1, ADOPTION_WRITES + 1))
async def test_killed_while_jobs_are_taken_over(cut: int) -> None:
    """The first controller of a cluster dies at one of its first writes; each job is adopted."""
    async with cluster(start=False) as c:
        begun = asyncio.ensure_future(c.start(quick()))
        await asyncio.sleep(0)
        cut_next(c, cut)
        await died(c)
        await begun
        await c.start(quick())
        await c.serving()
        await c.until(lambda: adopted(c), "each adopted; the order is repeated after 30 s", deadline_s=60)
        await server_chip(c)
        record = await c.recovered(P0)
        assert (record["epoch"], record["rungs"]) == (1, ["job"])
        await c.quiet()


@pytest.mark.parametrize("cut", range(1, PAUSE_WRITES + 1))
async def test_killed_around_a_pause(cut: int) -> None:
    """Paused, hit, resumed: dead at one of these writes. Nothing is deleted before a person resumes."""
    async with cluster(settings=quick()) as c:
        old = c.uids()
        cut_next(c, cut)
        paused = await in_time(c, c.app.pauses.pause("cluster", text="work", person="ann", for_s=None))
        if not paused:
            await again(c)
            await c.app.pauses.pause("cluster", text="work", person="ann", for_s=None)
        await server_chip(c)
        await c.clock.sleep(30.0)
        if c.runs[-1].door.shut.is_set():
            await again(c)
            await c.clock.sleep(30.0)
        assert c.uids() == old
        if not await in_time(c, c.app.pauses.resume("cluster", person="bob")):
            await again(c)
            await c.app.pauses.resume("cluster", person="bob")
        await c.clock.sleep(10.0)
        if c.runs[-1].door.shut.is_set():
            await again(c)
        record = await c.recovered(P0)
        assert (record["epoch"], record["rungs"]) == (1, ["job"])
        assert len(c.judge.deleted) == 2


def adopted(c: Cluster) -> bool:
    """Whether every job's PodGroup says that it is ours."""
    groups = {obj["metadata"]["name"]: obj["metadata"] for obj in c.all("PodGroup", NAMESPACE)}
    jobs = [c.podgroup(obj["metadata"]["name"]) for obj in c.all("AscendJob", NAMESPACE)]
    return all("ProcessRecoverStrategy" in groups[job].get("annotations", {}) for job in jobs)


async def again(c: Cluster) -> None:
    """Another process, as after a death."""
    await c.kill()
    await c.clock.sleep(1.0)
    await c.start(quick())


async def in_time(c: Cluster, work: Coroutine[object, object, object]) -> bool:
    """Whether it was done; a dead process answers nobody."""
    task = asyncio.ensure_future(work)
    shut = asyncio.ensure_future(c.runs[-1].door.shut.wait())
    await asyncio.wait((task, shut), timeout=20, return_when=asyncio.FIRST_COMPLETED)
    done = task.done()
    for each in (task, shut):
        each.cancel()
    return done
