"""`mindie-ha pause` and `resume`: hold deletions, by a controller's API or by writing the record itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from mindie_ha.app import pause_desk
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.isolations import seconds, user
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line
from mindie_ha.cli.sources import ask, one_source, run_async
from mindie_ha.cli.status import still
from mindie_ha.cli.tokens import Server
from mindie_ha.model.errors import InputError
from mindie_ha.policy import holds
from mindie_ha.web.pauses import listed, plain

ClusterOption = Annotated[bool, typer.Option("--cluster", help="everything")]
NamespaceOption = Annotated[str, typer.Option("--namespace", help="every service and job of a namespace")]
ServiceOption = Annotated[
    str, typer.Option("--service", metavar="NS/JOBID", help="one service, or a job by its name")
]
At = tuple[str, Path | None]


def pause(
    *,
    reason: Annotated[str, typer.Option("--reason", help="why, in one line")],
    cluster: ClusterOption = False,
    namespace: NamespaceOption = "",
    service: ServiceOption = "",
    duration: Annotated[str, typer.Option("--for", help="90s, 30m, 12h, 7d; without: until resumed")] = "",
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Hold deletions. Recoveries open and isolate as ever, and wait before they delete; the rest goes on.

    A pause of the same scope replaces the one that stands.
    """
    scope, for_s = one_scope(cluster, namespace, service), seconds(duration)
    found = run_async(_pause(scope, reason, for_s, (Server.of(server, token_file), kubeconfig)))
    if output is not Format.TEXT:
        print_document(found, output)
        return
    until = f"for {duration}" if duration else "until it is resumed"
    new = "is paused" if found["changed"] else "was paused already"
    print_line(f"{scope} {new}, {until}: {found['pause']['text']}")
    before = found.get("replaced")
    if before is not None:
        end = still(before["ends_at_s"], otherwise="until it was resumed")
        print_line(
            f"replaces the pause by {before['person'].removeprefix('person:')}, {end}: {before['text']}"
        )
    if found.get("note"):
        print_line(f"note: {found['note']}")
    print_line(f"take it back with: {found['pause']['undo']}")


def resume(
    *,
    cluster: ClusterOption = False,
    namespace: NamespaceOption = "",
    service: ServiceOption = "",
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """End a pause; what was held goes on at once. Wider pauses stand until they are resumed themselves."""
    scope = one_scope(cluster, namespace, service)
    found, left = run_async(_resume(scope, (Server.of(server, token_file), kubeconfig)))
    if output is not Format.TEXT:
        print_document({**found, "left": left}, output)
        return
    print_line(f"{scope} is resumed" if found["changed"] else f"{scope} is not paused; nothing was changed")
    for one in left:
        print_line(f"still paused: {one['scope']}: {one['text']} ({one['undo']})")


def one_scope(cluster: bool, namespace: str, service: str) -> str:
    """The one scope that the options name. Raises InputError."""
    if sum((cluster, bool(namespace), bool(service))) != 1:
        raise InputError("give one of --cluster, --namespace and --service", where="command line")
    return holds.scope_of(namespace=namespace, service=service)


async def _pause(scope: str, reason: str, for_s: float | None, at: At) -> dict[str, Any]:
    server, kubeconfig = at
    one_source(server, kubeconfig)
    if not server:
        async with pause_desk(load_settings(), kubeconfig=kubeconfig) as desk:
            return plain(await desk.pause(scope, text=reason, person=user(), for_s=for_s))
    asked = {"scope": scope, "reason": reason, "person": user(), "for_s": for_s}
    return await ask(server, "/v1/pauses", method="POST", body=asked)


async def _resume(scope: str, at: At) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was done, and the pauses that still stand."""
    server, kubeconfig = at
    one_source(server, kubeconfig)
    if not server:
        async with pause_desk(load_settings(), kubeconfig=kubeconfig) as desk:
            done = plain(await desk.resume(scope, person=user()))
            rest: dict[str, Any] = listed(desk)
            return done, rest["pauses"]
    place = f"/v1/pauses/{quote(scope)}?person={quote(user(), safe='')}"
    done = await ask(server, place, method="DELETE")
    others = await ask(server, "/v1/pauses")
    return done, others["pauses"]
