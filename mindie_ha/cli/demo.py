"""`mindie-ha demo`: one recovery on the embedded cluster, told as it happens."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

from mindie_ha.cli.output import Format, print_document, print_table
from mindie_ha.cli.sources import run_async
from mindie_ha.demo import scenarios
from mindie_ha.demo.plays import Performance, Play
from mindie_ha.demo.reports import report
from mindie_ha.demo.scenarios import Scenario
from mindie_ha.demo.stage import ANY_PORT, Stage, staged
from mindie_ha.demo.stories import Story
from mindie_ha.kit.logs import make_log
from mindie_ha.model.errors import InputError, MindieHaError

MAX_SPEED = 1000.0


def demo(
    *,
    scenario: Annotated[
        str, typer.Option(help="name of a scenario (see --list), or a YAML file")
    ] = scenarios.DEFAULT,
    output: Annotated[
        Format,
        typer.Option("-o", "--output", help="text: the story; json or yaml: a document, the story on stderr"),
    ] = Format.TEXT,
    speed: Annotated[float, typer.Option(help="how many times faster than life")] = 20.0,
    serve: Annotated[str, typer.Option(help="HOST:PORT of the HTTP API; keeps running after the story")] = "",
    list_: Annotated[bool, typer.Option("--list", help="list the scenarios and exit")] = False,
) -> None:
    """Let a service fail on an embedded cluster and watch how it recovers. Exits 1 if anything went wrong."""
    if list_:
        show_list(output)
        return
    if not 0 < speed <= MAX_SPEED:
        raise InputError(f"must be above 0 and at most {MAX_SPEED:g}", where=f"--speed {speed:g}")
    check_address(serve)
    chosen = scenarios.load(scenario)
    if serve:
        check_free(serve)
    performance = run_async(perform(chosen, output=output, speed=chosen.pace(speed), serve=serve))
    if not performance.verdict.ok:
        raise typer.Exit(1)


def show_list(output: Format) -> None:
    """The scenarios we ship."""
    shipped = [scenarios.load(name) for name in scenarios.names()]
    if output is Format.TEXT:
        print_table(("SCENARIO", "WHAT HAPPENS"), [(each.name, each.title) for each in shipped])
    else:
        listed = [{"name": each.name, "title": each.title, "about": each.about} for each in shipped]
        print_document({"scenarios": listed}, output)


def check_address(address: str) -> None:
    """Refuse what is no HOST:PORT. Raises InputError."""
    _, colon, port = address.rpartition(":")
    if address and not (colon and port.isdecimal() and int(port) < 65536):
        raise InputError("not HOST:PORT", where=f"address {address}", advice="for example 127.0.0.1:8080")


def check_free(address: str) -> None:
    """Refuse an address that nobody can listen on, before anything is set up. Raises InputError."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_server((host.strip("[]"), int(port))):
            pass
    except OSError as error:
        raise InputError(f"cannot listen: {error.strerror or error}", where=f"--serve {address}") from None


async def perform(scenario: Scenario, *, output: Format, speed: float, serve: str) -> Performance:
    """Play the scenario, print its document where one is asked for, and serve on if asked to."""
    began_s = time.monotonic()
    text = output is Format.TEXT
    console = Console(file=sys.stdout if text else sys.stderr, highlight=False)
    if not console.is_terminal:
        console = Console(file=console.file, highlight=False, width=200)
    story = Story(console, speed=speed)
    story.opening(scenario)
    log = make_log(sys.stderr, level="error")
    try:
        async with staged(scenario, speed=speed, log=log, http_listen=serve or ANY_PORT) as stage:
            story.follow(stage.journal)
            performance = await Play(stage, story=story).perform(began_s=began_s)
            if not text:
                seen, verdict = performance.observations, performance.verdict
                print_document(report(scenario.name, seen, verdict).model_dump(mode="json"), output)
                sys.stdout.flush()
            if serve:
                await serve_on(stage, console)
    except OSError as error:
        raise MindieHaError(f"the demo cannot listen: {error}") from None
    return performance


async def serve_on(stage: Stage, console: Console) -> None:
    """Keep everything running until Ctrl-C or SIGTERM. Raises MindieHaError when a part fails."""
    console.print()
    host = stage.app.settings.http.listen.rpartition(":")[0] or "127.0.0.1"
    console.print(
        f"the cluster goes on; HTTP API: http://{host}:{stage.app.http_port}/v1/services (Ctrl-C ends)"
    )
    with stop_signals() as stopped:
        await either(stopped, stage.supervisor.failed)
    if stage.supervisor.failed.is_set():
        raise MindieHaError(stage.supervisor.failure)


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set while the context lasts."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def either(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


__all__ = ["check_address", "demo", "either", "stop_signals"]
