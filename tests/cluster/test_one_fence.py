"""Never are two fences open at the same true time, whatever happens on the way to the API server.

Three replicas whose clocks run at paces and from origins of their own; requests hang, are cut before or after
they took effect, arrive late, or are refused; replicas end in order or at once. In the end somebody leads.
"""

from __future__ import annotations

import asyncio

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st

from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange
from tests.cluster.conftest import Cluster
from tests.cluster.test_lease_answers import DRIFT, Line, Replica

NAMES = ("a", "bb", "ccc")
FAULTS = ("hangs", "cut", "answer lost", "late", "429", "500", "403")
HEALED_S = 120.0

Trouble = tuple[float, int, str, float]  # at, whose line, what, for how long
troubles = st.lists(
    st.tuples(
        st.floats(0, HEALED_S - 1),
        st.integers(0, 2),
        st.sampled_from((*FAULTS, "stop", "die")),
        st.floats(0.1, 40),
    ),
    max_size=8,
)
paces = st.tuples(*[st.floats(0.96, 1.04)] * 3)
ahead = st.tuples(*[st.floats(-100_000, 100_000)] * 3)


class LateLine(Line):
    """Also delivers requests long after their sender gave up."""

    def __init__(self, server: Exchange) -> None:
        super().__init__(server)
        self.under_way: set[asyncio.Task[ApiResponse]] = set()

    async def handle(self, request: ApiRequest) -> ApiResponse:
        if self.fault != "late":
            return await super().handle(request)
        task = asyncio.create_task(self._later(request))
        self.under_way.add(task)
        return await asyncio.shield(task)

    async def _later(self, request: ApiRequest) -> ApiResponse:
        await asyncio.sleep(3.9 if request.method == "GET" else 12.0)
        return await self.server.handle(request)


async def works(replica: Replica) -> None:
    """What a controller does: stand, lead, end its work after a loss, stand again."""
    while True:
        replica.candidate.stand()
        await replica.candidate.acquired.wait()
        await replica.candidate.lost.wait()
        await asyncio.sleep(0.5)


async def disturb(replica: Replica, trouble: Trouble) -> None:
    at_s, _, what, lasts_s = trouble
    await asyncio.sleep(at_s)
    if what in ("stop", "die"):
        await (replica.stop() if what == "stop" else replica.die())
        await asyncio.sleep(lasts_s)
        replica.line.fault = ""
        replica.task = asyncio.create_task(replica.candidate.run())
        return
    replica.line.fault = what
    await asyncio.sleep(lasts_s)
    replica.line.fault = ""


async def history(story: list[Trouble], speeds: tuple[float, ...], skews: tuple[float, ...]) -> None:
    cluster = Cluster()
    replicas = [
        Replica(cluster, name, ahead_s=skew, pace=speed, line=LateLine)
        for name, speed, skew in zip(NAMES, speeds, skews, strict=True)
    ]
    tasks = [asyncio.create_task(works(replica)) for replica in replicas]
    busy: set[int] = set()
    for trouble in story:
        if trouble[2] not in ("stop", "die") or trouble[1] not in busy:
            tasks.append(asyncio.create_task(disturb(replicas[trouble[1]], trouble)))
            busy |= {trouble[1]} if trouble[2] in ("stop", "die") else set()
    try:
        while asyncio.get_running_loop().time() < HEALED_S + 40 + 2 * 15 * DRIFT:
            open_now = [replica.candidate.identity for replica in replicas if replica.candidate.leads]
            assert len(open_now) <= 1, f"{open_now} at {asyncio.get_running_loop().time():.2f}"
            await asyncio.sleep(0.2)
        assert any(replica.candidate.leads for replica in replicas)
    finally:
        late = [
            task
            for replica in replicas
            if isinstance(replica.line, LateLine)
            for task in replica.line.under_way
        ]
        everything = [*tasks, *late, *(replica.task for replica in replicas)]
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        await cluster.close()


@settings(max_examples=25, deadline=None)
@given(story=troubles, speeds=paces, skews=ahead)
def test_never_two_fences_at_once(
    story: list[Trouble], speeds: tuple[float, ...], skews: tuple[float, ...]
) -> None:
    loop = looptime.new_event_loop()
    loop.setup_looptime(start=0)
    try:
        loop.run_until_complete(history(story, speeds, skews))
    finally:
        loop.close()
