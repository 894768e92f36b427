"""Many histories, side by side in processes, and what is told about them.

Processes share nothing, so a history is the same whoever plays it. The first broken one stops nothing: all
seeds are played, and every broken one is printed with its last steps and with the command that replays it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context, parent_process
from threading import Thread

from tools.soak.histories import STEPS, Result, play
from tools.soak.mutations import MUTATIONS

STORY_LINES = 25
HISTORIES_A_PROCESS = 200  # then a fresh one, so that nothing can pile up over thousands
TOLD_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Run:
    """What to play. `jobs` 0: one a core."""

    first: int
    count: int
    steps: int = STEPS
    theme: str = "all"
    mutation: str = ""
    jobs: int = 0

    def command(self, seed: int) -> str:
        """How to play one history of this run again."""
        words = ["python -m tools.soak --seed", str(seed)]
        if self.steps != STEPS:
            words += ["--steps", str(self.steps)]
        if self.theme != "all":
            words += ["--theme", self.theme]
        if self.mutation:
            words += ["--mutation", self.mutation]
        return " ".join(words)

    def one(self, seed: int) -> Result:
        """Play one history."""
        mutation = MUTATIONS[self.mutation]() if self.mutation else None
        return play(seed, steps=self.steps, theme=self.theme, mutation=mutation)


def results(run: Run) -> Iterator[Result]:
    """The histories in the order of their seeds, each as soon as it is known."""
    seeds = range(run.first, run.first + run.count)
    jobs = min(run.jobs or os.cpu_count() or 1, run.count)
    if jobs == 1:
        yield from map(run.one, seeds)
        return
    size = jobs * HISTORIES_A_PROCESS
    for start in range(0, len(seeds), size):
        # The executor's own `max_tasks_per_child` can stop for ever as its processes end (CPython gh-115634).
        context = get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent) as pool:
            yield from pool.map(run.one, seeds[start : start + size])


def _end_with_parent() -> None:
    """A worker whose parent was killed would play on for nobody."""
    Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def soak(run: Run, *, as_json: bool) -> int:
    """Play all, tell what was broken; the exit code."""
    began_s = told_s = time.monotonic()
    broken: list[Result] = []
    played: list[Result] = []
    for result in results(run):
        played.append(result)
        if not result.ok:
            broken.append(result)
            print(_told(run, result), file=sys.stderr, flush=True)
        if time.monotonic() - told_s > TOLD_EVERY_S:
            told_s = time.monotonic()
            progress = f"{len(played)} of {run.count} histories, {len(broken)} broken"
            print(f"{told_s - began_s:6.0f} s  {progress}", file=sys.stderr, flush=True)
    spent_s = time.monotonic() - began_s
    print(_document(run, played, spent_s) if as_json else _summary(played, spent_s))
    if not as_json:
        for result in broken:
            print(f"again: {run.command(result.seed)}")
    return 1 if broken else 0


def _told(run: Run, result: Result) -> str:
    story = "\n".join(result.story[-STORY_LINES:])
    broken = "\n".join(f"  {line}" for line in result.violations)
    return f"{story}\nseed {result.seed} is broken:\n{broken}\nagain: {run.command(result.seed)}"


def _summary(played: list[Result], spent_s: float) -> str:
    if len(played) == 1:
        [one] = played
        print(f"seed {one.seed}: digest {one.digest}, {one.virtual_s:.0f} s of virtual time")
    broken = sum(not one.ok for one in played)
    hours = sum(one.virtual_s for one in played) / 3600
    deaths = sum(one.deaths for one in played)
    return (
        f"{len(played)} histories, {broken} broken; {hours:.1f} h of virtual time,"
        f" {sum(one.recoveries for one in played)} recoveries,"
        f" {deaths} deaths of a controller, in {spent_s:.0f} s"
    )


def _document(run: Run, played: list[Result], spent_s: float) -> str:
    histories = [
        {
            **{key: value for key, value in asdict(one).items() if key != "story"},
            "ok": one.ok,
            "command": run.command(one.seed),
        }
        for one in played
    ]
    return json.dumps(
        {"ok": all(one.ok for one in played), "spent_s": round(spent_s, 1), "histories": histories}, indent=1
    )


__all__ = ["Run", "results", "soak"]
