"""The supervisor: every task has a name and an owner, an end nobody expected is reported, closing is bounded.

This is the one place with a broad `except`: a bug must cost its own task or its own object (`contain`), be
reported with its trace, and stop nothing else. Cancellation is never swallowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from enum import StrEnum
from typing import Any, Generic, TypeVar

from mindie_ha.kit.backoff import Backoff
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics

T = TypeVar("T")


class OnEnd(StrEnum):
    """What follows when a task ends by itself."""

    RESTART = "restart"  # a loop that must never end: again, after back-off
    FAIL = "fail"  # the program cannot go on: `failed` is set
    ACCEPT = "accept"  # a normal end is fine; a crash is reported


class Crash(Generic[T]):
    """How a contained coroutine ended: `value`, or `error` where it crashed."""

    __slots__ = ("error", "value")

    def __init__(self, *, value: T | None = None, error: Exception | None = None) -> None:
        self.value = value
        self.error = error

    @property
    def crashed(self) -> bool:
        """Whether it ended by an exception."""
        return self.error is not None


async def every(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all steps, which run side by side.

    A crash of one is raised only when all have ended, so that none still runs when the caller goes on.
    """
    ended = await asyncio.gather(*steps, return_exceptions=True)
    results: list[T] = []
    for one in ended:
        if isinstance(one, BaseException):
            raise one
        results.append(one)
    return results


class Supervisor:
    """Owns tasks."""

    def __init__(self, *, clock: Clock, entropy: Entropy, log: Log, metrics: Metrics) -> None:
        self._clock = clock
        self._entropy = entropy
        self._log = log
        self._metrics = metrics
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing = False
        self.failed = asyncio.Event()  # a task with OnEnd.FAIL ended; see `failure`
        self.failure = ""

    def start(
        self,
        name: str,
        body: Callable[[], Coroutine[Any, Any, object]],
        *,
        on_end: OnEnd = OnEnd.RESTART,
    ) -> asyncio.Task[None]:
        """Run `body()` as the task `name`; the name must be free."""
        if self._closing:
            raise RuntimeError(f"task {name} was started while closing")
        if name in self._tasks:
            raise ValueError(f"a task called {name} is running already")
        task = asyncio.create_task(self._own(name, body, on_end), name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))
        return task

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the running tasks."""
        return tuple(sorted(self._tasks))

    async def contain(self, name: str, coroutine: Coroutine[Any, Any, T]) -> Crash[T]:
        """Await `coroutine`; a crash is reported and returned, never raised. Cancellation passes."""
        try:
            return Crash(value=await coroutine)
        except Exception as error:  # noqa: BLE001 - the boundary: one object's bug must not stop a loop
            self._metrics.task_crashes.labels(name).inc()
            self._log.error("crashed", task=name, error=repr(error), exc_info=error)
            return Crash(error=error)

    async def stop(self, name: str, *, timeout_s: float = 10.0) -> None:
        """Cancel one task and await its end."""
        task = self._tasks.get(name)
        if task is not None:
            await self._end([task], timeout_s)

    async def close(self, *, timeout_s: float = 10.0) -> None:
        """Cancel every task and await their ends, newest first, for at most `timeout_s` (not scaled)."""
        self._closing = True
        await self._end(list(reversed(self._tasks.values())), timeout_s)

    async def _own(self, name: str, body: Callable[[], Coroutine[Any, Any, object]], on_end: OnEnd) -> None:
        backoff = Backoff(entropy=self._entropy, first_s=0.5, max_s=30.0)
        while True:
            began_s = self._clock.monotonic()
            crash = await self.contain(name, body())
            if on_end is OnEnd.ACCEPT:
                return
            if on_end is OnEnd.FAIL:
                self.failure = (
                    f"task {name} ended: {crash.error!r}" if crash.crashed else f"task {name} ended"
                )
                self.failed.set()
                return
            if self._clock.monotonic() - began_s > 60.0:
                backoff.reset()
            delay_s = backoff.next_s()
            self._log.warning("task ended, starts again", task=name, delay_s=round(delay_s, 3))
            await self._clock.sleep(delay_s)

    async def _end(self, tasks: list[asyncio.Task[None]], timeout_s: float) -> None:
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=timeout_s)
        for task in late:
            self._log.error("task does not end", task=task.get_name(), waited_s=timeout_s)


__all__ = ["Crash", "OnEnd", "Supervisor", "every"]
