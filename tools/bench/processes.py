"""Child processes of a measurement: each part has its own loop and, if there is one, its own core.

A child writes one JSON line to stdout when it is ready and then works until SIGTERM. Children are stopped in
reverse order of their start; one that does not stop is killed.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

READY_S = 60.0
STOP_S = 10.0


class ChildError(RuntimeError):
    """A child ended or never became ready."""


@asynccontextmanager
async def child(module: str, *arguments: str, log: Path) -> AsyncIterator[dict[str, Any]]:
    """Run `python -m module` as long as the context lasts; yields what it said when it was ready."""
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    try:
        yield await _ready(process, module, log)
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _ready(process: asyncio.subprocess.Process, module: str, log: Path) -> dict[str, Any]:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    try:
        async with asyncio.timeout(READY_S):
            line = await process.stdout.readline()
    except TimeoutError:
        raise ChildError(f"{module} was not ready within {READY_S:g} s; see {log}") from None
    if not line:
        said_last = await asyncio.to_thread(log.read_text)
        raise ChildError(f"{module} ended before it was ready:\n{said_last[-2000:]}")
    said: dict[str, Any] = json.loads(line)
    return said


def say_ready(**facts: object) -> None:
    """A child's one line."""
    print(json.dumps(facts), flush=True)


async def until_stopped(work: Awaitable[object]) -> None:
    """Run a child's work until SIGTERM or SIGINT; its own failure is raised."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
