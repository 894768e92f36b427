"""A loop whose time is virtual, and processes that can be stopped between any two of their steps.

Time moves only when nothing is left to do, and then at once to the next timer: an hour costs what is done in
it. There are no sockets and no threads, so what runs is the same with every run. Two things follow that a
real loop cannot give: a loop that turns for ever without letting time pass is seen (`LiveLock`), and so is
one in which nobody will ever do anything again (`Deadlock`).

A `Process` is a group of tasks that stands for one process of the real world: everything that is started in
its context belongs to it. It can be frozen like by SIGSTOP (its steps wait, the time goes on) and stopped
at its n-th step, which is any of its awaits.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any

STALL_TURNS = 50_000  # turns of the loop at one moment; the busiest honest moment seen needs some hundred
LAST_TRIES = 3  # to end what goes on for ever
RESOLUTION_S = (
    1e-6  # timers so near to each other are due together; floats of many years still tell them apart
)


class LiveLock(BaseException):
    """The loop turned and turned, and no time passed. Not an Exception: nobody may contain it."""


class Deadlock(BaseException):
    """Nothing is due now or ever."""


class Process:
    """Tasks that are stopped together; see the module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps = 0  # taken so far
        self.frozen = False
        self._parked: deque[asyncio.Handle] = deque()
        self._trap_at = 0
        self._trap: Callable[[], None] = lambda: None

    def trap(self, after: int, act: Callable[[], None]) -> None:
        """Call `act` before the step that follows `after` more ones; a new trap replaces the old one."""
        self._trap_at, self._trap = self.steps + after, act

    def disarm(self) -> None:
        """Forget the trap."""
        self._trap_at = 0

    def freeze(self) -> None:
        """Take no step any more."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on with what became due meanwhile, in that order."""
        self.frozen = False
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - there is no other loop here
        while self._parked:
            loop.again(self._parked.popleft())

    def admits(self, handle: asyncio.Handle) -> bool:
        """Whether the step may be taken now; one of a frozen process is kept for later."""
        self.steps += 1
        if 0 < self._trap_at <= self.steps:
            self._trap_at = 0
            self._trap()
        if self.frozen:
            self.steps -= 1
            self._parked.append(handle)
        return not self.frozen


PROCESS: ContextVar[Process] = ContextVar("PROCESS")


class _Step(asyncio.Handle):
    """A callback that asks its process first."""

    def _run(self) -> None:
        process: Process | None = self._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is None or process.admits(self):
            super()._run()


class _TimedStep(asyncio.TimerHandle):
    """Likewise, at a time."""

    def _run(self) -> None:
        process: Process | None = self._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is None or process.admits(self):
            super()._run()


class _NoWaiting(selectors.SelectSelector):
    """Lets virtual time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.turns = 0  # since time passed last
        self.all_turns = 0
        self.most_turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        self.all_turns += 1
        if timeout is None:
            raise Deadlock(f"at {self.now_s:.3f} s nothing was left to wait for")
        if timeout > 0:
            self.now_s += timeout
            self.most_turns = max(self.most_turns, self.turns)
            self.turns = 0
        elif self.turns > STALL_TURNS:
            self.turns = 0
            raise LiveLock(f"at {self.now_s:.6f} s the loop turned {STALL_TURNS} times and no time passed")
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)
        self._clock_resolution = RESOLUTION_S

    @property
    def turns(self) -> int:
        """Turns of the loop so far."""
        return self._no_waiting.all_turns

    @property
    def most_turns(self) -> int:
        """The most turns in one moment so far."""
        return self._no_waiting.most_turns

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._no_waiting.now_s

    def again(self, handle: asyncio.Handle) -> None:
        """Let a step that was kept back run in the next turn."""
        self._ready.append(handle)  # type: ignore[attr-defined]

    def end(self) -> None:
        """Cancel what is left, a process that goes on for ever included, and close."""
        self.set_exception_handler(lambda _loop, _context: None)
        for _ in range(LAST_TRIES):
            try:
                self.run_until_complete(self._cancel_all())
            except (LiveLock, Deadlock):
                continue
            break
        self.run_until_complete(self.shutdown_asyncgens())
        self.close()

    async def _cancel_all(self) -> None:
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """As ever; the step belongs to the process of its context."""
        handle = _Step(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Likewise."""
        timer = _TimedStep(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer


__all__ = ["PROCESS", "Deadlock", "LiveLock", "Process", "VirtualLoop"]
