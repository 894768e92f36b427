"""`mindie-ha isolate` and `release`: keep new work off a node, and let it back.

Through a controller's API, or by writing the node's ledger with a kubeconfig; the controller that runs sets
and lifts the taint. Both are idempotent.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol
from urllib.parse import quote

import typer

from mindie_ha.app import isolation_desk
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, complain, print_document, print_line
from mindie_ha.cli.sources import ask, one_source, run_async
from mindie_ha.cli.tokens import Server
from mindie_ha.engine.isolation_desk import IsolationDesk, Recorded
from mindie_ha.model.errors import InputError
from mindie_ha.web.fault_reports import isolation_report

TAINT = "node-taint"  # one of the `means` of an isolation
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(?P<count>[0-9]{1,8})(?P<unit>[smhd]?)\Z")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9@._-]")

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="name of the node")]
DeviceOption = Annotated[str, typer.Option("--device", help="one card, for example Ascend910-3")]


class Door(Protocol):
    """One way to a node's ledger. Reports are plain data of `IsolationReport`, with `changed` beside it."""

    async def standing(self, node: str) -> list[dict[str, Any]]:
        """The isolations that are in force."""
        ...

    async def isolate(self, node: str, *, device: str, reason: str, for_s: float | None) -> dict[str, Any]:
        """Ask for one."""
        ...

    async def release(self, node: str, isolation_id: str) -> dict[str, Any]:
        """Take one back."""
        ...


def isolate(
    *,
    node: NodeArgument,
    reason: Annotated[str, typer.Option("--reason", help="why, in one line")],
    device: DeviceOption = "",
    duration: Annotated[str, typer.Option("--for", help="90s, 30m, 12h, 7d; without: until released")] = "",
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Keep new work off NODE until it is released; what runs there goes on."""
    for_s = seconds(duration)
    found = run_async(_isolate(node, device, reason, for_s, at=(Server.of(server, token_file), kubeconfig)))
    if output is not Format.TEXT:
        print_document(found, output)
        return
    entry = found["isolation"]
    place = f"{node} for {device}" if device else node
    end = "until it is released" if for_s is None else f"for {duration}"
    new = "is isolated" if found["changed"] else "was isolated already"
    print_line(f"{place} {new}, {end}: {entry['text']}")
    print_line(f"take it back with: {entry['undo']}")


def release(
    *,
    node: NodeArgument,
    device: DeviceOption = "",
    everything: Annotated[bool, typer.Option("--all", help="the node and all its cards")] = False,
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Let new work back on NODE (or one card, or all): whatever isolated it, while its fault lasts, too."""
    if device and everything:
        raise InputError("give one of --device and --all, not both", where="command line")
    done, left = run_async(_release(node, device, everything, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document({"node": node, "released": done, "left": left}, output)
    for line in _released(node, done, left) if output is Format.TEXT else ():
        print_line(line)
    if done:
        return
    place = f"{device} of {node}" if device else node
    if left:
        names = ", ".join(sorted({item["device"] or "the node itself" for item in left}))
        complain(f"{place} is not isolated, but {names} is: give --device NAME or --all")
        raise typer.Exit(1)
    if output is Format.TEXT:
        print_line(f"{place}: nothing is isolated")


async def _isolate(
    node: str, device: str, reason: str, for_s: float | None, *, at: tuple[str, Path | None]
) -> dict[str, Any]:
    async with _door(*at) as door:
        return await door.isolate(node, device=device, reason=reason, for_s=for_s)


async def _release(
    node: str, device: str, everything: bool, server: str, kubeconfig: Path | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was released, and what else stands on the node."""
    async with _door(server, kubeconfig) as door:
        standing = await door.standing(node)
        wanted = [entry for entry in standing if everything or entry["device"] == device]
        done = [(await door.release(node, entry["id"]))["isolation"] for entry in wanted]
        return done, [entry for entry in standing if entry not in wanted]


def _released(node: str, done: list[dict[str, Any]], left: list[dict[str, Any]]) -> Iterator[str]:
    """What follows for people: the taint goes with the last isolation that needs it."""
    taints = [entry for entry in left if entry["means"] == TAINT]
    for entry in done:
        what = f"the isolation of {entry['device'] or 'the node itself'}"
        if entry["means"] != TAINT:
            follows = "the controller takes its public fault back"
        else:
            follows = "the taint stays" if taints else "the controller takes the taint off"
        yield f"{node}: {what} is released ({entry['text'] or entry['reason']}); {follows}"
    for entry in left if done else ():
        who = ", ".join(owner.removeprefix("person:") for owner in entry["owner"])
        place = entry["device"] or "the node itself"
        yield f"  still isolated: {place}: {entry['text'] or entry['reason']} (for {who}); {entry['undo']}"


def seconds(text: str) -> float | None:
    """A duration as people write it; None for none."""
    if not text:
        return None
    match = _DURATION.match(text)
    if match is None:
        raise InputError(f"{text[:40]!r} is no duration", where="--for", advice="90s, 30m, 12h or 7d")
    return float(match["count"]) * UNITS[match["unit"]]


def user() -> str:
    """Who asks, as recorded."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a user ID without a name
        name = ""
    return _NOT_IN_NAMES.sub("_", name)[:63].lstrip("@._-") or "unknown"


@asynccontextmanager
async def _door(server: str, kubeconfig: Path | None) -> AsyncIterator[Door]:
    one_source(server, kubeconfig)
    if server:
        yield ApiDoor(server)
        return
    async with isolation_desk(load_settings(), kubeconfig=kubeconfig) as desk:
        yield LedgerDoor(desk)


class ApiDoor:
    """By the API of a running controller."""

    def __init__(self, server: str) -> None:
        self._server = server

    async def standing(self, node: str) -> list[dict[str, Any]]:
        """See `Door`."""
        found = await ask(self._server, f"/v1/nodes/{quote(node, safe='')}")
        return [entry for entry in found["isolations"] if entry["in_force"]]

    async def isolate(self, node: str, *, device: str, reason: str, for_s: float | None) -> dict[str, Any]:
        """See `Door`."""
        asked = {"reason": reason, "device": device, "for_s": for_s, "person": user()}
        path = f"/v1/nodes/{quote(node, safe='')}/isolations"
        return await ask(self._server, path, method="POST", body=asked)

    async def release(self, node: str, isolation_id: str) -> dict[str, Any]:
        """See `Door`."""
        place = f"/v1/nodes/{quote(node, safe='')}/isolations/{quote(isolation_id, safe='')}"
        return await ask(self._server, f"{place}?person={quote(user(), safe='')}", method="DELETE")


class LedgerDoor:
    """By writing the node's ledger."""

    def __init__(self, desk: IsolationDesk) -> None:
        self._desk = desk

    async def standing(self, node: str) -> list[dict[str, Any]]:
        """See `Door`."""
        return [isolation_report(item).model_dump(mode="json") for item in self._desk.standing(node)]

    async def isolate(self, node: str, *, device: str, reason: str, for_s: float | None) -> dict[str, Any]:
        """See `Door`."""
        recorded = await self._desk.isolate(node, device=device, text=reason, person=user(), for_s=for_s)
        return _plain(recorded)

    async def release(self, node: str, isolation_id: str) -> dict[str, Any]:
        """See `Door`."""
        return _plain(await self._desk.release(node, isolation_id, person=user()))


def _plain(recorded: Recorded) -> dict[str, Any]:
    entry = isolation_report(recorded.isolation).model_dump(mode="json")
    return {"node": recorded.node, "isolation": entry, "changed": recorded.changed}
