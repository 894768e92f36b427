"""`mindie-ha recover`: ask for a recovery, by a controller's API or by writing the workload's ledger."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mindie_ha.app import request_desk
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.isolations import user
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line
from mindie_ha.cli.resets import workload_key
from mindie_ha.cli.sources import ask, one_source, run_async, workload_path
from mindie_ha.cli.tokens import Server
from mindie_ha.model.ids import ObjectKey
from mindie_ha.policy.asking import Wish
from mindie_ha.web.requesting import plain


class Rung(StrEnum):
    """What `--rung` takes."""

    JOB = "job"
    POD = "pod"


def recover(
    *,
    workload: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="name of the workload")],
    reason: Annotated[str, typer.Option("--reason", help="why, in one line")],
    rung: Annotated[
        Rung | None, typer.Option(help="job: all pods; pod: those of --pod. Without it: what --pod says")
    ] = None,
    pod: Annotated[list[str] | None, typer.Option("--pod", help="a pod to replace, again for more")] = None,
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Ask for a recovery of a workload that may be well: recorded first, then done as after a fault."""
    key = workload_key(workload)
    wish = Wish(
        person=user(), text=reason, rung=rung.value if rung is not None else "", pods=tuple(pod or ())
    )
    found = run_async(_recover(key, wish, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document(found, output)
        return
    print_line(f"{key}: recovery {found['epoch']} is asked for, {found['rung']} rung: {_pods(found['pods'])}")
    print_line(f"  {found['says']}")
    print_line(f"  `mindie-ha why {key}` tells how it goes")


async def _recover(key: ObjectKey, wish: Wish, server: str, kubeconfig: Path | None) -> dict[str, Any]:
    one_source(server, kubeconfig)
    if not server:
        async with request_desk(load_settings(), kubeconfig=kubeconfig) as desk:
            return plain(await desk.recover(key, wish))
    body = {"reason": wish.text, "rung": wish.rung, "pods": list(wish.pods), "person": wish.person}
    return await ask(server, workload_path(key, "recover"), method="POST", body=body)


def _pods(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
